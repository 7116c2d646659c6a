// What others did meanwhile: rows and the card in front follow, and what was typed stays.

import { cardOf, cards, gone, itemsOf, open, show } from "./cards.js";
import { here, isEditing, list, live, rowOf, rows, say, withQuery } from "./page.js";
import { alertIn, tell } from "./messages.js";

function mark(row, item, version, waits) {
  row.dataset.items = itemsOf(row).map((one) => (one.startsWith(`${item}:`) ? `${item}:${version}` : one)).join(",");
  if (waits) { delete row.dataset.decided; return; }
  const waiting = new Set((row.dataset.waits ?? itemsOf(row).map((one) => one.split(":")[0]).join(",")).split(","));
  waiting.delete(item);
  row.dataset.waits = [...waiting].join(",");
}

export async function lookAgain() {
  if (document.hidden) return;
  // No card is left where all is decided on; what comes in is counted all the same.
  const current = here() && rowOf(here());
  const watched = [];
  for (let row = current ?? list.querySelector("li[data-lead]"); row && watched.length < 50; row = row.nextElementSibling) {
    if (row.dataset.items) watched.push(...itemsOf(row));
  }
  const first = list.querySelector("li[data-lead]");
  const asks = `shown=${watched.slice(0, 50).join(",")}${first ? `&first=${first.dataset.lead}` : ""}`;
  const before = live.acts;
  let news;
  try {
    const answer = await fetch(withQuery(say.news, asks), { credentials: "same-origin", redirect: "manual" });
    if (!answer.ok) return;
    news = await answer.json();
  } catch { return; }
  live.token = news.token;
  for (const count of document.querySelectorAll("[data-waiting]")) count.textContent = news.count;
  const newer = document.querySelector("[data-newer]");
  newer.hidden = news.newer === "0";
  newer.querySelector("[data-newer-text]").textContent = `${news.newer} ${say.sayNewer}`;
  if (live.sending || live.acts !== before) return;
  for (const one of news.changed) changed(one);
  for (const item of news.gone) gone(item);
}

function changed(one) {
  const row = rows().find((each) => each.dataset.items.includes(`${one.id}:`));
  if (row) {
    mark(row, one.id, one.version, one.waits);
    const waits = row.dataset.waits;
    if (one.waits) delete row.dataset.decided;
    else if (row.dataset.lead === one.id || waits === "") row.dataset.decided = "";
  }
  const node = here();
  if (node?.dataset.item !== one.id || live.sending) { if (node?.dataset.item !== one.id) cards.delete(one.id); return; }
  if (Number(node.dataset.version) === one.version) return;
  if (isEditing()) alertIn(node, say.sayChanged);
  // Whoever has asked for something else gets that.
  else if (live.asked !== live.settled) cards.delete(one.id);
  else if (typedIn(node)) refresh(node);
  else { cards.delete(one.id); open(one.id, { quiet: true }); }
}

const typedIn = (node) => [...node.querySelectorAll("input:not([type=hidden], [type=checkbox]), textarea")].some((field) => field.value !== "");

// The card as it is now, with what was typed on it and the panel that was open.
export async function refresh(node, said = "") {
  const item = node.dataset.item;
  live.asked += 1;
  const mine = live.asked;
  cards.delete(item);
  let fresh;
  try { fresh = await cardOf(item); } catch { fresh = node; }
  if (live.asked === mine) live.settled = mine;
  if (fresh === null) { gone(item); return; }
  if (fresh !== node) keepTyped(node, fresh);
  if (live.asked !== mine || !show(fresh)) { if (said) tell(said); return; }
  if (said) alertIn(fresh, said);
}

function keepTyped(from, to) {
  for (const field of from.querySelectorAll("input[id], textarea[id]")) {
    const same = to.querySelector(`#${CSS.escape(field.id)}`);
    if (same && field.value) same.value = field.value;
  }
  for (const panel of from.querySelectorAll("details.act[open]")) {
    const same = to.querySelector(`[data-panel="${panel.dataset.panel}"]`);
    if (same) same.open = true;
  }
}
