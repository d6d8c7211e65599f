// What accesses wait for, by the model of the core.

const WAITS = [
  ["instructions", "--instructions"], ["latency", "--overlapping"], ["chain", "--chained"], ["window", "--stored"],
  ["buffers", "--lost"], ["bandwidth", "--streamed"], ["walk", "--first"], ["forwarding", "--good"], ["stores", "--warn"],
  ["order", "--link"], ["branch", "--soft"],
];

function waits(main, [kind = "lines"]) {
  main.append(el("h1", {}, "Waits"), el("p", { class: "soft" }, data.intros.waits));
  if (!data.timing) return void main.append(missing("time"));
  const { timing, timing_names: names } = data;
  const known = timing.core.measured ? data.intros.measured : data.intros.assumed;
  main.append(el("p", {}, `${duration(timing.total.ms)} at ${timing.core.clock_ghz} GHz. `, known));
  main.append(waitBar(timing.total, timing.total.cycles, true));
  main.append(el("ul", { class: "legend" }, WAITS.filter(([id]) => cyclesOf(timing.total, id) > 0).map(([id, colour]) =>
    el("li", {}, el("span", { class: "swatch", style: { background: `var(${colour})` } }), term(`wait ${id}`, id),
      ` ${percent(cyclesOf(timing.total, id) / timing.total.cycles)}`))));
  const kinds = [["lines", "Lines"], ["fields", "Members"], ["objects", "Objects"], ["functions", "Functions"]];
  main.append(el("p", {}, kinds.map(([id, name]) =>
    [el("a", { href: at("waits", id), "aria-current": id === kind ? "true" : undefined }, name), "  "])));
  const rows = timing[kind] ?? timing.lines;
  const most = Math.max(1e-9, ...rows.map((row) => row.cycles));
  const links = { fields: (row) => toType(row.type, row.member), lines: lineFragment };
  main.append(table("Waits", [
    { head: "of the run", value: (row) => row.share, cell: (row) => percent(row.share) },
    { head: "", cell: (row) => waitBar(row, most, false) },
    { head: "name", left: true, cell: (row, at) => named(names[kind][at], links[kind]?.(row)) },
    { head: "time", value: (row) => row.ms, cell: (row) => duration(row.ms) },
    { head: "waiting", value: (row) => row.stall_cycles / Math.max(1e-9, row.cycles), cell: (row) => percent(row.stall_cycles / Math.max(1e-9, row.cycles)) },
    { head: "accesses", value: (row) => row.accesses, cell: (row) => count(row.accesses) },
  ], rows));
}

const cyclesOf = (row, id) => (id === "instructions" ? row.instruction_cycles : row.stalls[id]);

/** The kinds of waiting of a row as one bar, as long as its cycles are of the most. */
function waitBar(row, most, isWhole) {
  const parts = WAITS.filter(([id]) => cyclesOf(row, id) > 0);
  const says = parts.map(([id]) => `${id} ${percent(cyclesOf(row, id) / Math.max(1e-9, row.cycles))}`).join(", ");
  const bars = parts.map(([id, colour]) =>
    el("span", { style: { flexGrow: cyclesOf(row, id) / most, background: `var(${colour})` } }));
  const rest = el("span", { class: "rest", style: { flexGrow: Math.max(0, 1 - row.cycles / most) } });
  return el("span", { class: isWhole ? "bar" : "bar thin", "data-tip": says, role: "img", "aria-label": says }, bars, rest);
}
