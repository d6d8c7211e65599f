// How misses, waiting and the working set change while the program runs.

function time(main) {
  main.append(el("h1", {}, "Time"), el("p", { class: "soft" }, data.intros.time));
  const line = tableOf("timeline");
  if (!line) return void main.append(missing("rows"));
  const rows = line.rows;
  const x = rows.map((row) => row.access);
  const about = (row) => `from access ${count(row.access)}` +
    (row.seconds === null ? "" : `, ${row.seconds.toFixed(3)} s`) +
    (row.data ? `: ${percent(row.share_of_wait)} of the waiting for ${row.data.name}` : "");
  const levels = Object.keys(rows[0] ?? {}).filter((name) => name.endsWith("_misses"));
  if (!rows.length) return void main.append(el("p", {}, "Nothing was recorded."));
  main.append(phasesOf());
  main.append(el("h2", {}, "Waiting"), chart("Cycles of waiting, interval by interval", {
    x, form: "stack", series: [{ name: "wait", colour: "var(--chained)", values: rows.map((row) => row.wait_cycles) }],
    xText: count, yText: count, tell: (at) => `${count(rows[at].wait_cycles)} cycles ${about(rows[at])}`,
  }));
  main.append(el("h2", {}, "Misses"), chart("Misses of each level, interval by interval", {
    x, series: levels.map((name, at) => ({
      name: name.replace("_misses", ""), colour: seriesColour(at), values: rows.map((row) => row[name]),
    })),
    xText: count, yText: count,
    tell: (at) => levels.map((name) => `${name.replace("_misses", "")}: ${count(rows[at][name])}`).join(", ") + ` ${about(rows[at])}`,
  }));
  main.append(el("h2", {}, "Traffic to memory"), traffic(rows, x, about));
  const set = tableOf("working_set");
  if (set?.rows.length) main.append(el("h2", {}, "Working set"), el("p", { class: "soft" }, data.intros.working_set), workingSet(set.rows));
  main.append(el("details", {}, el("summary", {}, "As a table"), table("Time line", [
    { head: "from access", cell: (row) => count(row.access) },
    { head: "accesses", value: (row) => row.accesses, cell: (row) => count(row.accesses) },
    { head: "wait cycles", value: (row) => row.wait_cycles, cell: (row) => count(row.wait_cycles) },
    { head: "fetched", value: (row) => row.fetched_bytes, cell: (row) => bytes(row.fetched_bytes) },
    { head: "written back", value: (row) => row.written_bytes, cell: (row) => bytes(row.written_bytes) },
    { head: "mostly for", left: true, cell: (row) => (row.data ? named(row.data.name, toType(row.data.type, row.data.member)) : "") },
    ...levels.map((name) => ({ head: name.replace("_", " "), value: (row) => row[name], cell: (row) => count(row[name]) })),
  ], rows)));
}

/** Bytes from and to memory, with marks at what it carries in the time of an interval, where it is busy for half of it. */
function traffic(rows, x, about) {
  const { reads, writes, sentence } = data.words.bandwidth;
  // How long memory is busy with what an interval moves, as a part of the time that the interval took.
  const busy = (at) => {
    const took = (rows[at + 1]?.seconds ?? NaN) - rows[at].seconds;
    return took > 0 ? (rows[at].fetched_bytes / reads + rows[at].written_bytes / writes) / took : null;
  };
  const shares = rows.map((_, at) => busy(at));
  const known = shares.filter((share) => share !== null);
  const most = Math.max(0, ...known);
  const moved = (row) => row.fetched_bytes + row.written_bytes;
  const tops = shares.map((share, at) => (share > 0.5 ? moved(rows[at]) / share : null));
  const tell = (at) => `${bytes(rows[at].fetched_bytes)} fetched, ${bytes(rows[at].written_bytes)} written back` +
    (shares[at] === null ? "" : `: memory is busy for ${percent(shares[at])} of the time`) + ` ${about(rows[at])}`;
  return el("div", {}, el("p", { class: "soft" }, `${data.intros.traffic} ${sentence}`),
    known.length ? el("p", {}, `In the busiest interval memory moves data for ${percent(most)} of the time. `,
      el("span", { class: "soft" }, tops.some((top) => top !== null) ? data.intros.traffic_time : "")) : null,
    chart("Bytes from and to memory, interval by interval", {
      x, form: "stack", tops,
      series: [["fetched", "fetched_bytes"], ["written back", "written_bytes"]].map(([name, id], at) => ({
        name, colour: seriesColour(at), values: rows.map((row) => row[id]),
      })),
      xText: count, yText: bytes, tell,
    }));
}

/** Phases, each with a link to what it does alone. */
function phasesOf() {
  const { phases, cells } = data;
  if (!phases.length) return "";
  const all = phases.reduce((sum, phase) => sum + phase.accesses, 0);
  const waits = Math.max(1, phases.reduce((sum, phase) => sum + phase.wait_cycles, 0));
  const stretch = (access) => Math.round(access / cells.stretch_accesses);
  const from = (phase, to) => `#summary${query({ time: `${stretch(phase.access)}-${Math.max(stretch(phase.access) + 1, to)}` })}`;
  const end = (at) => (phases[at + 1] ? stretch(phases[at + 1].access) : cells.stretches);
  const alone = (phase, at) => (cells && phases.length > 1 ? el("a", { href: from(phase, end(at)) }, "only this") : "");
  return el("section", {}, el("h2", {}, "Phases"), el("p", { class: "soft" }, data.intros.phases),
    cells && phases.length > 1
      ? el("p", {}, el("a", { class: "chip", href: from(phases[1], cells.stretches) }, "Without the first phase")) : null,
    table("Phases", [
      { head: "waits mostly for", left: true, cell: (row) => row.data ?? "nothing" },
      { head: "of the accesses", value: (row) => row.accesses, cell: (row) => percent(row.accesses / Math.max(1, all)) },
      { head: "of the waiting", value: (row) => row.wait_cycles, cell: (row) => percent(row.wait_cycles / waits) },
      { head: `${data.levels.at(-1)} misses`, value: (row) => row.misses, cell: (row) => count(row.misses) },
      { head: "from access", value: (row) => -row.access, cell: (row) => count(row.access) },
      { head: "at", cell: (row) => (row.seconds === null ? "" : `${row.seconds.toFixed(3)} s`) },
      { head: "", left: true, cell: alone },
    ], phases, { most: 12 }));
}

function workingSet(rows) {
  const kinds = [["lines_bytes", "cache lines"], ["new_bytes", "of these new"], ["pages_bytes", "pages"]];
  return chart("Bytes touched in each interval", {
    x: rows.map((row) => row.access),
    series: kinds.map(([id, name], at) => ({ name, colour: seriesColour(at), values: rows.map((row) => row[id]) })),
    xText: count, yText: bytes,
    tell: (at) => kinds.map(([id, name]) => `${name}: ${bytes(rows[at][id])}`).join(", ") + ` from access ${count(rows[at].access)}`,
  });
}

const tableOf = (id) => data.tables.find((table) => table.id === id);

/** What stands in a view that has no data: how to get them. */
function missing(what) {
  return el("section", { class: "card" }, el("p", {}, data.intros.missing), command(data.commands[what]));
}
