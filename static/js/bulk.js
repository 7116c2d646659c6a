// Lists with bulk actions: the bar counts the selected rows, which stay selected when the list is loaded again.
// Without this script the form does the same.

const bar = document.querySelector("form[data-bulk-bar]");
const said = bar?.querySelector("[data-ticked]");
const before = said?.textContent;
let kept = new Set();

const boxes = (within = document) => (bar ? [...within.querySelectorAll(`input[type=checkbox][form="${bar.id}"]`)] : []);

function count() {
  if (!bar) return;
  const ticked = boxes().filter((box) => box.checked).length;
  bar.dataset.count = String(ticked);
  bar.hidden = !boxes().length;
  said.textContent = ticked === 0 ? before : ticked === 1 ? said.dataset.one : `${ticked} ${said.dataset.several}`;
  return ticked;
}

function countAloud() {
  const place = document.getElementById("announcements");
  if (count() && place) place.textContent = said.textContent;
}

document.addEventListener("change", (event) => {
  if (bar && event.target.type === "checkbox" && event.target.form === bar) countAloud();
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-tick-all]");
  if (!button) return;
  const there = boxes(document.querySelector(`[data-section="${button.dataset.tickAll}"]`));
  // Of the variants of one format one is enough: only one is published.
  const groups = new Set();
  const wanted = there.filter((box) => !box.dataset.group || (!groups.has(box.dataset.group) && groups.add(box.dataset.group)));
  const is_whole = wanted.every((box) => box.checked);
  for (const box of there) box.checked = !is_whole && wanted.includes(box);
  countAloud();
});
// A row that has changed meanwhile has another value: it isn't selected any more, because nobody has looked at it.
document.addEventListener("htmx:beforeSwap", () => {
  kept = new Set(boxes().filter((box) => box.checked).map((box) => box.value));
});
document.addEventListener("htmx:afterSwap", () => {
  for (const box of boxes()) box.checked = kept.has(box.value);
  count();
});
// A page that is shown again keeps its boxes as they were.
window.addEventListener("pageshow", count);
count();
