// Objects, by the call that allocates them.

function objects(main, [chosen]) {
  main.append(el("h1", {}, "Objects"), el("p", { class: "soft" }, data.intros.objects));
  const rows = rowsOf("objects");
  const most = Math.max(1, ...rows.map((row) => row.wait_share));
  const row = chosen === undefined ? undefined : { ...now.objects[Number(chosen)], at: Number(chosen) };
  if (row?.misses) main.append(objectCard(row));
  else main.append(...memoryOverRun());
  const meter = (row) => el("span", { class: "meters", "aria-hidden": "true" },
    el("span", { class: "meter", style: { width: `${100 * row.wait_share / most}%` } }));
  main.append(table("Objects", [
    { head: "", cell: meter },
    ...numberColumns({ head: "where", left: true, roomy: true, cell: (row) => link(data.names.objects[row.at], "objects", row.at) }),
    { head: "objects", value: (row) => row.count, cell: (row) => count(row.count) },
    { head: "bytes", value: (row) => row.bytes, cell: (row) => bytes(row.bytes) },
    { head: "made of", left: true, cell: (row) => (row.element ? named(row.element, toType(row.element)) : "") },
  ], rows, { chosen: rows.findIndex((other) => other.at === row?.at), more: leftOut("objects") }));
}

/** Allocations that have a colour of their own; the others are one. */
const COLOURED = 6;

/** A short name, which leads to the objects if they are accessed, and the whole path on hover. */
function allocation(of, name) {
  const made = named(name, of.row === null ? null : at("objects", of.row));
  if (name !== of.name) made.dataset.tip = of.name;
  return made;
}

/** Steps of a path that a short name has. */
const STEPS = 3;

/**
 * Call paths, the most important first, without the steps that all important ones begin with, which are wrappers, and without
 * most of those that some have alike: the first step, and those from where a path differs from every other.
 */
function shortPaths(names) {
  const paths = names.map((name) => name.split(" ← "));
  const alike = (a, b) => a.findIndex((step, at) => step !== b[at]);
  const differs = paths.map((path, at) => Math.max(0, ...paths.map((other, number) => (number === at ? 0 : alike(path, other)))));
  const important = paths.slice(0, COLOURED).filter((path) => path.length > 1);
  const wrappers = important.length < 2 ? 0 : Math.max(0, Math.min(...important.slice(1).map((path) => alike(important[0], path))));
  return paths.map((path, at) => {
    const from = important.length && alike(important[0], path) >= wrappers ? wrappers : 0;
    const unlike = Math.max(from, differs[at]);
    const kept = unlike - from < STEPS ? path.slice(from, from + STEPS)
      : [path[from], "…", ...path.slice(unlike, unlike + STEPS - 1)];
    const end = unlike - from < STEPS ? from + STEPS : unlike + STEPS - 1;
    return (end < path.length ? [...kept, "…"] : kept).join(" ← ");
  });
}

/** What is alive as the run goes, by allocation. */
function memoryOverRun() {
  const { memory } = data;
  if (!memory || !memory.first_access.length) return [];
  const first = memory.objects.slice(0, COLOURED);
  const names = shortPaths(memory.objects.map((of) => of.name));
  const shown = first.map((of, at) => ({ name: names[at], full: of.name, colour: seriesColour(at), values: of.at_ends }));
  const others = memory.at_ends.map((all, at) => Math.max(0, all - first.reduce((sum, of) => sum + of.at_ends[at], 0)));
  if (others.some((value) => value > 0)) shown.push({ name: "all others", colour: seriesColour(COLOURED), values: others });
  const tell = (at) => `from access ${count(memory.first_access[at])}: at most ${bytes(memory.most[at])}, ` +
    `${bytes(memory.at_ends[at])} at the end; ` +
    shown.filter(({ values }) => values[at] > 0).map(({ name, values }) => `${name}: ${bytes(values[at])}`).join("; ");
  return [
    el("h2", {}, "Memory alive over the run"), el("p", { class: "soft" }, data.intros.memory),
    el("p", {}, `At most ${bytes(memory.peak_bytes)} at once, at access ${count(memory.peak_access)}. `,
      `${count(memory.made)} blocks were made and ${count(memory.freed)} freed.`),
    chart("Memory alive over the run, by allocation", {
      x: memory.first_access, series: shown, form: "stack", tops: memory.most, xText: count, yText: bytes, tell,
    }),
    table("Memory by allocation", [
      { head: "at the peak", value: (of) => of.peak_bytes, cell: (of) => bytes(of.peak_bytes) },
      { head: "allocation", left: true, roomy: true, cell: (of, at) => allocation(of, names[at]) },
      { head: "made", value: (of) => of.made, cell: (of) => count(of.made) },
      { head: "freed", value: (of) => of.freed, cell: (of) => count(of.freed) },
      { head: "bytes made", value: (of) => of.made_bytes, cell: (of) => bytes(of.made_bytes) },
    ], memory.objects, { most: 10, more: memory.left_out ? el("p", { class: "soft" },
      `${memory.left_out} more allocations are left out; they have ${bytes(memory.left_out_peak_bytes)} at the peak.`) : null }),
    el("h2", {}, "All objects"),
  ];
}

function objectCard(row) {
  const place = (position) => `${(position.file ?? "?").split("/").pop()}:${position.line ?? "?"} ${position.function}`;
  const steps = row.kind === "heap"
    ? [place(row.allocated_at), ...row.inlined_through.map(place), ...row.path]
    : [];
  const sizes = row.count === 1 ? `1 object of ${bytes(row.bytes)}`
    : `${count(row.count)} objects, ${bytes(row.bytes)} in all` +
      (row.count ? `, ${bytes(row.bytes / row.count)} in the mean` : "");
  return el("section", { class: "card" },
    el("h2", {}, data.names.objects[row.at]),
    only("accesses to it", { object: String(row.at) }),
    el("p", {}, sizes, row.element ? [" of ", named(row.element, toType(row.element)),
      row.element_by_use ? " (as most accesses to them say)" : ""] : null),
    el("p", {}, `${percent(row.wait_share)} of the `, term("wait"), `; ${count(row.accesses)} accesses, of which `,
      data.levels.map((level) => `${count(row.misses[level])} miss ${level}`).join(", ")),
    steps.length ? [el("h3", {}, "Allocated at"), el("ol", { class: "path mono" }, steps.map((step) => el("li", {}, step)))] : null,
    rangesOf(row.at));
}
