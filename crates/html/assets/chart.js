// Lines and bars along one axis.

const CHART = { height: 250, left: 64, right: 14, top: 12, bottom: 30 };

/** Pictures are as wide as there is room, so that letters have their size on a phone, too. */
const roomFor = () => Math.max(280, Math.min(900, document.documentElement.clientWidth - 56));

/**
 * A chart: `series` of { name, colour, values }, each as long as `x`; `form` is "line" or "stack". `marks` are places on
 * the axis with a name; `tops` are heights that stacks reach in between. Each place can be pointed at: `tell` says what is there, and `go` where it leads.
 */
function chart(label, { x, series, form = "line", log = false, marks = [], tops = [], xText, yText, tell, most }) {
  const { height, left, right, top, bottom } = CHART;
  const width = roomFor();
  const place = log ? (value) => Math.log2(Math.max(1, value)) : (value) => value;
  const [from, to] = [place(Math.min(...x, ...marks.map((mark) => mark.at))), place(Math.max(...x, ...marks.map((mark) => mark.at)))];
  const sums = form === "stack" ? x.map((_, at) => series.reduce((sum, one) => sum + one.values[at], 0))
    : series.flatMap((one) => one.values);
  const highest = most ?? Math.max(1e-12, ...sums, ...tops);
  const toX = (value) => left + (place(value) - from) / Math.max(1e-12, to - from) * (width - left - right);
  const toY = (value) => height - bottom - Math.min(1, value / highest) * (height - top - bottom);
  const svg = shape("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  for (const part of [0, 0.5, 1]) {
    const y = toY(highest * part);
    svg.append(shape("line", { class: "axis", x1: left, x2: width - right, y1: y, y2: y }),
      shape("text", { x: left - 6, y: y + 4, "text-anchor": "end" }, yText(highest * part)));
  }
  const ticks = log ? [...Array(Math.floor(to) - Math.ceil(from) + 1).keys()].map((at) => 2 ** (Math.ceil(from) + at))
    .filter((_, at, all) => at % Math.ceil(all.length / (width > 600 ? 8 : 4)) === 0) : (width > 600 ? [0, 0.25, 0.5, 0.75, 1] : [0, 0.5, 1]).map((part) => from + part * (to - from));
  ticks.forEach((value, at) => svg.append(shape("text", {
    x: toX(value), y: height - 8, "text-anchor": at === 0 ? "start" : at === ticks.length - 1 ? "end" : "middle",
  }, xText(value))));
  if (form === "stack") svg.append(...stacked(x, series, toY, { width, left, right }));
  else for (const { values, colour } of series) svg.append(curve(x, values, colour, toX, toY));
  const isLast = (at) => toX(at) > width - 140;
  marks.forEach(({ at, name }, number) => {
    svg.append(shape("line", { class: "mark", x1: toX(at), x2: toX(at), y1: top, y2: height - bottom }),
      shape("text", isLast(at)
        ? { x: toX(at) - 4, y: height - bottom - 8 - 14 * number, "text-anchor": "end" }
        : { x: toX(at) + 4, y: height - bottom - 8 - 14 * number }, name));
  });
  const step = (width - left - right) / Math.max(1, x.length);
  tops.forEach((top, at) => top === null ? null : svg.append(shape("line", {
    class: "top", x1: left + at * step, x2: left + (at + 1) * step - 0.6, y1: toY(top), y2: toY(top),
  })));
  x.forEach((value, at) => {
    const middle = form === "stack" ? left + (at + 0.5) * step : toX(value);
    svg.append(shape("rect", {
      class: "touch", x: middle - step / 2, y: top, width: step, height: height - top - bottom, "data-tip": tell(at),
    }));
  });
  const legend = el("ul", { class: "legend" }, series.map(({ name, full, colour }) =>
    el("li", { "data-tip": full }, el("span", { class: "swatch", style: { background: colour } }), name)));
  return el("figure", {}, svg, series.length > 1 ? legend : null);
}

function stacked(x, series, toY, { width, left, right }) {
  const step = (width - left - right) / Math.max(1, x.length);
  return x.flatMap((_, at) => {
    let below = 0;
    return series.map(({ values, colour }) => {
      const [y, base] = [toY(below + values[at]), toY(below)];
      below += values[at];
      return shape("rect", { x: left + at * step, y, width: Math.max(0.5, step - 0.6), height: Math.max(0, base - y),
        style: { fill: colour } });
    });
  });
}

function curve(x, values, colour, toX, toY) {
  const points = x.map((value, at) => `${toX(value).toFixed(1)},${toY(values[at]).toFixed(1)}`).join(" ");
  return shape("polyline", { class: "curve", points, style: { stroke: colour } });
}

/** Colours of levels, and of anything else in a row. */
const SERIES = ["--streamed", "--overlapping", "--chained", "--stored", "--first", "--lost", "--instructions"];
const seriesColour = (at) => `var(${SERIES[at % SERIES.length]})`;
