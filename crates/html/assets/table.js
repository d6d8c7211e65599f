// Tables that can be sorted and have no more rows than a reader wants.

const FIRST_ROWS = 50;

/**
 * A table of rows. A column has a head, a cell, the value that it is sorted by, and whether it is text, maybe long text.
 * Rows come in the order that matters; a click on a head sorts by it. A column of texts that are all empty takes no room.
 */
function table(label, all, rows, { more = null, chosen = -1, most = FIRST_ROWS } = {}) {
  const columns = all.filter((column) => !column.left || !rows.length || rows.some((row, at) => column.cell(row, at)));
  const kind = (column) => (column.left ? `left ${column.roomy ? "roomy" : ""}` : undefined);
  let order = rows.map((_, at) => at);
  let sorted = null;
  let shown = Math.max(most, chosen + 1);
  const body = el("tbody");
  const rest = el("button", { type: "button", onclick: () => { shown += 500; fill(); } });
  const fill = () => {
    body.replaceChildren(...order.slice(0, shown).map((at) =>
      el("tr", { class: at === chosen ? "chosen" : undefined },
        columns.map((column) => el("td", { class: kind(column) }, column.cell(rows[at], at))))));
    rest.hidden = order.length <= shown;
    rest.textContent = `Show more of ${order.length} rows`;
  };
  const heads = columns.map((column) => {
    const head = el("th", { class: kind(column), scope: "col" });
    if (!column.value) {
      head.append(column.head);
      return head;
    }
    const name = column.name ?? column.head;
    const sort = () => {
      const down = !(sorted === column && head.getAttribute("aria-sort") === "descending");
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      sorted = column;
      order.sort((a, b) => (column.value(rows[b]) - column.value(rows[a])) * (down ? 1 : -1) || a - b);
      fill();
    };
    const tip = column.head instanceof Element ? column.head.dataset.tip : undefined;
    head.append(el("button", { type: "button", onclick: sort, "data-tip": tip, "aria-description": tip,
      class: tip ? "term" : undefined }, name));
    return head;
  });
  fill();
  return el("div", {},
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
      el("table", {}, el("thead", {}, el("tr", {}, heads)), body)),
    rest, more);
}
