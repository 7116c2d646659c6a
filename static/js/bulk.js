// Failed and late: what is ticked is counted, and stays ticked when the list looks again. Without it the form does the same.

const bar = document.getElementById("clear");
const said = bar?.querySelector("[data-ticked]");
const before = said?.textContent;
let kept = new Set();

const boxes = (within = document) => [...within.querySelectorAll("input[name=rows]")];

function count() {
  if (!bar) return;
  const ticked = boxes().filter((box) => box.checked).length;
  bar.dataset.count = String(ticked);
  bar.hidden = !boxes().length;
  said.textContent = ticked === 0 ? before : ticked === 1 ? said.dataset.one : `${ticked} ${said.dataset.several}`;
}

document.addEventListener("change", (event) => {
  if (event.target.name === "rows") count();
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-tick-all]");
  if (!button) return;
  const there = boxes(document.querySelector(`[data-section="${button.dataset.tickAll}"]`));
  const is_whole = there.every((box) => box.checked);
  for (const box of there) box.checked = !is_whole;
  count();
});
// A row that has changed meanwhile has another value: it isn't ticked any more, because nobody has looked at it.
document.addEventListener("htmx:beforeSwap", () => {
  kept = new Set(boxes().filter((box) => box.checked).map((box) => box.value));
});
document.addEventListener("htmx:afterSwap", () => {
  for (const box of boxes()) box.checked = kept.has(box.value);
  count();
});
count();
