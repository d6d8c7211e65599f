// Objects, by the call that allocates them.

function objects(main, [chosen]) {
  main.append(el("h1", {}, "Objects"), el("p", { class: "soft" }, data.intros.objects));
  const rows = rowsOf("objects");
  const most = Math.max(1, ...rows.map((row) => row.wait_share));
  const row = chosen === undefined ? undefined : { ...now.objects[Number(chosen)], at: Number(chosen) };
  if (row?.misses) main.append(objectCard(row));
  const meter = (row) => el("span", { class: "meters", "aria-hidden": "true" },
    el("span", { class: "meter", style: { width: `${100 * row.wait_share / most}%` } }));
  main.append(table("Objects", [
    { head: "", cell: meter },
    ...numberColumns({ head: "where", left: true, cell: (row) => link(data.names.objects[row.at], "objects", row.at) }),
    { head: "objects", value: (row) => row.count, cell: (row) => count(row.count) },
    { head: "bytes", value: (row) => row.bytes, cell: (row) => bytes(row.bytes) },
    { head: "made of", left: true, cell: (row) => (row.element ? named(row.element, toType(row.element)) : "") },
  ], rows, { chosen: rows.findIndex((other) => other.at === row?.at), more: leftOut("objects") }));
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
