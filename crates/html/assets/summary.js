// The first view: how much is waited for, for what, and what to do.

const CARDS = 3;
const REJECTED = 5;

function summary(main) {
  const { words } = data;
  if (isFiltered()) return void passedSummary(main);
  main.append(el("h1", {}, words.sentence));
  if (words.gain) {
    main.append(el("p", {}, words.gain));
    if (!words.edits.length) main.append(command(data.commands.advise));
    else if (words.edits[0].is_worth_it) main.append(command(words.edits[0].command));
  }
  main.append(runBar());
  if (words.shared.length) {
    main.append(el("h2", {}, "What threads take from each other"));
    words.shared.slice(0, CARDS).forEach((said) => main.append(sharedCard(said)));
  }
  if (words.findings.length) {
    main.append(el("h2", {}, "What is waited for"));
    if (words.remark) main.append(el("p", { class: "warn" }, words.remark));
    words.findings.slice(0, CARDS).forEach((_, number) => main.append(findingCard(number)));
    if (words.findings.length > CARDS) main.append(otherFindings());
  }
  if (words.sharing) main.append(sharingCard());
  if (words.edits.length) main.append(editTable());
  main.append(el("h2", {}, "What ran, on what"));
  main.append(el("dl", {}, words.facts.flatMap(({ heading, text }) => [el("dt", {}, heading), el("dd", {}, text)])));
  main.append(el("h2", {}, "What was not recorded"));
  main.append(words.notes.length
    ? el("ul", {}, words.notes.map((note) => el("li", { class: "warn" }, note)))
    : el("p", {}, data.intros.complete));
  main.append(el("p", { class: "soft" }, data.intros.model));
  const why = command(data.commands.why);
  main.append(el("h3", {}, "Why each miss happens"), why);
}

/** What passes the filters: the levels that it waits for, and the first lines, members and objects. */
function passedSummary(main) {
  main.append(el("h1", {}, "What passes the filters"), el("p", { class: "soft" }, data.intros.filtered));
  const { total } = now;
  const parts = [
    ["instructions", "instructions", total.wait.instruction_cycles],
    ...data.levels.map((_, at) => [SERIES[at].slice(2), `waiting for ${data.levels[at + 1] ?? "memory"}`, total.waits[at]]),
    ["first", "first touches", total.wait.first_touch_cycles],
  ].filter(([, , part]) => part > 0);
  const all = Math.max(1e-9, cycles(total));
  main.append(el("section", { "aria-label": "Modelled cycles of what passes" },
    el("div", { class: "bar", "aria-hidden": "true" }, parts.map(([id, name, part]) =>
      el("span", { class: id, style: { flexGrow: part / all }, "data-tip": `${name}: ${percent(part / all)}` }))),
    el("ul", { class: "legend" }, parts.map(([id, name, part]) =>
      el("li", {}, el("span", { class: `swatch ${id}` }), `${name} ${percent(part / all)}`)))));
  main.append(el("p", {}, `${count(total.accesses)} accesses, of which `,
    data.levels.map((level) => `${count(total.misses[level])} miss ${level}`).join(", "), "."));
  const first = (title, name, column) => main.append(el("h2", {}, title),
    table(title, numberColumns(column), rowsOf(name), { most: 8, more: leftOut(name) }));
  const { names } = data;
  first("Members", "fields", { head: "member", left: true, cell: (row) => named(names.fields[row.at], toType(row.type, row.member)) });
  first("Lines", "lines", { head: "line", left: true,
    cell: (row) => [named(names.lines[row.at][1], toLine(row.at)), "  ", names.lines[row.at][0]].flat() });
  first("Objects", "objects", { head: "where", left: true, cell: (row) => link(names.objects[row.at], "objects", row.at) });
}

function runBar() {
  const { bar } = data.words;
  if (!bar.length) return el("p", { class: "soft" }, "");
  const parts = bar.map((part) => el("span", {
    class: part.id, style: { flexGrow: part.share }, "data-tip": `${part.label}: ${part.percent}; ${part.text}`,
  }));
  const legend = bar.map((part) => el("li", {},
    el("span", { class: `swatch ${part.id}` }),
    el("button", { type: "button", class: "term", "data-tip": part.text, "aria-description": part.text }, part.label),
    ` ${part.percent}`));
  return el("section", { "aria-label": "Modelled cycles of the run" },
    el("div", { class: "bar", "aria-hidden": "true" }, parts), el("ul", { class: "legend" }, legend));
}

