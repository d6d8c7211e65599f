// Filters, and the numbers of the accesses that pass them. Each filter is an option of the fragment.

const FILTERS = ["thread", "object", "type", "member", "level", "cause", "time"];

/** Views that obey filters; the others are of the whole run. */
const FILTERED = new Set(["summary", "structures", "source", "objects", "threads", "calls"]);

/** The filters of the fragment by name, and the tables of what passes them. */
let filter = {};
let now;

const isFiltered = () => now !== data.report;

/** The options of a fragment with these filters changed. */
function query(changes = {}) {
  const wanted = { ...filter, ...changes };
  const pairs = FILTERS.filter((name) => wanted[name]).map((name) => [name, wanted[name]]);
  return pairs.length ? `?${new URLSearchParams(pairs)}` : "";
}

/** A fragment with one more option. */
const withOption = (href, name, value) =>
  `${href}${href.includes("?") ? "&" : "?"}${new URLSearchParams([[name, value]])}`;

/** This view with other filters. */
function refiltered(changes) {
  const { view: [id], chosen } = fragment();
  return `#${[id, ...chosen].map((part) => encodeURIComponent(part)).join("/")}${query(changes)}`;
}

/** The stretches that are chosen, from one to the next that is not. */
function chosenTime() {
  const [from, to] = (filter.time ?? "").split("-").map((text) => parseInt(text, 10));
  const last = data.cells.stretches;
  return Number.isInteger(from) && Number.isInteger(to) && from < to ? [Math.max(0, from), Math.min(last, to)] : [0, last];
}

/** A cause of misses of a level, as the fragment has it, and as a reader. */
const causeId = (cause) => `${data.levels[cause.level]} ${cause.name}`;
const causeName = (cause) => `${cause.name} misses of ${data.levels[cause.level]}`;

/** The cause that is chosen. */
const chosenCause = () => (data.cells.causes ?? []).find((cause) => causeId(cause) === filter.cause);

/** Reads the filters of a fragment. A name that there is not filters nothing. */
function readFilters(options) {
  filter = {};
  now = data.report;
  if (!data.cells) return;
  for (const name of FILTERS) if (options.get(name)) filter[name] = options.get(name);
  const { report } = data;
  const is = {
    thread: () => report.threads.some((row) => String(row.thread) === filter.thread),
    object: () => report.objects[Number(filter.object)] !== undefined,
    type: () => report.types.some((row) => row.type === filter.type),
    member: () => report.fields.some((row) => row.type === filter.type && row.member === filter.member),
    level: () => data.levels.includes(filter.level),
    cause: () => chosenCause() !== undefined,
    time: () => chosenTime().join("-") === filter.time && filter.time !== `0-${data.cells.stretches}`,
  };
  for (const name of FILTERS) if (filter[name] && !is[name]()) delete filter[name];
  if (Object.keys(filter).length) now = passed();
}

const nothing = () => ({
  accesses: 0, misses: Object.fromEntries(data.levels.map((level) => [level, 0])),
  waits: data.levels.map(() => 0), wait: { cycles: 0, instruction_cycles: 0, first_touch_cycles: 0 },
});

/** For each group, whether it passes the filters but time and level. */
function passingGroups() {
  const { cells: { groups, fields, types }, report } = data;
  const thread = report.threads.findIndex((row) => String(row.thread) === filter.thread);
  const type = report.types.findIndex((row) => row.type === filter.type);
  const member = report.fields.findIndex((row) => row.type === filter.type && row.member === filter.member);
  return groups.thread.map((of, group) => {
    const line = groups.line[group];
    return (!filter.thread || of === thread) && (!filter.object || groups.object[group] === Number(filter.object)) &&
      (!filter.type || (line !== null && types[line] === type)) &&
      (!filter.member || (line !== null && fields[line] === member));
  });
}

