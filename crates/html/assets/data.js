// What the page draws, and where each row is shown.

let data;

async function unpack() {
  const letters = document.getElementById("data").textContent.trim();
  const packed = Uint8Array.from(atob(letters), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  data = JSON.parse(await new Response(stream).text());
  data.terms = Object.fromEntries(data.words.terms.map(({ heading, text }) => [heading, text]));
  data.intros = Object.fromEntries(data.words.views.map(({ heading, text }) => [heading, text]));
  data.commands = Object.fromEntries(data.words.commands.map(({ heading, text }) => [heading, text]));
  data.levels = data.report.machine.levels.map((level) => level.name);
  data.structureOf = new Map(data.structures.map((structure, at) => [structure.full, at]));
  data.functionOf = new Map();
  data.functions.forEach((of, at) => of.rows.forEach((row) => data.functionOf.set(row, at)));
}

/** The position that a reader can change. */
const shownPosition = (position) => position.inlined_into ?? position;

/** The fragment of a line's row. */
function toLine(row) {
  const of = data.functions[data.functionOf.get(row)];
  const line = shownPosition(data.report.lines[row]).line;
  return of ? at("source", of.linkage_name, line ?? "") : at("source");
}

/** The fragment of a type, and a member of it; of several that it may be, the first. */
function toType(type, member) {
  if (!data.structureOf.has(type)) return null;
  return member ? at("structures", type, member.split("|")[0]) : at("structures", type);
}

/** The row of a subject among the report's lines. */
function lineRow(subject) {
  const same = ["type", "member", "variable", "file", "line", "linkage_name"];
  return data.report.lines.findIndex((row) => same.every((name) => row[name] === subject[name]));
}

const cycles = (numbers) =>
  numbers.wait.cycles + numbers.wait.instruction_cycles + numbers.wait.first_touch_cycles;

/** A name that leads to a page of its own, if there is one. */
const named = (text, href) => (href ? el("a", { href }, text) : el("span", {}, text));

/** Names between the numbers that every row has: the most important comes first, on a phone, too. */
function numberColumns(...names) {
  const share = {
    head: term("wait"),
    name: "wait",
    value: (row) => row.wait_share,
    cell: (row) => percent(row.wait_share) +
      (row.standard_errors?.wait_share ? ` ± ${percent(row.standard_errors.wait_share)}` : ""),
  };
  const accesses = { head: "accesses", value: (row) => row.accesses, cell: (row) => count(row.accesses) };
  const misses = data.levels.map((level) => ({
    head: term("miss", `${level} misses`),
    name: `${level} misses`,
    value: (row) => row.misses[level],
    cell: (row) => count(row.misses[level]),
  }));
  return [share, ...names, accesses, ...misses];
}

/** What was left out of a table, as a sentence. */
function leftOut(table) {
  const left = data.left_out.find((left) => left.table === table);
  if (!left) return null;
  const part = percent(left.accesses / Math.max(1, data.report.total.accesses));
  return el("p", { class: "soft" },
    `${left.rows} smaller rows are left out; together they have ${part} of the accesses and ` +
    `${percent(left.wait_cycles / Math.max(1, data.report.total.wait.cycles))} of the wait.`);
}
