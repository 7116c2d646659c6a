// Keys, swipes, clicks and forms.

import { further, open, step, turn } from "./cards.js";
import { chosen, decide, several, undo, undoLast } from "./decisions.js";
import { edit, leave, move, save } from "./edit.js";
import { here, isEditing, list, live, place, root, rowOf, say, withQuery } from "./page.js";

function press(selector) {
  const form = here()?.querySelector(selector);
  const button = form?.matches("form") ? form.querySelector("button[type=submit]") : form;
  button?.click();
}

export function panel(name) {
  const found = here()?.querySelector(`[data-panel="${name}"]`);
  if (!found) return;
  found.open = !found.open;
  if (found.open) found.querySelector("button, input:not([type=hidden])")?.focus({ preventScroll: true });
}

function help() {
  const dialog = document.getElementById("dialog");
  dialog.replaceChildren(root.querySelector("[data-keys]").content.cloneNode(true));
  const heading = dialog.querySelector("h2");
  heading.id = "dialog-title";
  dialog.setAttribute("aria-labelledby", "dialog-title");
  dialog.showModal();
}

const KEYS = {
  j: () => step(1), k: () => step(-1), l: () => turn(1), h: () => turn(-1),
  ArrowRight: () => turn(1), ArrowLeft: () => turn(-1),
  a: () => press('[data-act="approve"]'), A: () => press('[data-act="approve-all"]'),
  r: () => panel("reject"), s: () => panel("schedule"), m: () => panel("more"),
  e: () => { const link = here()?.querySelector("[data-edit]"); if (link) edit(link); },
  p: () => press("[data-publish-now]"), v: () => press('[data-act="choose"]'),
  g: () => { panel("more"); here()?.querySelector("#another-hint")?.focus(); },
  x: () => rowOf(here())?.querySelector("input[name=items]")?.click(),
  u: undoLast,
  "?": help,
};

export function key(event) {
  if (event.defaultPrevented || event.isComposing || document.getElementById("dialog").open) return;
  const field = event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]");
  if (isEditing()) {
    if (event.key === "Escape" && !field) { event.preventDefault(); leave(); }
    else if (event.key === "Escape") event.target.blur();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      const form = place.querySelector("[data-edit-form]");
      form.requestSubmit(form.querySelector("[name=save]"));
    }
    return;
  }
  const opened = here()?.querySelector("details.act[open]");
  if (event.key === "Escape" && opened) { opened.open = false; opened.querySelector("summary").focus(); return; }
  if (field || event.ctrlKey || event.metaKey || event.altKey) return;
  if (opened?.dataset.panel === "reject" && /^[1-9]$/.test(event.key)) {
    event.preventDefault();
    opened.querySelectorAll("[name=said]")[Number(event.key) - 1]?.click();
    return;
  }
  if (opened?.dataset.panel === "schedule" && event.key === "n") { event.preventDefault(); press('[data-key="n"]'); return; }
  if ((event.key === "ArrowRight" || event.key === "ArrowLeft") && event.target.closest("[tabindex='0'], video, audio")) return;
  const act = KEYS[event.key];
  if (!act || !here()) return;
  event.preventDefault();
  act();
}

let touch = null;

const SWIPE = 60;

export function touchStart(event) {
  const scrolls = event.target.closest("input, textarea, video, audio, .shots, .strip ol, .story-formats, .variants, pre, table");
  touch = event.touches.length === 1 && !scrolls && !isEditing() ? { x: event.touches[0].clientX, y: event.touches[0].clientY } : null;
}

export function touchEnd(event) {
  if (!touch) return;
  const by = event.changedTouches[0].clientX - touch.x;
  const down = event.changedTouches[0].clientY - touch.y;
  touch = null;
  if (Math.abs(by) > SWIPE && Math.abs(by) > 2 * Math.abs(down)) turn(by < 0 ? 1 : -1);
}

export function click(event) {
  const target = event.target.closest("[data-open], [data-edit], [data-leave], [data-move], [data-help], [data-newer], [data-all], [data-older] a");
  if (!target || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  if (target.dataset.open !== undefined) open(target.dataset.open);
  else if (target.dataset.edit !== undefined) edit(target);
  else if (target.dataset.leave !== undefined) leave();
  else if (target.dataset.move !== undefined) move(target);
  else if (target.dataset.help !== undefined) help();
  else if (target.dataset.newer !== undefined) location.assign(withQuery(say.page));
  else if (target.dataset.all !== undefined) {
    const boxes = [...list.querySelectorAll("li:not([data-decided]) input[name=items]")];
    const some = boxes.some((box) => !box.checked);
    for (const box of boxes) box.checked = some;
    chosen();
  } else further();
}

export function submit(event) {
  const form = event.target;
  const isUndo = form.querySelector("input[name=undo]") !== null;
  if (!isUndo && form.dataset.decide === undefined && form.dataset.editForm === undefined) return;
  if (event.defaultPrevented) return;
  event.preventDefault();
  if (isUndo) undo(new FormData(form), form);
  else if (form.dataset.editForm !== undefined) live.last = save(form, event.submitter);
  else if (form.dataset.bulk !== undefined) live.last = several(form, event.submitter);
  else live.last = decide(form, event.submitter);
}
