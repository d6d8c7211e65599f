// Call paths as a flame graph, and what is above and below one function.

/** Boxes narrower than this part of the picture are left out. */
const NARROWEST = 0.002;
const DEEPEST = 60;

function calls(main, [by = "cycles", focus], options) {
  main.append(el("h1", {}, "Call tree"), el("p", { class: "soft" }, data.intros.calls));
  if (!data.calls) return void main.append(missing("rows"));
  const { frames } = data.calls;
  const kind = by === "cycles" || data.levels.includes(by) ? by : "cycles";
  const hidden = new Set(options.getAll("without"));
  const isInverted = options.get("invert") === "1";
  const paths = weighed(kind, hidden);
  const total = paths.reduce((sum, path) => sum + path.weight, 0);
  const go = (changes) => {
    const wanted = { kind, focus, without: [...hidden], invert: isInverted, ...changes };
    let href = at(...["calls", wanted.kind, wanted.focus].filter((part) => part !== undefined));
    for (const name of wanted.without) href = withOption(href, "without", name);
    return wanted.invert ? withOption(href, "invert", "1") : href;
  };
  main.append(callChoices(kind, isInverted, hidden, go));
  if (!(total > 0)) return void main.append(el("p", {}, data.intros.no_calls));
  const show = (frame) => go({ focus: frames[frame].linkage_name, invert: false });
  const chosen = frames.findIndex((frame) => frame.linkage_name === focus);
  if (chosen >= 0) main.append(...sandwich(paths, chosen, { total, show, kind, go, hidden }));
  else {
    const whole = grown(paths.map(({ frames: path, weight }) => ({ path: isInverted ? [...path].reverse() : path, weight })));
    main.append(flame(isInverted ? "Callees first" : "Callers first", whole, { total, show, kind }));
  }
  main.append(el("h2", {}, "Functions"), functionTable(paths, total, kind, show));
}

function callChoices(kind, isInverted, hidden, go) {
  const choice = (text, href, isChosen) => el("a", { class: "chip", href, "aria-current": isChosen ? "true" : undefined }, text);
  return el("div", { class: "choices" },
    el("p", {}, choice("cycles", go({ kind: "cycles" }), kind === "cycles"),
      data.levels.map((level) => choice(`${level} misses`, go({ kind: level }), kind === level))),
    el("p", {}, choice("callers first", go({ focus: undefined, invert: false }), !isInverted),
      choice("callees first", go({ focus: undefined, invert: true }), isInverted),
      [...hidden].map((name) => {
        const frame = data.calls.frames.find((frame) => frame.linkage_name === name);
        return choice(`collapsed: ${frame?.name ?? name} ✕`, go({ without: [...hidden].filter((other) => other !== name) }), false);
      })));
}

/** The part of a line that passes the filters. */
function passingPart(rows, kind) {
  if (!isFiltered()) return 1;
  const weight = (row) => (kind === "cycles" ? cycles(row) : row.misses[kind]);
  const sum = (table) => rows.reduce((all, row) => all + weight(table.lines[row]), 0);
  const all = sum(data.report);
  return all > 0 ? sum(now) / all : 0;
}

/** Paths with their weight, the outermost function first, without those that are collapsed into their callers. */
function weighed(kind, hidden) {
  const { calls } = data;
  const weights = kind === "cycles" ? calls.cycles : calls.misses[data.levels.indexOf(kind)];
  return calls.paths.map((path, at) => ({
    frames: path.filter((frame) => !hidden.has(calls.frames[frame].linkage_name)),
    weight: weights[at] * passingPart(calls.lines[calls.line[at]].rows, kind),
    line: calls.line[at],
  })).filter((path) => path.weight > 0 && path.frames.length);
}

/** A tree of paths: boxes with their weight, and those inside. */
function grown(paths) {
  const root = { weight: 0, inside: new Map() };
  for (const { path, weight } of paths) {
    let box = root;
    box.weight += weight;
    for (const frame of path.slice(0, DEEPEST)) {
      if (!box.inside.has(frame)) box.inside.set(frame, { frame, weight: 0, inside: new Map() });
      box = box.inside.get(frame);
      box.weight += weight;
    }
  }
  return root;
}

