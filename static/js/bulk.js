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
}

document.addEventListener("change", (event) => {
  if (bar && event.target.form === bar) count();
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-tick-all]");
  if (!button) return;
  const there = boxes(document.querySelector(`[data-section="${button.dataset.tickAll}"]`));
  const is_whole = there.every((box) => box.checked);
  for (const box of there) box.checked = !is_whole;
  count();
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
