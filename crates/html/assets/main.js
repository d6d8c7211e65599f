// Views, and the fragment that says which one is shown.

const VIEWS = [
  ["summary", "Summary", summary],
  ["structures", "Structures", structures],
  ["source", "Source", source],
  ["objects", "Objects", objects],
  ["threads", "Threads", threads],
  ["calls", "Call tree", calls],
  ["time", "Time", time],
  ["locality", "Locality", locality],
  ["waits", "Waits", waits],
  ["compare", "Compare", compare],
];

/** The view, what is chosen in it, and its options: `#structures/arc/cost?marks=1`. */
function fragment() {
  const [path, options = ""] = location.hash.slice(1).split("?");
  const decoded = path.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  const view = VIEWS.find(([id]) => id === decoded[0]) ?? VIEWS[0];
  return { view, chosen: decoded.slice(1), options: new URLSearchParams(options) };
}

let shown = null;

function show() {
  const { view: [id, name, draw], chosen, options } = fragment();
  const main = document.getElementById("main");
  main.replaceChildren();
  readFilters(options);
  draw(main, chosen.map((part) => part || undefined), options);
  const bar = el("div");
  filterBar(bar, id);
  main.querySelector("h1")?.after(bar);
  document.title = `${name}, memlode: ${data.words.title}`;
  for (const tab of document.querySelectorAll("#views a")) {
    tab.href = at(tab.dataset.view);
    tab.toggleAttribute("aria-current", tab.dataset.view === id);
    if (tab.dataset.view === id) tab.setAttribute("aria-current", "page");
  }
  if (shown !== null && shown !== id) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
  shown = id;
  document.body.dataset.shown = location.hash;
}

function switchTheme() {
  const theme = isLight() ? "dark" : "light";
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("memlode-theme", theme);
  } catch { /* a page from a file may have no storage */ }
  show();
}

async function start() {
  await unpack();
  document.getElementById("views").append(...VIEWS.map(([id, name]) => el("a", { href: `#${id}`, "data-view": id }, name)));
  document.getElementById("theme").addEventListener("click", switchTheme);
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  });
  addEventListener("hashchange", show);
  tips();
  search();
  show();
  document.body.dataset.ready = "true";
}

start().catch((error) => {
  document.getElementById("loading")?.replaceChildren(`The report cannot be shown: ${error.message}`);
  throw error;
});
