// Editing on the card: what was typed outlives every failure.

import { made, post, read } from "./requests.js";
import { cards, closePanels, gone, next, open } from "./cards.js";
import { noted, numbered } from "./decisions.js";
import { here, isOffline, live, place, say } from "./page.js";
import { alertIn, quiet, release, tell, toasted } from "./messages.js";

export async function edit(link) {
  const node = here();
  live.asked += 1;
  const mine = live.asked;
  let html;
  try { html = await read(link.href); } catch (error) {
    if (live.asked === mine) live.settled = mine;
    alertIn(node, isOffline(error) ? say.sayNetwork : error.message);
    return;
  }
  if (live.asked !== mine) return;
  live.settled = mine;
  if (html === null) { gone(node.dataset.item); next(); return; }
  closePanels(node);
  const form = made(html);
  form.dataset.story = node.dataset.story;
  place.replaceChildren(form);
  window.htmx?.process(form);
  form.querySelector("textarea, input:not([type=hidden])")?.focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

const valuesOf = (form) => [...form.elements].map((field) => (field.type === "checkbox" ? field.checked : field.value));

export async function save(form, submitter) {
  const node = here();
  const sent = valuesOf(form);
  quiet(node);
  const number = numbered();
  const told = await post(form.action, new FormData(form, submitter));
  release(form);
  if (told.is_done) {
    if (told.undo) noted(number, told.undo);
    toasted(told.toast, number);
    cards.delete(node.dataset.item);
    if (here() !== node) return;
    if (valuesOf(form).every((value, at) => value === sent[at])) node.dataset.saved = "";
    await open(node.dataset.item);
    delete node.dataset.saved;
    return;
  }
  if (here() !== node) { tell(told.error || say.sayUnsaved); return; }
  if (!told.html) { alertIn(node, told.error); return; }
  const anew = made(told.html);
  anew.dataset.story = node.dataset.story;
  anew.dataset.unsaved = "";
  // What was typed while it was on its way.
  for (const [at, field] of [...form.elements].entries()) {
    const same = field.name && field.type !== "hidden" ? anew.querySelector("[data-edit-form]").elements[field.name] : null;
    if (same && sent[at] !== field.value) same.value = field.value;
  }
  place.replaceChildren(anew);
  window.htmx?.process(anew);
  anew.querySelector(".errorlist, [role=alert]:not([hidden])")?.scrollIntoView({ block: "nearest" });
}

export function leave() {
  const item = here()?.dataset.item;
  if (item) open(item);
}

export function move(button) {
  const picture = button.closest("[data-picture]");
  const by = Number(button.dataset.move);
  const other = by < 0 ? picture.previousElementSibling : picture.nextElementSibling;
  if (!other?.querySelector("[data-place]")) return;
  other[by < 0 ? "before" : "after"](picture);
  [...picture.parentElement.querySelectorAll("[data-place]")].forEach((field, at) => { field.value = at + 1; });
  button.focus();
}
