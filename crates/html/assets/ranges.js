// The bytes of an object that are accessed: over the run, and by thread.

const MAP = { row: 6, left: 64 };

/** Both pictures of an object, if there are any. */
function rangesOf(object) {
  const of = data.ranges.find((of) => of.object === object);
  if (!of) return null;
  return [
    el("h3", {}, "Its bytes over the run"), el("p", { class: "soft" }, data.intros.ranges), heatMap(of),
    of.threads.length > 1 ? [
      el("h3", {}, "Its bytes by thread"), el("p", { class: "soft" }, data.intros.ranges_by_thread), threadRanges(of),
    ] : null,
  ];
}

/** Bins from left to right, stretches from top to bottom. */
function heatMap(of) {
  const { row, left } = MAP;
  const width = roomFor();
  const columns = Math.max(...of.bins.map((bins) => bins.length));
  const most = Math.max(1, ...of.bins.flat());
  const step = (width - left) / columns;
  const height = of.bins.length * row + 22;
  const label = `Accesses to the bytes of ${data.names.objects[of.object]}, over the run`;
  const svg = shape("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  of.bins.forEach((bins, stretch) => bins.forEach((accesses, bin) => {
    if (!accesses) return;
    const end = Math.min(of.bytes, (bin + 1) * of.bin_bytes);
    svg.append(shape("rect", {
      x: left + bin * step, y: stretch * row, width: step, height: row, style: { fill: heat(accesses / most) },
      "data-tip": `bytes ${bin * of.bin_bytes} to ${end - 1}, from access ${count(of.first_access[stretch])}: ${count(accesses)} accesses`,
    }));
  }));
  const text = (x, y, anchor, words) => svg.append(shape("text", { x, y, "text-anchor": anchor }, words));
  text(left - 6, 10, "end", count(of.first_access[0]));
  if (of.bins.length > 4) text(left - 6, of.bins.length * row, "end", count(of.first_access.at(-1)));
  text(left, height - 6, "start", "byte 0");
  text(width, height - 6, "end", bytes(of.bytes));
  return el("figure", {}, svg);
}

/** A bar a thread: all accesses, and the middle nine tenths. */
function threadRanges(of) {
  const { left } = MAP;
  const width = roomFor();
  const row = of.threads.length > 40 ? 8 : 16;
  const height = of.threads.length * row + 22;
  const toX = (offset) => left + (width - left) * offset / Math.max(1, of.bytes);
  const label = `Bytes of ${data.names.objects[of.object]} that each thread accesses`;
  const svg = shape("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  const bar = (from, to, y, name, tip) => svg.append(shape("rect", {
    class: name, x: toX(from), y, width: Math.max(1, toX(to) - toX(from)), height: row - 2, "data-tip": tip,
  }));
  of.threads.forEach(({ thread, accesses, from, p5, p95, to }, at) => {
    const tip = `thread ${thread}: bytes ${from} to ${to - 1}, middle nine tenths ${p5} to ${p95 - 1}, ${count(accesses)} accesses`;
    bar(from, to, at * row, "range", tip);
    bar(p5, p95, at * row, "range middle", tip);
    if (row > 8) svg.append(shape("text", { x: left - 6, y: at * row + 11, "text-anchor": "end" }, `thread ${thread}`));
  });
  svg.append(shape("text", { x: left, y: height - 6 }, "byte 0"),
    shape("text", { x: width, y: height - 6, "text-anchor": "end" }, bytes(of.bytes)));
  return el("figure", {}, svg, of.left_out ? el("figcaption", { class: "soft" }, `${of.left_out} more threads are left out.`) : null);
}
