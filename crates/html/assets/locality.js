// How often data are used again, and how accesses walk through memory.

function locality(main) {
  main.append(el("h1", {}, "Locality"), el("p", { class: "soft" }, data.intros.locality));
  const curve = tableOf("miss_ratio_curve");
  if (!curve) return void main.append(missing("rows"));
  const rows = curve.rows.filter((row) => row.cache_bytes > 0);
  if (rows.length > 1) {
    main.append(el("h2", {}, "Misses of caches of every size"), chart("Miss ratio by size of a cache", {
      x: rows.map((row) => row.cache_bytes), log: true, most: Math.max(0.01, ...rows.map((row) => row.miss_ratio)),
      series: [{ name: "miss ratio", colour: "var(--streamed)", values: rows.map((row) => row.miss_ratio) }],
      marks: data.report.machine.levels.map((level) => ({ at: level.bytes, name: `${level.name} ${bytes(level.bytes)}` })),
      xText: bytes, yText: percent,
      tell: (at) => `a cache of ${bytes(rows[at].cache_bytes)} misses ${percent(rows[at].miss_ratio)} of the accesses`,
    }));
  }
  const dataCell = (row) => (row.data ? named(row.data.name, toType(row.data.type, row.data.member)) : "");
  const placeCell = (row) => named(row.line.name, lineFragment(row.line));
  const strides = tableOf("strides");
  if (strides) {
    main.append(el("h2", {}, "How accesses walk through memory"), el("p", { class: "soft" }, data.intros.strides), table("Strides", [
      { head: "pattern", left: true, cell: (row) => row.pattern },
      { head: "of it", value: (row) => row.share, cell: (row) => percent(row.share) },
      { head: "usual step", value: (row) => Math.abs(row.usual_step ?? 0), cell: (row) => (row.usual_step === null ? "" : `${row.usual_step} B`) },
      { head: "line", left: true, cell: placeCell },
      { head: "data", left: true, cell: dataCell },
      { head: "accesses", value: (row) => row.accesses, cell: (row) => count(row.accesses) },
      { head: "misses", value: (row) => row.misses, cell: (row) => count(row.misses) },
    ], strides.rows, { most: 25 }));
  }
  const reuse = tableOf("reuse_by_data");
  if (reuse) {
    const share = (id, head) => ({ head, value: (row) => row[id] ?? 0, cell: (row) => (row[id] === null ? "" : percent(row[id])) });
    main.append(el("h2", {}, "Reuse by data"), el("p", { class: "soft" }, data.intros.reuse), table("Reuse", [
      { head: "data", left: true, cell: dataCell },
      { head: "accesses", value: (row) => row.accesses, cell: (row) => count(row.accesses) },
      { head: "median distance", value: (row) => row.median_bytes ?? 0, cell: (row) => (row.median_bytes === null ? "" : bytes(row.median_bytes)) },
      share("misses_32KiB", "miss 32 KiB"), share("misses_1MiB", "1 MiB"), share("misses_32MiB", "32 MiB"),
    ], reuse.rows, { most: 25 }));
  }
}

/** The fragment of a line that a table names. */
function lineFragment(line) {
  const of = data.functions.find((of) => of.linkage_name === line.linkage_name);
  return of ? at("source", of.linkage_name, line.line ?? "") : null;
}