/** A tree as rows of boxes. */
function flame(label, root, { total, show, kind }) {
  const rows = [];
  const place = (box, depth, left) => {
    let from = left;
    for (const inside of [...box.inside.values()].sort((a, b) => b.weight - a.weight)) {
      const width = inside.weight / total;
      if (width >= NARROWEST) {
        (rows[depth] ??= []).push({ box: inside, from, width });
        place(inside, depth + 1, from);
      }
      from += width;
    }
  };
  place(root, 0, 0);
  const what = kind === "cycles" ? "cycles" : `${kind} misses`;
  const drawn = rows.map((boxes) => el("div", { class: "flames" }, boxes.map(({ box, from, width }) => {
    const { name } = data.calls.frames[box.frame];
    const says = `${name}: ${count(box.weight)} ${what}, ${percent(width)}`;
    return el("a", { href: show(box.frame), class: `flame hue${hue(name)}`, "data-tip": says, "aria-label": says,
      style: { left: `${100 * from}%`, width: `${100 * width}%` } }, width > 0.03 ? name : "");
  })));
  return el("section", { "aria-label": label }, el("div", { class: "flamegraph" }, drawn));
}

/** One of a few colours for a name, the same in each picture. */
function hue(name) {
  let sum = 0;
  for (const letter of name) sum = (sum * 31 + letter.codePointAt(0)) % 997;
  return sum % 5;
}

/** What calls a function, and what it calls. */
function sandwich(paths, chosen, { total, show, kind, go, hidden }) {
  const through = paths.filter((path) => path.frames.includes(chosen));
  const sum = through.reduce((all, path) => all + path.weight, 0);
  const { name, linkage_name: linkage } = data.calls.frames[chosen];
  const callers = grown(through.map(({ frames, weight }) =>
    ({ path: frames.slice(0, frames.indexOf(chosen)).reverse(), weight })));
  const callees = grown(through.map(({ frames, weight }) => ({ path: frames.slice(frames.indexOf(chosen) + 1), weight })));
  const of = data.functions.find((of) => of.linkage_name === linkage);
  const lines = new Map();
  for (const path of through.filter((path) => path.frames.at(-1) === chosen)) {
    lines.set(path.line, (lines.get(path.line) ?? 0) + path.weight);
  }
  const rows = [...lines].sort((a, b) => b[1] - a[1]);
  return [
    el("h2", { class: "mono" }, name),
    el("p", {}, `${percent(sum / total)} with all that it calls. `, of ? el("a", { href: at_function(of) }, "Source") : null, " ",
      el("a", { href: go({ focus: undefined, without: [...hidden, linkage] }) }, "Collapse into its callers"), " ",
      el("a", { href: go({ focus: undefined }) }, "All functions")),
    el("h3", {}, "Its callers"),
    callers.inside.size ? flame("Callers", callers, { total: Math.max(1e-9, sum), show, kind }) : el("p", { class: "soft" }, "none is known"),
    el("h3", {}, "What it calls"),
    callees.inside.size ? flame("Callees", callees, { total: Math.max(1e-9, sum), show, kind }) : el("p", { class: "soft" }, "nothing that accesses memory"),
    rows.length ? table("Its own lines", [
      { head: "of it", value: ([, weight]) => weight, cell: ([, weight]) => percent(weight / sum) },
      { head: "line", left: true, cell: ([line]) => {
        const { name: place, rows: [row] } = data.calls.lines[line];
        return named(place, row === undefined ? null : toLine(row));
      } },
    ], rows, { most: 10 }) : null,
  ].filter(Boolean);
}

/** Functions with all that they call, and by themselves. */
function functionTable(paths, total, kind, show) {
  const all = new Map();
  const of = (frame) => {
    if (!all.has(frame)) all.set(frame, { frame, whole: 0, own: 0 });
    return all.get(frame);
  };
  for (const { frames, weight } of paths) {
    for (const frame of new Set(frames)) of(frame).whole += weight;
    of(frames.at(-1)).own += weight;
  }
  const rows = [...all.values()].sort((a, b) => b.whole - a.whole);
  return table("Functions", [
    { head: "with callees", value: (row) => row.whole, cell: (row) => percent(row.whole / total) },
    { head: "by itself", value: (row) => row.own, cell: (row) => percent(row.own / total) },
    { head: "function", left: true, cell: (row) => el("a", { href: show(row.frame) }, data.calls.frames[row.frame].name) },
    { head: kind === "cycles" ? "cycles" : `${kind} misses`, value: (row) => row.whole, cell: (row) => count(row.whole) },
  ], rows, { most: 25 });
}