/** The tables of the accesses that pass. */
function passed() {
  const { cells, report, levels } = data;
  const { groups, misses } = cells;
  const passes = passingGroups();
  const [from, to] = chosenTime();
  const cause = filter.cause ? chosenCause() : null;
  // Accesses that missed at least so many levels; those of a cause miss its level.
  const depth = Math.max(filter.level ? levels.indexOf(filter.level) + 1 : 0, cause ? cause.level + 1 : 0);
  const names = ["lines", "fields", "types", "objects", "threads"];
  const sums = Object.fromEntries(names.map((name) => [name, report[name].map(nothing)]));
  const total = nothing();
  let group = 0;
  cells.stretch.forEach((stretch, cell) => {
    group += cells.group_steps[cell];
    const part = cause ? cause.share[group] : 1;
    const accesses = part * (depth ? misses[depth - 1][cell] : cells.accesses[cell]);
    if (!passes[group] || stretch < from || stretch >= to || !accesses) return;
    const line = groups.line[group];
    const of = [total, sums.lines[line], sums.fields[cells.fields[line]], sums.types[cells.types[line]],
      sums.objects[groups.object[group]], sums.threads[groups.thread[group]]];
    for (const sum of of) {
      if (!sum) continue;
      sum.accesses += accesses;
      sum.wait.instruction_cycles += accesses * groups.instructions[group];
      sum.wait.first_touch_cycles += part * misses[levels.length - 1][cell] * groups.first_touch[group];
      levels.forEach((level, at) => {
        sum.misses[level] += at < depth ? accesses : part * misses[at][cell];
        if (at + 1 < depth) return;
        const waited = part * (misses[at][cell] - (misses[at + 1]?.[cell] ?? 0)) * groups.wait[at][group];
        sum.waits[at] += waited;
        sum.wait.cycles += waited;
      });
    }
  });
  [total, ...names.flatMap((name) => sums[name])].forEach(whole);
  const share = (sum) => sum.wait.cycles / Math.max(1e-9, total.wait.cycles);
  const rows = names.map((name) => [name, report[name].map((row, at) =>
    ({ ...row, standard_errors: undefined, ...sums[name][at], wait_share: share(sums[name][at]) }))]);
  return { ...Object.fromEntries(rows), total };
}

/** Numbers of accesses are whole, those of parts, too. */
function whole(sum) {
  sum.accesses = Math.round(sum.accesses);
  for (const level of data.levels) sum.misses[level] = Math.round(sum.misses[level]);
}

/** The rows of a table, each with its place in it: those that pass, the costliest first. */
function rowsOf(name) {
  const rows = now[name].map((row, at) => ({ ...row, at }));
  if (!isFiltered()) return rows;
  return rows.filter((row) => row.accesses > 0)
    .sort((a, b) => b.wait.cycles - a.wait.cycles || b.accesses - a.accesses);
}

/** The part of the cycles that pass which some lines have. */
function shareOfLines(rows) {
  const all = cycles(now.total);
  return rows.reduce((sum, row) => sum + cycles(now.lines[row]), 0) / Math.max(1e-9, all);
}

/** A link that shows only what this is about. */
function only(what, changes) {
  if (!data.cells) return null;
  return el("p", {}, el("a", { href: `#summary${query(changes)}` }, `Only ${what}`));
}

/** What is filtered, and the ways to filter. */
function filterBar(main, id) {
  if (!data.cells) return;
  if (!FILTERED.has(id)) {
    if (isFiltered()) main.append(el("p", { class: "warn" }, data.intros.unfiltered));
    return;
  }
  const { names, report } = data;
  const shown = {
    thread: () => names.threads[report.threads.findIndex((row) => String(row.thread) === filter.thread)],
    object: () => names.objects[Number(filter.object)],
    type: () => filter.type,
    member: () => filter.member,
    level: () => `misses of ${filter.level}`,
    cause: () => causeName(chosenCause()),
    time: () => `stretches ${chosenTime()[0] + 1} to ${chosenTime()[1]} of ${data.cells.stretches}`,
  };
  const chips = FILTERS.filter((name) => filter[name]).map((name) => {
    const gone = name === "type" ? { type: null, member: null } : { [name]: null };
    return el("a", { class: "chip", href: refiltered(gone), "aria-label": `Remove the filter: ${shown[name]()}` },
      `${name}: ${shown[name]()}`, el("span", { "aria-hidden": "true" }, " ✕"));
  });
  main.append(el("section", { class: "filters", "aria-label": "Filters" },
    el("details", { open: openFilters, ontoggle: (event) => { openFilters = event.target.open; } },
      el("summary", {}, "Filter"), el("p", { class: "soft" }, data.intros.filter), timeChoice(), choices(), noCauses()),
    chips.length ? el("p", {}, chips) : null, isFiltered() ? passes() : null,
    filter.cause ? el("p", { class: "soft" }, data.intros.causes) : null));
}

