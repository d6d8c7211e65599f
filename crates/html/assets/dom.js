// Elements, numbers and links.

/** An element with properties and children; strings become text, never markup. */
function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") element.className = value;
    else if (name === "style") Object.assign(element.style, value);
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** The same in a picture. The page has one already, which knows the name space. */
function shape(tag, properties = {}, ...children) {
  const element = document.createElementNS(document.getElementById("svg").namespaceURI, tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "style") Object.assign(element.style, value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Three significant digits and a unit, as in the terminal. */
function scaled(value, units, step) {
  let unit = 0;
  while (value >= step - 0.5 && unit + 1 < units.length) {
    value /= step;
    unit += 1;
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return `${value.toFixed(digits)}${units[unit] ? ` ${units[unit]}` : ""}`;
}
const count = (value) => scaled(value, ["", "k", "M", "G", "T", "P", "E"], 1000);
const bytes = (value) => scaled(value, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"], 1024).replace(/\.0*(?= )/, "");
function percent(share) {
  const s = 100 * share;
  if (!(s > 0)) return "0%";
  return s < 0.01 ? "<0.01%" : s < 0.995 ? `${s.toFixed(2)}%` : s < 9.95 ? `${s.toFixed(1)}%` : `${s.toFixed(0)}%`;
}

/** Milliseconds in the unit that reads best. */
function duration(ms) {
  if (ms >= 1000) return `${(ms / 1000).toFixed(2)} s`;
  return ms >= 10 ? `${ms.toFixed(0)} ms` : ms >= 0.1 ? `${ms.toFixed(2)} ms` : `${(ms * 1000).toFixed(1)} µs`;
}

/** The fragment of a view and what is chosen in it, with the filters of now. */
const at = (...parts) => `#${parts.map((part) => encodeURIComponent(part)).join("/")}${query()}`;
const link = (text, ...parts) => el("a", { href: at(...parts) }, text);

function say(text) {
  const status = document.getElementById("status");
  status.textContent = text;
  setTimeout(() => { if (status.textContent === text) status.textContent = ""; }, 2000);
}

/** A command with a button that copies it. */
function command(text) {
  const code = el("code", {}, text);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      say("copied");
    } catch {
      getSelection().selectAllChildren(code);
      say("selected: press Ctrl+C");
    }
  };
  return el("div", { class: "command" }, code,
    el("button", { type: "button", onclick: copy, "aria-label": `Copy: ${text}` }, "Copy"));
}

/** A word with its explanation, by mouse and by keyboard. */
function term(word, shown = word) {
  const text = data.terms[word];
  if (!text) return shown;
  return el("button", { type: "button", class: "term", "data-tip": text, "aria-description": text }, shown);
}

/** Explanations stand in one element at the end of the page, so that no box cuts them. */
function tips() {
  const tip = el("div", { id: "tip", role: "tooltip", hidden: true });
  document.body.append(tip);
  const show = (event) => {
    const of = event.target.closest?.("[data-tip]");
    if (!of) return;
    tip.textContent = of.dataset.tip;
    tip.hidden = false;
    const box = of.getBoundingClientRect();
    const left = Math.max(8, Math.min(box.left, document.documentElement.clientWidth - tip.offsetWidth - 8));
    const above = box.bottom + tip.offsetHeight + 8 > innerHeight;
    tip.style.left = `${left + scrollX}px`;
    tip.style.top = `${scrollY + (above ? box.top - tip.offsetHeight - 6 : box.bottom + 6)}px`;
  };
  const hide = (event) => { if (event.target.closest?.("[data-tip]")) tip.hidden = true; };
  for (const name of ["mouseover", "focusin"]) document.addEventListener(name, show);
  for (const name of ["mouseout", "focusout"]) document.addEventListener(name, hide);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });
  addEventListener("hashchange", () => { tip.hidden = true; });
}