function findingCard(number) {
  const found = data.report.findings[number];
  const said = data.words.findings[number];
  const row = lineRow(found);
  const type = toType(found.type, found.member);
  const left = el("div", {},
    el("h3", {}, `${number + 1}. `, named(said.data, type), "  ",
      el("span", { class: "share" }, `${said.share} of the wait`)),
    el("p", {}, row >= 0 ? el("a", { href: toLine(row) }, said.place) : said.place),
    sourceLines(found, row),
    said.no_source ? el("p", { class: "soft" }, said.no_source) : null,
    el("ul", {}, said.facts.map((fact) => el("li", {}, fact))),
    said.advice ? el("p", { class: "arrow" }, said.advice) : null,
    command(said.command));
  const at = data.structureOf.get(found.type);
  const right = at === undefined ? null : el("div", {},
    el("h3", {}, named(data.structures[at].name, toType(found.type)), ` (${data.structures[at].bytes} bytes)`),
    picture(data.structures[at], { chosen: found.member, most: 8 }), scale(false, true));
  return el("article", { class: "card finding" }, left, right);
}

function sourceLines(found, row) {
  const lines = found.source?.lines;
  if (!lines) return null;
  const of = data.functions[data.functionOf.get(row)];
  const painted = of?.pieces.flat().find((line) => line.n === lines.find((line) => line.is_subject)?.line);
  return el("pre", { class: "scroll", tabindex: "0" },
    lines.map((line) => [`${line.line} │ `, painted && line.is_subject ? paint(painted) : line.text, "\n"]).flat(2));
}

function otherFindings() {
  const rows = data.words.findings.slice(CARDS).map((said, at) => ({ said, found: data.report.findings[at + CARDS] }));
  return el("details", {}, el("summary", {}, `${rows.length} smaller ones`),
    table("Smaller findings", [
      { head: "of the wait", cell: ({ said }) => said.share },
      { head: "data", left: true, cell: ({ said, found }) => named(said.data, toType(found.type, found.member)) },
      { head: "line", left: true, cell: ({ said, found }) => {
        const row = lineRow(found);
        return named(said.place, row >= 0 ? toLine(row) : null);
      } },
      { head: "change", left: true, cell: ({ said }) => said.advice ?? "" },
    ], rows));
}

/** An object that threads take lines of. */
function sharedCard(said) {
  const row = lineRow(said.access);
  const at = data.structureOf.get(said.access.type);
  const left = el("div", {},
    el("h3", {}, named(said.data, toType(said.access.type, said.access.member)), "  ",
      el("span", { class: "share" }, `${said.share} of the cycles`)),
    el("p", {}, named(said.place, row >= 0 ? toLine(row) : null)),
    el("ul", {}, said.facts.map((fact) => el("li", {}, fact))),
    said.advice ? el("p", { class: "arrow" }, said.advice) : null,
    said.command ? command(said.command) : null);
  const right = at === undefined ? null : el("div", {},
    el("h3", {}, named(data.structures[at].name, toType(said.access.type)), ` (${data.structures[at].bytes} bytes)`),
    picture(data.structures[at], { chosen: said.access.member, most: 8 }), scale(false, true));
  return el("article", { class: "card finding" }, left, right);
}

function sharingCard() {
  return el("section", {}, el("h2", {}, link("What threads take from each other", "threads")),
    el("p", {}, data.words.sharing));
}

/** Edits that are worth it, and a few of those that are not; the others are a click away. */
function editTable() {
  const { edits } = data.words;
  const most = edits.filter((edit) => edit.is_worth_it).length + REJECTED;
  return el("section", {}, el("h2", {}, "Edits that were replayed"), table("Edits", [
    { head: "verdict", left: true, cell: (edit) => el("span", { class: edit.is_worth_it ? "good" : "soft" }, edit.verdict) },
    { head: "edit", left: true, cell: (edit) => el("code", {}, edit.edit) },
    { head: "of the run", cell: (edit) => edit.gain },
    { head: "misses", left: true,
      cell: (edit) => edit.misses.map(([level, before, after]) => `${level} ${before} → ${after}`).join(", ") },
    { head: "confidence", left: true, cell: (edit) => edit.confidence },
  ], edits, { most }));
}
