// What changed from one trace to another.

const STATUS = { new: "new", gone: "gone", better: "better", worse: "worse", within_noise: "within noise" };

function compare(main, [kind = "data"]) {
  main.append(el("h1", {}, "Compare"), el("p", { class: "soft" }, data.intros.compare));
  if (!data.comparison) return void main.append(missing("compare"));
  const { comparison, comparison_names: names } = data;
  const { before, after } = comparison;
  main.append(el("p", {}, data.words.compared));
  const missed = (level) => level.read_misses + level.write_misses;
  const change = (head, was, is, text) => ({ head, was, is, text });
  const rows = [
    change("modelled cycles", before.run_cycles, after.run_cycles, count),
    change("accesses", before.total.accesses, after.total.accesses, count),
    ...before.levels.map((level, at) => change(`${level.name} misses`, missed(level), after.levels[at] ? missed(after.levels[at]) : 0, count)),
  ];
  main.append(table("Both runs", [
    { head: "", left: true, cell: (row) => row.head },
    { head: "before", cell: (row) => row.text(row.was) },
    { head: "after", cell: (row) => row.text(row.is) },
    { head: "change", cell: (row) => (row.was ? `${row.is >= row.was ? "+" : "−"}${percent(Math.abs(row.is / row.was - 1))}` : "") },
  ], rows));
  const kinds = [["data", "Data"], ["lines", "Lines"], ["objects", "Objects"], ["types", "Types"]];
  main.append(el("h2", {}, "What changed"), el("p", {}, kinds.map(([id, name]) =>
    [el("a", { href: at("compare", id), "aria-current": id === kind ? "true" : undefined }, name), "  "])));
  const misses = (side, level) => side?.misses[level] ?? 0;
  main.append(table("Changes", [
    { head: "status", left: true, cell: (row) => el("span", { class: { better: "good", gone: "good", worse: "warn", new: "warn" }[row.status] }, STATUS[row.status]) },
    { head: "wait cycles", value: (row) => row.wait_cycles_change, cell: (row) => `${row.wait_cycles_change > 0 ? "+" : row.wait_cycles_change < 0 ? "−" : ""}${count(Math.abs(row.wait_cycles_change))}` },
    { head: "name", left: true, cell: (row, at) => named(names[kind][at], toType(row.type, row.member)) },
    { head: "accesses before", value: (row) => row.before?.accesses ?? 0, cell: (row) => count(row.before?.accesses ?? 0) },
    { head: "after", value: (row) => row.after?.accesses ?? 0, cell: (row) => count(row.after?.accesses ?? 0) },
    ...data.levels.map((level) => ({
      head: `${level} misses`, value: (row) => misses(row.after, level) - misses(row.before, level),
      cell: (row) => `${count(misses(row.before, level))} → ${count(misses(row.after, level))}`,
    })),
  ], comparison[kind] ?? comparison.data));
}