/** Whether the ways to filter are shown, in the next view, too. */
let openFilters = false;

/** How much passes, and how much is in cells that are not told apart. */
function passes() {
  const { report: { total }, cells: { others } } = data;
  const part = (sum, all) => percent(sum / Math.max(1e-9, all));
  return el("p", { class: "soft" },
    `${part(now.total.accesses, total.accesses)} of the accesses and ${part(now.total.wait.cycles, total.wait.cycles)} of the `,
    term("wait"), ` pass. Others: ${count(others.cells)} small cells, ${part(others.accesses, total.accesses)} of the accesses ` +
    `and ${part(others.wait_cycles, total.wait.cycles)} of the wait, pass no filter.`);
}

/** Modelled cycles of each stretch; two sliders choose some of them. */
function timeChoice() {
  const { cells } = data;
  const values = Array(cells.stretches).fill(0);
  let group = 0;
  cells.stretch.forEach((stretch, cell) => {
    group += cells.group_steps[cell];
    data.levels.forEach((_, at) => {
      values[stretch] += (cells.misses[at][cell] - (cells.misses[at + 1]?.[cell] ?? 0)) * cells.groups.wait[at][group];
    });
  });
  const most = Math.max(1e-9, ...values);
  const [from, to] = chosenTime();
  let begun = null;
  const choose = (a, b) => {
    const time = `${Math.min(a, b)}-${Math.max(a, b) + 1}`;
    location.hash = refiltered({ time: time === `0-${cells.stretches}` ? null : time });
  };
  const bars = values.map((value, at) => el("span", {
    class: at >= from && at < to ? "in" : "",
    "data-tip": `stretch ${at + 1}: waits ${count(value)} cycles; from access ${count(at * cells.stretch_accesses)}`,
    onpointerdown: (event) => { event.preventDefault(); begun = at; },
    onpointerup: () => { if (begun !== null) choose(begun, at); begun = null; },
  }, el("i", { style: { height: `${Math.max(2, 100 * value / most)}%` } })));
  const slider = (name, value, change) => el("label", {}, `${name} `, el("input", {
    type: "range", min: "1", max: String(cells.stretches), value: String(value),
    onchange: (event) => change(Number(event.target.value)),
  }));
  return el("div", {},
    el("div", { class: "stretches", "aria-hidden": "true" }, bars),
    el("p", {}, slider("from stretch", from + 1, (at) => choose(at - 1, Math.max(at, to) - 1)), " ",
      slider("to", to, (at) => choose(Math.min(from, at - 1), at - 1))));
}

/** A thread, level, type and object to choose. */
function choices() {
  const { report, names } = data;
  const choice = (name, options, changes = {}) => {
    const choose = (event) => { location.hash = refiltered({ ...changes, [name]: event.target.value || null }); };
    const made = options.slice(0, 500).map(([value, text]) =>
      el("option", { value, selected: filter[name] === value }, text));
    return el("label", {}, `${name} `, el("select", { onchange: choose }, el("option", { value: "" }, "all"), made));
  };
  return el("p", { class: "choices" },
    choice("thread", report.threads.map((row, at) => [String(row.thread), names.threads[at]])),
    choice("level", data.levels.map((level) => [level, `misses of ${level}`])),
    data.cells.causes ? choice("cause", data.cells.causes.map((cause) => [causeId(cause), causeName(cause)])) : null,
    choice("type", report.types.map((row, at) => [row.type, names.types[at]]), { member: null }),
    filter.type ? choice("member", report.fields.filter((row) => row.type === filter.type && row.member)
      .map((row) => [row.member, row.member])) : null,
    choice("object", report.objects.map((_, at) => [String(at), names.objects[at]])));
}

/** How to choose causes, where they are not known. */
const noCauses = () => (data.cells.causes ? null
  : el("div", {}, el("p", { class: "soft" }, data.intros.no_causes), command(data.commands.sim)));
