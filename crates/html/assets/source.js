// Functions, their text, and what each line costs.

const KINDS = { c: "c", s: "s", n: "n1", k: "k", t: "t", f: "f", p: "p" };

/** A line's text in colours. */
const paint = (line) => line.t.map(([kind, text]) => (kind ? el("span", { class: KINDS[kind] }, text) : text));

function source(main, [name, line]) {
  main.append(el("h1", {}, "Source"), el("p", { class: "soft" }, data.intros.source));
  if (!data.functions.length) {
    main.append(el("p", {}, "No access of this run has a line."));
    return;
  }
  const index = Math.max(0, data.functions.findIndex((of) => of.linkage_name === name));
  const list = el("ul", { class: "pick" }, data.functions.slice(0, 400).map((of, at) =>
    el("li", {}, el("a", { href: at_function(of), "aria-current": at === index ? "true" : undefined },
      el("span", {}, of.name), el("span", { class: "number" }, percent(shareOfLines(of.rows)))))));
  main.append(el("div", { class: "pair" }, el("nav", { "aria-label": "Functions" }, list),
    listing(data.functions[index], line ? Number(line) : null)));
}

const at_function = (of) => at("source", of.linkage_name);

/** The sums of the rows of each line. */
function byLine(of) {
  const sums = new Map();
  for (const row of of.rows) {
    const numbers = now.lines[row];
    const line = shownPosition(numbers).line ?? 0;
    const sum = sums.get(line) ?? { cycles: 0, accesses: 0, wait: 0, misses: data.levels.map(() => 0), rows: [] };
    sum.cycles += cycles(numbers);
    sum.wait += numbers.wait_share;
    sum.accesses += numbers.accesses;
    data.levels.forEach((level, at) => { sum.misses[at] += numbers.misses[level]; });
    sum.rows.push(row);
    sums.set(line, sum);
  }
  return sums;
}

/** Whether instructions are shown, also of the next function. */
let withInstructions = false;

/** Rows of the instructions of a line; `shared` are the line's numbers. */
function instructions(of, line, shared) {
  return of.instructions.filter((one) => one.n === line).map((one) => {
    const numbers = one.is_exact === null ? shared.map(() => "")
      : one.is_exact ? [percent(one.wait_share), count(one.accesses), ...data.levels.map((_, at) => count(one.misses[at] ?? 0))]
        : shared.map((text) => (text ? `~${text}` : ""));
    return el("tr", { class: "asm" }, el("td", { class: "heat" }),
      numbers.map((text, at) => el("td", { class: at > 1 ? "wide" : "" }, text)),
      el("td", { class: "n" }, one.address),
      el("td", { class: "text mono" }, one.text, one.in ? el("span", { class: "soft" }, `  in ${one.in}`) : ""));
  });
}

function listing(of, target) {
  const sums = byLine(of);
  const most = Math.max(1e-9, ...[...sums.values()].map((sum) => sum.cycles));
  const box = el("section", { "aria-label": of.name }, el("h2", { class: "mono" }, of.name),
    el("p", { class: "soft" }, of.file ? `${of.file}: ` : "", `${percent(shareOfLines(of.rows))} of the modelled cycles`));
  if (of.instructions.length) {
    const box_of = el("input", { type: "checkbox", id: "asm" });
    box_of.checked = withInstructions;
    box_of.addEventListener("change", () => {
      withInstructions = box_of.checked;
      box.classList.toggle("with-asm", withInstructions);
    });
    box.classList.toggle("with-asm", withInstructions);
    box.append(el("p", {}, el("label", {}, box_of, " instructions beneath their lines; ~ is the line's number, which several share")));
  }
  of.pieces.forEach((piece, number) => {
    const head = el("thead", {}, el("tr", {}, ["", "wait", "accesses", ...data.levels, "", ""]
      .map((text) => (text ? el("th", { scope: "col", class: data.levels.includes(text) ? "wide" : undefined }, data.levels.includes(text) ? term("miss", text) : text) : el("td")))));
    const rows = piece.flatMap((line) => {
      const sum = sums.get(line.n);
      const numbers = sum
        ? [percent(sum.wait), count(sum.accesses), ...sum.misses.map(count)]
        : Array(2 + data.levels.length).fill("");
      const margin = el("td", { class: "heat" });
      if (sum) margin.style.background = heat(sum.cycles / most);
      const row = el("tr", { class: line.n === target ? "target" : undefined, id: `line-${line.n}` }, margin,
        numbers.map((text, at) => el("td", {
          class: [at > 1 ? "wide" : "", text === "0" || text === "0%" ? "zero" : ""].join(" "),
        }, text)),
        el("td", { class: "n" }, String(line.n)),
        el("td", { class: "text mono" }, paint(line)));
      return [row, ...instructions(of, line.n, numbers)];
    });
    box.append(el("div", { class: "listing", tabindex: "0", role: "region", "aria-label": `Text, piece ${number + 1}` },
      el("table", { class: "mono" }, head, el("tbody", {}, rows))));
  });
  if (of.no_text) box.append(el("p", { class: "soft" }, of.no_text));
  const rows = of.rows.map((at) => ({ ...now.lines[at], at })).filter((row) => row.accesses > 0);
  const chosen = rows.findIndex((row) => target !== null && shownPosition(row).line === target);
  box.append(el("h3", {}, "What its lines touch"), table("Data by line", [
    {
      head: "line",
      value: (row) => -(shownPosition(row).line ?? 0),
      cell: (row) => el("a", { href: toLine(row.at) }, String(shownPosition(row).line ?? "?")),
    },
    ...numberColumns(
      { head: "data", left: true, cell: (row) => named(data.names.lines[row.at][0], toType(row.type, row.member)) },
    ),
    ...(rows.some((row) => row.inlined_into)
      ? [{ head: "place", left: true, cell: (row) => data.names.lines[row.at][1] }] : []),
  ], rows, { chosen, more: leftOut("lines") }));
  const marked = () => document.getElementById(`line-${target}`)?.scrollIntoView({ block: "center" });
  if (target !== null) requestAnimationFrame(marked);
  return box;
}
