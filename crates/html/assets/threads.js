// Threads, and the lines that they take from each other.

function threads(main, [chosen]) {
  main.append(el("h1", {}, "Threads and sharing"), el("p", { class: "soft" }, data.intros.threads));
  const { sharing } = data.report;
  if (data.words.sharing) main.append(el("p", {}, data.words.sharing));
  if (sharing) {
    transferList(main, "False sharing", "false_sharing", sharing.false_sharing);
    transferList(main, "True sharing", "true_sharing", sharing.true_sharing);
    transferList(main, "Handed over", "handed_over", sharing.handed_over);
    if (sharing.locks.length) {
      main.append(el("h2", {}, "Locks"), el("p", { class: "soft" }, data.intros.locks), table("Locks", [
        { head: "recorded", value: (row) => row.ms, cell: (row) => duration(row.ms) },
        { head: "taking turns", value: (row) => row.most_ms, cell: (row) => duration(row.most_ms) },
        { head: "takes", value: (row) => row.takes, cell: (row) => count(row.takes) },
        { head: "changes", value: (row) => row.changes, cell: (row) => count(row.changes) },
        { head: "locks", value: (row) => row.locks, cell: (row) => count(row.locks) },
        { head: "threads", value: (row) => row.threads.length, cell: (row) => String(row.threads.length) },
        { head: "in", left: true, cell: (row, at) => data.names.locks[at][0] },
        { head: "taken at", left: true, cell: (row, at) => data.names.locks[at][1] },
      ], sharing.locks, { most: 10 }));
    }
    if (sharing.cache_lines.length) {
      main.append(el("h2", {}, "By cache line"), table("Cache lines", [
        { head: "line", left: true, cell: (row) => el("span", { class: "mono" }, row.line) },
        { head: "transfers", value: (row) => row.transfers, cell: (row) => count(row.transfers) },
        { head: term("false sharing", "nobody needed"), name: "nobody needed", value: (row) => row.false_transfers, cell: (row) => count(row.false_transfers) },
        { head: "cycles", value: (row) => row.cycles, cell: (row) => count(row.cycles) },
        { head: "of", left: true, cell: (row, at) => data.names.cache_lines[at] },
      ], sharing.cache_lines, { most: 10 }));
    }
  } else if (data.report.threads.length > 1) {
    main.append(el("p", { class: "warn" }, data.intros.unshared));
  }
  main.append(el("h2", {}, "Threads"), threadTable(chosen));
}

function threadTable(chosen) {
  const rows = rowsOf("threads");
  const most = Math.max(1, ...rows.map(cycles));
  const meter = (row) => el("span", { class: "meters", "aria-hidden": "true" },
    el("span", { class: "meter", style: { width: `${100 * cycles(row) / most}%` } }));
  return table("Threads", [
    { head: "thread", left: true, cell: (row) => link(data.names.threads[row.at], "threads", row.at) },
    { head: "cycles", value: cycles, cell: (row) => count(cycles(row)) },
    { head: "", cell: meter },
    ...numberColumns(),
  ], rows, { chosen: rows.findIndex((row) => String(row.at) === chosen), more: leftOut("threads"), most: 20 });
}

function transferList(main, title, kind, rows) {
  if (!rows.length) return;
  main.append(el("h2", {}, term(title.toLowerCase(), title)), el("p", { class: "soft" }, data.intros[kind]));
  rows.slice(0, 5).forEach((row, at) => main.append(transferCard(row, data.names[kind][at])));
  if (rows.length > 5) {
    main.append(el("details", {}, el("summary", {}, `${rows.length - 5} smaller ones`), table(title, [
      { head: "cycles", value: (row) => row.cycles, cell: (row) => count(row.cycles) },
      { head: "transfers", value: (row) => row.transfers, cell: (row) => count(row.transfers) },
      { head: "waiting", left: true, cell: (row, at) => data.names[kind][at + 5].missed.join(" ") },
      { head: "taken by", left: true, cell: (row, at) => data.names[kind][at + 5].written?.join(" ") ?? "" },
      { head: "in", left: true, cell: (row, at) => data.names[kind][at + 5].object },
    ], rows.slice(5), { most: 20 })));
  }
}

function side(names, subject, threads) {
  const row = lineRow(subject);
  return [named(names[0], toType(subject.type, subject.member)), " at ",
    named(names[1], row >= 0 ? toLine(row) : null), `, ${threads.length} ${threads.length === 1 ? "thread" : "threads"}`];
}

function transferCard(row, names) {
  const lines = row.lines === 1 ? "1 line" : `${count(row.lines)} lines`;
  return el("article", { class: "card" },
    el("h3", {}, el("span", { class: "share" }, `${count(row.cycles)} cycles`), ` by ${count(row.transfers)} transfers of ${lines}`),
    el("dl", {},
      el("dt", {}, "waits"), el("dd", {}, side(names.missed, row.missed, row.missed.threads)),
      row.written ? [el("dt", {}, "takes them"), el("dd", {}, side(names.written, row.written, row.written.threads))] : null,
      el("dt", {}, "in"), el("dd", {}, names.object)),
    threadGrid(row));
}

/** One square a thread: who waits, who writes. */
function threadGrid(row) {
  const all = data.report.threads.length;
  const waits = new Set(row.missed.threads);
  const writes = new Set(row.written?.threads ?? []);
  const cells = data.report.threads.map(({ thread }) => {
    const kind = waits.has(thread) && writes.has(thread) ? "both" : writes.has(thread) ? "writes" : waits.has(thread) ? "reads" : "";
    const says = { both: "waits and writes", writes: "writes", reads: "waits", "": "neither" }[kind];
    return el("span", { class: kind, "data-tip": `thread ${thread} ${says}` });
  });
  const columns = Math.min(all, 40);
  const style = { gridTemplateColumns: `repeat(${columns}, minmax(4px, 22px))` };
  return el("div", {},
    el("div", { class: "grid", style, "aria-hidden": "true" }, cells),
    el("p", { class: "scale" }, el("span", {}, el("span", { class: "swatch streamed" }), "waits"),
      el("span", {}, el("span", { class: "swatch chained" }), "writes"), "one square a thread"));
}
