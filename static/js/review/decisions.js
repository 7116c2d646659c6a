// Decisions on one story or on several, sent while the next card is already there, and their undo.

import { post } from "./requests.js";
import { cards, itemsOf, next, open, show, tabs } from "./cards.js";
import { lookAgain, refresh } from "./news.js";
import { here, isEditing, list, live, rowOf, rows, say } from "./page.js";
import { alertIn, quiet, release, tell, toasted, withdrawToasts } from "./messages.js";

const notes = []; // what takes decisions back, the newest last

export function numbered() {
  live.decided += 1;
  return live.decided;
}

export function noted(number, undo) {
  notes.push({ number, undo });
  notes.sort((one, other) => one.number - other.number);
}

const decidedHere = new Set();

// The numbers beside the inbox, in the sidebar and in the bar at the foot.
function counted(said) {
  for (const one of document.querySelectorAll("[data-to-review]")) {
    one.textContent = said;
    one.hidden = said === "0";
  }
}

export function chosen() {
  const count = list.querySelectorAll("input[name=items]:checked").length;
  const bulk = document.getElementById("bulk");
  if (!bulk) return;
  bulk.dataset.count = String(count);
  const said = bulk.querySelector("[data-selected]");
  said.textContent = count === 1 ? said.dataset.one : `${count} ${said.dataset.several}`;
}

// A card is decided on: the next one comes at once, and this one comes back if it could not be done.
export async function decide(form, submitter) {
  const data = new FormData(form, submitter);
  const node = here();
  const row = rowOf(node);
  const act = data.get("act");
  const stays = form.dataset.stay !== undefined;
  const whole = data.get("whole") !== null;
  const rest = whole ? null : otherWaiting(node);
  const opened = node.querySelector("details.act[open]");
  const before = live.asked;
  const number = numbered();
  live.sending += 1;
  node.setAttribute("aria-busy", "true");
  withdrawToasts();
  quiet(node);
  const sent = post(form.action, data);
  if (!stays) {
    if (rest) open(rest);
    else { if (row) row.dataset.decided = ""; next(); }
  }
  const told = await sent;
  live.sending -= 1;
  node.removeAttribute("aria-busy");
  release(form);
  if (told.is_done) {
    noted(number, told.undo);
    toasted(told.toast, number);
    counted(told.to_review);
    for (const item of [node.dataset.item, ...told.decided, ...tabs(node)]) if (item !== here()?.dataset.item || stays) cards.delete(item);
    // Whoever went on meanwhile, or began to write, stays there.
    if (stays && live.asked === before) await open(act === "another" ? told.decided[0] : node.dataset.item);
    if (told.failed?.length) tell(told.error);
    // The heading's number and the marks of the story's other formats.
    lookAgain();
    return;
  }
  if (row) delete row.dataset.decided;
  if (opened) opened.open = true;
  failed(node, told);
}

// What else of the story waits: another format, not a variant of what was just decided on.
function otherWaiting(node) {
  const links = [...node.querySelectorAll(".story-formats [data-open]")];
  const at = links.findIndex((link) => link.dataset.open === node.dataset.item);
  const group = links[at]?.dataset.group;
  const found = [...links.slice(at + 1), ...links.slice(0, Math.max(at, 0))].find(
    (link) => link.dataset.waits !== undefined && link.dataset.group !== group && !decidedHere.has(link.dataset.open),
  );
  if (node.dataset.item) decidedHere.add(node.dataset.item);
  return found?.dataset.open;
}

async function failed(node, told) {
  decidedHere.delete(node.dataset.item);
  const isStale = told.status === 412 || told.status === 409;
  if (isEditing() && here() !== node) {
    // Somebody is writing on another card: that one stays, and the way back is offered.
    cards.set(node.dataset.item, node);
    alertIn(node, told.error);
    tell(told.error);
    const back = document.createElement("button");
    back.type = "button";
    back.className = "button small";
    back.dataset.open = node.dataset.item;
    back.textContent = say.sayBack;
    document.querySelector(".toasts .toast:last-child .text").append(" ", back);
    return;
  }
  if (isStale) await refresh(node, told.error);
  else {
    live.asked += 1;
    live.settled = live.asked;
    if (!show(node)) { tell(told.error); return; }
    alertIn(node, told.error);
  }
  node.querySelector("h2")?.focus({ preventScroll: true });
}

export async function several(form, submitter) {
  const data = new FormData(form, submitter);
  if (!data.getAll("items").length) { release(form); tell(say.sayMore); return; }
  const picked = new Map(
    rows().map((row) => [row, row.querySelector("input[name=items]:checked")]).filter(([, box]) => box)
      .map(([row, box]) => [row, box.value.split("|")[0].split(",").map((one) => one.split(":")[0])]),
  );
  const number = numbered();
  const told = await post(form.action, data);
  release(form);
  if (!told.is_done) { tell(told.error); return; }
  noted(number, told.undo);
  toasted(told.toast, number);
  counted(told.to_review);
  // What wasn't decided on stays chosen, to be sent again.
  const left = [];
  for (const [row, items] of picked) {
    for (const one of itemsOf(row)) cards.delete(one.split(":")[0]);
    if (items.every((item) => told.decided.includes(item))) row.dataset.decided = "";
    else left.push(row);
  }
  // What was typed goes with the last of them.
  if (!left.length) form.reset();
  for (const row of picked.keys()) row.querySelector("input[name=items]").checked = left.includes(row);
  chosen();
  const current = rowOf(here());
  if (current?.dataset.decided !== undefined && picked.has(current) && !isEditing()) next();
}

export async function undo(data, form = null) {
  // Taken out at once, so that whoever asks twice takes back two.
  const at = notes.findIndex((note) => note.undo === data.get("undo"));
  const [note] = at >= 0 ? notes.splice(at, 1) : [];
  const number = numbered();
  const told = await post(say.undo, data);
  if (form) release(form);
  if (!told.is_done) {
    // What the server refused it would refuse again; the one before it is next.
    if (note && !(told.status >= 400 && told.status < 500)) noted(note.number, note.undo);
    toasted(told.toast ?? "", number);
    if (!told.toast) tell(told.error);
    return;
  }
  toasted(told.toast, number);
  counted(told.to_review);
  for (const item of told.items) { cards.delete(item); decidedHere.delete(item); }
  for (const row of rows()) {
    if (!told.items.some((item) => row.dataset.items.includes(`${item}:`))) continue;
    delete row.dataset.decided;
    delete row.dataset.waits;
    for (const item of itemsOf(row)) cards.delete(item.split(":")[0]);
  }
  if (told.items.length && !isEditing()) {
    // What was made by the act that is taken back has no card any more.
    const item = told.items.find((one) => rows().some((row) => row.dataset.items.includes(`${one}:`)));
    await open(item ?? here()?.dataset.item ?? told.items[0]);
  }
  lookAgain();
}

// What is still on its way is the decision that is meant.
export async function undoLast() {
  await live.last;
  const note = notes.at(-1);
  if (!note) return;
  const data = new FormData();
  data.set("undo", note.undo);
  await undo(data);
}
