// A structure to scale: rows of 64 bytes, members coloured by what they cost.

const LINE = 64;

/** How much a member waits and is accessed. */
function memberNumbers(member) {
  // A row that may be about several members is about each in part.
  const sum = (of) => member.rows.reduce((all, [row, members]) => all + of(now.fields[row]) / members, 0);
  return {
    accesses: sum((row) => row.accesses),
    wait: sum((row) => row.wait.cycles),
    share: sum((row) => row.wait_share),
    cycles: sum(cycles),
    misses: data.levels.map((level) => sum((row) => row.misses[level])),
  };
}

/** How much of the hot colour a part of the most has, in percent. */
const heated = (part) => Math.round(100 * Math.sqrt(Math.min(1, Math.max(0, part))));

/** The colour of a part of the most. */
const heat = (part) => `color-mix(in srgb, var(--hot) ${heated(part)}%, var(--cell))`;

/** The colour in which text on it can be read. */
function ink(part) {
  const isPale = isLight() ? heated(part) <= 90 : heated(part) > 52;
  return isPale ? "#000" : "#fff";
}

/** The picture of a structure. `chosen` is a member's path, and `marks` asks for hot and cold instead of heat. */
function picture(structure, { chosen = null, marks = false, most = 12 } = {}) {
  const members = structure.members.map((member) => ({ ...member, numbers: memberNumbers(member) }));
  const hottest = Math.max(1e-9, ...members.map((member) => member.numbers.wait));
  const lines = Math.max(1, Math.ceil(structure.bytes / LINE));
  const box = el("div", { class: marks ? "record marks" : "record" });
  // Members of one line; what no member reaches is passed over.
  const inLine = new Map();
  for (const member of members) {
    const first = Math.floor(member.first_bit / 8);
    const last = Math.max(first, Math.ceil((member.first_bit + member.bits) / 8) - 1);
    for (let line = Math.floor(first / LINE); line <= Math.floor(last / LINE) && line < lines; line++) {
      const begin = Math.max(first, line * LINE);
      const end = Math.min(last, line * LINE + LINE - 1);
      if (!inLine.has(line)) inLine.set(line, []);
      inLine.get(line).push({ member, begin: begin % LINE, bytes: end - begin + 1, again: begin > first });
      if (line - Math.floor(first / LINE) > 256) break;
    }
  }
  let skipped = 0;
  let drawn = 0;
  const skip = () => {
    if (skipped) box.append(el("div", { class: "skipped" }, `… ${skipped} lines of 64 bytes more`));
    skipped = 0;
  };
  const wanted = (line) => {
    const parts = inLine.get(line) ?? [];
    const isUsed = parts.some(({ member }) => member.numbers.accesses > 0 || member.path === chosen);
    return lines <= most || (isUsed && drawn < most);
  };
  const candidates = lines > 4096 ? [...inLine.keys()].sort((a, b) => a - b) : [...Array(lines).keys()];
  let before = -1;
  for (const line of candidates) {
    skipped += line - before - 1;
    before = line;
    if (!wanted(line)) {
      skipped += 1;
      continue;
    }
    skip();
    drawn += 1;
    box.append(cacheLine(structure, line, inLine.get(line) ?? [], { hottest, chosen, marks }));
  }
  skipped += lines - 1 - before;
  skip();
  return box;
}

function cacheLine(structure, line, parts, { hottest, chosen, marks }) {
  const row = el("div", { class: "cacheline" });
  for (const { member, begin, bytes: size, again } of parts) {
    const { numbers } = member;
    const part = numbers.wait / hottest;
    const name = again ? `… ${member.path}` : member.path;
    const about = `${member.path}: byte ${Math.floor(member.first_bit / 8)}, ${sizeOf(member)}, ` +
      `${count(numbers.accesses)} accesses, ${percent(numbers.share)} of the wait`;
    const mark = member.is_cold === null ? "unmarked" : member.is_cold ? "cold" : "warm";
    const classes = ["member", size < 4 ? "small" : "", member.path === chosen ? "chosen" : "", marks ? mark : ""];
    const cell = el("a", {
      class: classes.filter(Boolean).join(" "),
      href: at("structures", structure.full, member.path),
      "data-tip": about,
      "aria-label": about,
      style: { gridColumn: `${begin + 1} / span ${size}` },
    }, name);
    if (!marks && numbers.wait > 0) {
      cell.style.background = heat(part);
      cell.style.color = ink(part);
    }
    row.append(cell);
  }
  const end = structure.bytes - line * LINE;
  if (end < LINE) row.append(el("span", { class: "rest", style: { gridColumn: `${end + 1} / -1`, gridRow: "1" } }));
  return row;
}

const sizeOf = (member) => (member.bits % 8 ? `${member.bits} bits` : bytes(member.bits / 8));

function isLight() {
  return getComputedStyle(document.documentElement).colorScheme === "light";
}

/** What the colours mean. */
function scale(marks, isBrief = false) {
  const hole = el("span", {}, el("i", { class: "hole" }), " bytes of no member");
  const row = isBrief ? null : el("span", {}, "a row is a cache line of 64 bytes, where the structure begins at one");
  const colours = marks
    ? el("span", {}, "black: hot, grey: cold, by accesses")
    : el("span", {}, "waits little ", el("i"), " most");
  return el("p", { class: "scale" }, colours, hole, row);
}
