// The review queue without page loads: keys, swipes, decisions sent while the next card is already there, undo, live news.
// Every act is a plain form; without this script each is sent as one.

import { ahead, bringTab, cards } from "./review/cards.js";
import { chosen } from "./review/decisions.js";
import { click, key, submit, touchEnd, touchStart } from "./review/input.js";
import { lookAgain } from "./review/news.js";
import { here, isUnsaved, list, place, root } from "./review/page.js";

const NEWS_SECONDS = 5;

if (root) {
  const first = here();
  cards.set(first.dataset.item, first);
  bringTab(first);
  document.addEventListener("click", click);
  document.addEventListener("submit", submit);
  document.addEventListener("keydown", key);
  list.addEventListener("change", chosen);
  place.addEventListener("touchstart", touchStart, { passive: true });
  place.addEventListener("touchend", touchEnd, { passive: true });
  window.setInterval(lookAgain, NEWS_SECONDS * 1000);
  window.addEventListener("focus", lookAgain);
  // What is still on its way is sent, whether the page stays or not; a form that is open asks first.
  window.addEventListener("beforeunload", (event) => { if (isUnsaved()) event.preventDefault(); });
  chosen();
  ahead();
}
