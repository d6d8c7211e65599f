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
      el("span", { class: "number" }, percent(data.report.types[of.row].wait_share))))));
  const shown = el("section", { "aria-label": structure.name },
    el("h2", { class: "mono" }, structure.full),
    el("p", {}, `${structure.form} of ${structure.bytes} bytes; `,
      `${percent(data.report.types[structure.row].wait_share)} of the `, term("wait")),
    marksChoice(structure, marks, member),
    picture(structure, { chosen: member, marks, most: 64 }), scale(marks),
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
  const to = at(...["structures", structure.full, member].filter(Boolean)) + (marks ? "" : "?marks=1");
  return el("p", {}, el("a", { href: to }, marks ? "Colour by waiting" : "Colour hot and cold"),
    structure.is_split ? ": the published rules split it" : ": the published rules leave it whole");
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
  const rows = data.report.lines
    .map((row, at) => ({ ...row, at }))
    .filter((row) => row.type === structure.full && (!member || isBelow(row.member)));
  return el("div", {}, el("h3", {}, member ? `Lines that touch ${member}` : "Lines that touch it"),
    table("Lines", numberColumns(
      { head: "line", left: true, cell: (row) => el("a", { href: toLine(row.at) }, data.names.lines[row.at][1]) },
      { head: "data", left: true, cell: (row) => named(data.names.lines[row.at][0], toType(row.type, row.member)) },
    ), rows, { most: 20, more: leftOut("lines") }));
}

function typeTable() {
  return table("Types", numberColumns(
    { head: "type", left: true, cell: (row, at) => named(data.names.types[at], toType(row.type)) },
  ), data.report.types, { most: 20, more: leftOut("types") });
}
