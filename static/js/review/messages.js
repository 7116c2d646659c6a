// What is said to the person: beside the card, or in a toast.

import { made } from "./requests.js";

export function alertIn(node, text) {
  const box = node.querySelector("[data-alert]");
  if (!box) { tell(text); return; }
  box.querySelector("[data-alert-text]").textContent = text;
  box.hidden = false;
  box.scrollIntoView({ block: "nearest" });
}

export function quiet(node) {
  const box = node.querySelector("[data-alert]");
  if (box) box.hidden = true;
}

export function tell(text) {
  const toast = document.createElement("div");
  toast.className = "toast error";
  toast.dataset.seconds = "0";
  toast.innerHTML = '<div class="text"></div><button class="button plain small" type="button" data-dismiss>×</button>';
  toast.querySelector(".text").textContent = text;
  toast.querySelector("button").setAttribute("aria-label", "Dismiss");
  addToast(toast);
}

// The undo that is offered is always that of the newest decision.
export function withdrawToasts() {
  for (const old of document.querySelectorAll(".toasts .toast:not(.error)")) old.remove();
}

function addToast(toast) {
  withdrawToasts();
  document.querySelector(".toasts").append(toast);
  document.dispatchEvent(new Event("toasted"));
}

let newest = 0; // the number of the decision that was told of last

// An answer that was overtaken by that to a newer decision isn't told.
export function toasted(html, number) {
  if (!html || number < newest) return;
  newest = number;
  const toast = made(html);
  addToast(toast);
  const announcements = document.getElementById("announcements");
  if (announcements) announcements.textContent = toast.querySelector(".text").textContent.trim();
}

export function release(form) {
  delete form.dataset.sent;
  for (const button of form.querySelectorAll("[aria-busy]")) button.removeAttribute("aria-busy");
}
