// Cards and the list of stories: which is shown, which comes next, and what is fetched before anybody asks for it.

import { made, read } from "./requests.js";
import { here, isOffline, isUnsaved, list, live, place, root, rowOf, rows, say, withQuery } from "./page.js";
import { tell } from "./messages.js";

const AHEAD = 2;

export const cards = new Map(); // id of an item -> its card, or the promise of one

export async function cardOf(item) {
  if (!cards.has(item)) {
    const coming = read(withQuery(`${say.page}${item}`)).then((html) => (html === null ? null : made(html)));
    cards.set(item, coming);
    coming.then((node) => { if (cards.get(item) === coming) cards.set(item, node); }, () => cards.delete(item));
  }
  return cards.get(item);
}

export async function open(item, { quiet = false } = {}) {
  live.asked += 1;
  const mine = live.asked;
  let node = cards.get(item);
  try {
    if (!(node instanceof Element)) {
      place.setAttribute("aria-busy", "true");
      node = await cardOf(item);
    }
  } catch (error) {
    if (live.asked === mine) live.settled = mine;
    tell(isOffline(error) ? say.sayNetwork : error.message);
    return false;
  } finally {
    place.removeAttribute("aria-busy");
  }
  if (live.asked !== mine) return false;
  live.settled = mine;
  if (node === null) { gone(item); return next(); }
  if (!show(node)) return false;
  if (!quiet) node.querySelector("h2")?.focus({ preventScroll: true });
  return true;
}

// Whoever has typed something is asked before it goes.
const mayLeave = () => !isUnsaved() || window.confirm(say.sayLeave);

export function show(node) {
  const before = here();
  if (before !== node && !mayLeave()) return false;
  if (before?.dataset.item && before.dataset.card !== undefined && before !== node) closePanels(before);
  place.replaceChildren(node);
  window.htmx?.process(node);
  if (node.dataset.card !== undefined) cards.set(node.dataset.item, node);
  for (const row of rows()) {
    if (row.dataset.story === node.dataset.story) row.setAttribute("aria-current", "true");
    else row.removeAttribute("aria-current");
  }
  rowOf(node)?.scrollIntoView({ block: "nearest" });
  bringTab(node);
  if (window.scrollY > place.offsetTop) window.scrollTo(0, 0);
  history.replaceState(null, "", withQuery(say.page, `at=${node.dataset.item}`));
  ahead();
  return true;
}

// The tab of the format that is shown, where its strip is wider than a phone; the page itself stays where it is.
export function bringTab(node) {
  const tab = node.querySelector(".story-formats [aria-current]");
  if (tab) tab.parentElement.scrollLeft = tab.offsetLeft - tab.parentElement.offsetLeft - (tab.parentElement.clientWidth - tab.clientWidth) / 2;
}

export function closePanels(node) {
  for (const panel of node.querySelectorAll("details.act[open]")) panel.open = false;
}

// The next cards are there before anybody asks for them.
export function ahead() {
  const node = here();
  const stack = tabs(node);
  const at = stack.indexOf(node?.dataset.item);
  const soon = stack.slice(at + 1, at + 2);
  for (let row = following(rowOf(node)), n = 0; row && n < AHEAD; row = following(row), n += 1) soon.push(leadOf(row));
  for (const item of soon) cardOf(item).catch(() => {});
  const older = list.querySelector("[data-older]");
  if (older && soon.length < AHEAD) further();
}

export const tabs = (node) => [...(node?.querySelectorAll(".story-formats [data-open]") ?? [])].map((link) => link.dataset.open);
const leadOf = (row) => row.dataset.lead;
export const itemsOf = (row) => row.dataset.items.split(",").filter(Boolean);

function following(row) {
  let found = row ? row.nextElementSibling : list.firstElementChild;
  while (found && (found.dataset.lead === undefined || found.dataset.decided !== undefined)) found = found.nextElementSibling;
  return found;
}

export async function further() {
  const older = list.querySelector("[data-older]");
  if (!older || older.dataset.asked !== undefined) return false;
  older.dataset.asked = "";
  try {
    const html = await read(withQuery(say.rows, `after=${older.dataset.older}`));
    const known = new Set(rows().map((row) => row.dataset.story));
    const box = document.createElement("template");
    box.innerHTML = html;
    for (const row of [...box.content.children]) if (row.dataset.older !== undefined || !known.has(row.dataset.story)) list.append(row);
    older.remove();
    ahead();
    return true;
  } catch { delete older.dataset.asked; return false; }
}

export async function next() {
  const node = here();
  // What else waits in the story, other than variants of what was just decided on.
  let row = following(rowOf(node));
  const before = live.asked;
  if (!row && (await further())) row = following(rowOf(node));
  if (live.asked !== before) return false;
  if (!row) row = rows().find((one) => one.dataset.decided === undefined && one !== rowOf(node));
  if (row) return open(leadOf(row));
  if (!mayLeave()) return false;
  const end = root.querySelector("[data-done]").content.firstElementChild.cloneNode(true);
  place.replaceChildren(end);
  end.querySelector("h2").focus();
  return true;
}

export function step(by) {
  const all = rows();
  const at = all.indexOf(rowOf(here()));
  const row = all[at + by];
  if (row) open(leadOf(row));
  else if (by > 0) further().then((more) => { if (more) step(by); });
}

export function turn(by) {
  const stack = tabs(here());
  const item = stack[stack.indexOf(here()?.dataset.item) + by];
  if (item) open(item);
  else step(by);
}

export function gone(item) {
  for (const row of rows()) if (row.dataset.lead === item) row.dataset.decided = "";
  cards.delete(item);
}
