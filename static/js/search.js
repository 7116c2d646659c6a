// The keys of every page: Ctrl or ⌘ K and / open the search for everything, in which the arrows choose and Enter opens;
// c creates, ? lists the keys. Without them the links lead to their pages.

const WAIT = 120;
let timer = 0;
let asked = 0;

const field = () => document.getElementById("finder");
const options = () => [...document.querySelectorAll("#found a[role=option]")];
const chosen = () => document.querySelector("#found a[aria-selected=true]");

function choose(option) {
  for (const other of options()) other.setAttribute("aria-selected", String(other === option));
  if (!option) { field().removeAttribute("aria-activedescendant"); return; }
  field().setAttribute("aria-activedescendant", option.id);
  option.scrollIntoView({ block: "nearest" });
}

function step(by) {
  const all = options();
  if (all.length) choose(all[(all.indexOf(chosen()) + by + all.length) % all.length]);
}

async function find() {
  const number = ++asked;
  const form = field().form;
  const answer = await fetch(`${form.action}?${new URLSearchParams(new FormData(form))}`, { headers: { "X-Part": "1" }, credentials: "same-origin" });
  const text = await answer.text();
  // A later letter was quicker, or the dialog is closed.
  if (number !== asked || !field()) return;
  if (!answer.ok || text.trimStart().toLowerCase().startsWith("<!doctype")) { form.submit(); return; }
  document.getElementById("found").innerHTML = text;
  choose(options()[0]);
}

// The field is there at once, so that no letter goes to the page while the first results are on their way.
function open() {
  const isShown = field()?.getClientRects().length > 0;
  if (document.querySelector("dialog[open]") || isShown) { field()?.focus(); return; }
  showDialog(document.querySelector("[data-finder]"), document.activeElement);
  find();
}

function showDialog(template, opener) {
  const dialog = document.getElementById("dialog");
  dialog.replaceChildren(template.content.cloneNode(true));
  const heading = dialog.querySelector("h1, h2");
  heading.id = "dialog-title";
  dialog.setAttribute("aria-labelledby", "dialog-title");
  dialog.returnFocus = opener;
  dialog.showModal();
}

// The page for reviews has a list of its own.
function listKeys() {
  const list = document.querySelector("[data-shortcuts]");
  if (!list || document.querySelector("dialog[open], [data-keys]")) return;
  showDialog(list, document.activeElement);
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-search]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  open();
});

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented) return;
  // The field of a dialog that was just closed keeps the focus until the page is drawn again: nobody writes in it.
  const writes = event.target.closest?.("input, textarea, select, [contenteditable]")?.checkVisibility();
  const isShortcut = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k";
  if (isShortcut || (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && !writes)) {
    event.preventDefault();
    open();
  } else if (!writes && !event.ctrlKey && !event.metaKey && !event.altKey && (event.key === "c" || event.key === "?")) {
    if (event.key === "?") listKeys();
    else if (!document.querySelector("dialog[open]")) document.querySelector("[data-create]")?.click();
  } else if (event.target.id === "finder" && !event.isComposing) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); step(event.key === "ArrowDown" ? 1 : -1); }
    else if (event.key === "Enter" && chosen()) { event.preventDefault(); chosen().click(); }
  }
});

document.addEventListener("input", (event) => {
  if (event.target.id !== "finder") return;
  // What was chosen is of other words: Enter waits for the new ones.
  choose(null);
  window.clearTimeout(timer);
  timer = window.setTimeout(find, WAIT);
});
