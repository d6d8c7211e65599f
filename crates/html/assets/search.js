// Search over all names: `/` opens it.

const MOST_HITS = 60;

function searchable() {
  const { names, report } = data;
  return [
    ...names.types.map((name, at) => ["type", name, toType(report.types[at].type) ?? at_view("structures")]),
    ...names.fields.map((name, at) => ["member", name, toType(report.fields[at].type, report.fields[at].member) ?? at_view("structures")]),
    ...data.functions.map((of) => ["function", of.name, at_function(of)]),
    ...names.lines.map(([what, place], at) => ["line", `${what} ${place}`, toLine(at)]),
    ...names.objects.map((name, at) => ["object", name, at_view("objects", at)]),
    ...names.threads.map((name, at) => ["thread", name, at_view("threads", at)]),
  ];
}

const at_view = (...parts) => at(...parts);

function search() {
  const dialog = document.getElementById("search");
  const query = document.getElementById("query");
  const hits = document.getElementById("hits");
  let all = null;
  const fill = () => {
    all ??= searchable().map(([kind, name, href]) => ({ kind, name, href, low: name.toLowerCase() }));
    const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = words.length ? all.filter(({ low }) => words.every((word) => low.includes(word))) : [];
    const shown = found.slice(0, MOST_HITS).map(({ kind, name, href }) =>
      el("li", {}, el("a", { href, onclick: () => dialog.close() }, el("span", { class: "kind" }, kind), name)));
    hits.replaceChildren(...shown);
    const rest = found.length > MOST_HITS ? `${found.length - MOST_HITS} more; ` : "";
    document.getElementById("hint").textContent =
      (words.length && !found.length ? "nothing is called that; " : rest) + "↑ ↓ choose, Enter opens, Esc closes";
  };
  const open = () => {
    dialog.showModal();
    query.select();
    fill();
  };
  const step = (by) => {
    const links = [...hits.querySelectorAll("a")];
    const to = links.indexOf(document.activeElement) + by;
    (to < 0 ? query : links[Math.min(to, links.length - 1)])?.focus();
  };
  query.addEventListener("input", fill);
  dialog.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      step(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Enter" && document.activeElement === query) {
      event.preventDefault();
      hits.querySelector("a")?.click();
    }
  });
  document.getElementById("find").addEventListener("click", open);
  document.addEventListener("keydown", (event) => {
    const isTyping = /^(input|textarea|select)$/i.test(event.target.tagName);
    if (event.key === "/" && !isTyping && !dialog.open && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      open();
    }
  });
}
