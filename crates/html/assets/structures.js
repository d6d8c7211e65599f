// Each hot structure, to scale.

function structures(main, [type, member], options) {
  main.append(el("h1", {}, "Structures"), el("p", { class: "soft" }, data.intros.structures));
  if (!data.structures.length) {
    main.append(el("p", {}, "No type of this run has a known layout."), typeTable());
    return;
  }
  const index = data.structureOf.get(type) ?? 0;
  const structure = data.structures[index];
  const marks = options.get("marks") === "1";
  const list = el("ul", { class: "pick" }, data.structures.map((of, at) =>
    el("li", {}, el("a", { href: toType(of.full), "aria-current": at === index ? "true" : undefined },
      el("span", {}, of.name),
      el("span", { class: "number" }, percent(now.types[of.row].wait_share))))));
  const shown = el("section", { "aria-label": structure.name },
    el("h2", { class: "mono" }, structure.full),
    el("p", {}, `${structure.form} of ${structure.bytes} bytes; `,
      `${percent(now.types[structure.row].wait_share)} of the `, term("wait")),
    only(member ? `accesses to ${member}` : "accesses to it", { type: structure.full, member: member ?? null }),
    marksChoice(structure, marks, member),
    picture(structure, { chosen: member, marks, most: 64 }), scale(marks),
    togetherOf(structure),
    editsOf(structure),
    memberTable(structure, member),
    linesOf(structure, member));
  main.append(el("div", { class: "pair" }, el("nav", { "aria-label": "Types" }, list), shown));
  main.append(el("h2", {}, "All types"), typeTable());
}

/** Hot and cold by the published rules, where they were asked. */
function marksChoice(structure, marks, member) {
  if (structure.is_split === null) {
    return el("details", {}, el("summary", {}, "Hot and cold members, edits and what they buy"),
      el("p", {}, data.intros.marks), command(data.commands.advise));
  }
  const here = at(...["structures", structure.full, member].filter(Boolean));
  const to = marks ? here : withOption(here, "marks", "1");
  return el("p", {}, el("a", { href: to }, marks ? "Colour by waiting" : "Colour hot and cold"),
    structure.is_split ? ": the published rules split it" : ": the published rules leave it whole");
}

/** The members that are used with each one of a finding, while a cache holds their lines. */
function togetherOf(structure) {
  const all = data.words.together.filter((said) => said.type === structure.full);
  if (!all.length) return null;
  const isPart = (path, of) => path === of || path.startsWith(`${of}.`) || path.startsWith(`${of}[`);
  const seen = all.map((said) => {
    const isWith = ({ path }) => said.with.some((member) => isPart(path, member) || isPart(member, path));
    const members = structure.members.map((member) => ({ ...member, is_cold: !isWith(member) }));
    return el("article", { class: "together" },
      el("h4", {}, "With ", link(said.member, "structures", structure.full, said.member)),
      picture({ ...structure, members }, { chosen: said.member, marks: true, most: 8 }),
      el("p", {}, said.sentences.join(" ")));
  });
  return el("section", {}, el("h3", {}, "Used together"), el("p", { class: "soft" }, data.intros.together), seen);
}

/** The structure beside what each edit that is worth it makes of it. */
function editsOf(structure) {
  const edits = data.edited.flatMap((layouts, at) => layouts
    .filter((layout) => layout.type === structure.full).map((layout) => ({ layout, said: data.words.edits[at] })));
  return edits.map(({ layout, said }) => el("article", { class: "card" },
    el("h3", {}, el("span", { class: "good" }, said.verdict), ": ", el("code", {}, said.edit)),
    el("p", {}, `${said.gain}; `, said.misses.map(([level, before, after]) => `${level} misses ${before} → ${after}`).join(", ")),
    el("div", { class: "sides" },
      el("div", {}, el("h4", {}, `Before: ${structure.bytes} bytes`), picture(structure, { most: 16 })),
      el("div", {}, layout.parts.map((part, at) => editedPart(structure, part, at)))),
    el("p", { class: "soft" }, said.confidence), command(said.command)));
}

/** An array that an edit makes: rows of 64 bytes, or the members that have an array each. */
function editedPart(structure, part, at) {
  const isOf = (path, name) => path === name || path.startsWith(`${name}.`) || path.startsWith(`${name}[`);
  const members = part.members.map(({ member, offset, bytes: size }) => {
    const old = structure.members.filter(({ path }) => member.split(", ").some((name) => isOf(path, name)));
    return { path: member, first_bit: 8 * offset, bits: 8 * size, rows: old.flatMap(({ rows }) => rows), is_cold: null };
  });
  const title = at === 0 ? "After" : "and apart";
  if (part.elements === 1) {
    return [el("h4", {}, `${title}: ${part.bytes} bytes`),
      picture({ full: structure.full, bytes: part.bytes, members }, { most: 16 })];
  }
  return [el("h4", {}, `${title}: ${members.length === 1 ? "an array" : "arrays"}, one a member`),
    members.map((member) => picture({ full: structure.full, bytes: LINE, members: filled(member) }, { most: 1 }))];
}

/** A line full of values of one member. */
function filled(member) {
  const times = Math.max(1, Math.floor(8 * LINE / member.bits));
  return Array.from({ length: times }, (_, at) => ({ ...member, first_bit: at * member.bits }));
}

function memberTable(structure, chosen) {
  const rows = structure.members.map((member) => ({ member, numbers: memberNumbers(member) }));
  const misses = data.levels.map((level, at) => ({
    head: term("miss", `${level} misses`), name: `${level} misses`,
    value: (row) => row.numbers.misses[at], cell: (row) => count(row.numbers.misses[at]),
  }));
  return el("div", {}, el("h3", {}, "Members"), table("Members", [
    { head: "byte", value: (row) => -row.member.first_bit, cell: (row) => String(Math.floor(row.member.first_bit / 8)) },
    { head: "member", left: true, cell: (row) => link(row.member.path, "structures", structure.full, row.member.path) },
    { head: term("wait"), name: "wait", value: (row) => row.numbers.share, cell: (row) => percent(row.numbers.share) },
    { head: "accesses", value: (row) => row.numbers.accesses, cell: (row) => count(row.numbers.accesses) },
    ...misses,
    { head: "size", value: (row) => row.member.bits, cell: (row) => sizeOf(row.member) },
    { head: "type", left: true, cell: (row) => row.member.type },
  ], rows, { chosen: rows.findIndex((row) => row.member.path === chosen),
    more: structure.is_cut ? el("p", { class: "soft" }, "Further members are left out.") : null }));
}

function linesOf(structure, member) {
  const isBelow = (path) => path === member || path?.startsWith(`${member}.`) || path?.startsWith(`${member}[`);
  const isOf = (row) => !member || row.member?.split("|").some(isBelow);
  const rows = rowsOf("lines").filter((row) => row.type === structure.full && isOf(row));
  return el("div", {}, el("h3", {}, member ? `Lines that touch ${member}` : "Lines that touch it"),
    table("Lines", numberColumns(
      { head: "line", left: true, cell: (row) => el("a", { href: toLine(row.at) }, data.names.lines[row.at][1]) },
      { head: "data", left: true, cell: (row) => named(data.names.lines[row.at][0], toType(row.type, row.member)) },
    ), rows, { most: 20, more: leftOut("lines") }));
}

function typeTable() {
  return table("Types", numberColumns(
    { head: "type", left: true, cell: (row) => named(data.names.types[row.at], toType(row.type)) },
  ), rowsOf("types"), { most: 20, more: leftOut("types") });
}
