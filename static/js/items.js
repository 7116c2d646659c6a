// The claim map: a claim, or the words that make it, shows its sentence of the source. Without it the links lead there.

const still = window.matchMedia("(prefers-reduced-motion: reduce)");

function show(number) {
  const text = document.querySelector("[data-source-text]");
  for (const mark of text?.querySelectorAll("mark") ?? []) {
    mark.classList.toggle("shown", mark.dataset.quotes.split(" ").includes(number));
  }
  for (const claim of document.querySelectorAll("[data-quote]")) {
    if (claim.dataset.quote === number) claim.setAttribute("aria-current", "true");
    else claim.removeAttribute("aria-current");
  }
  const mark = text?.querySelector("mark.shown");
  if (!mark) return false;
  // Within its own box, so that the page stays where the reader is.
  const top = mark.getBoundingClientRect().top - text.getBoundingClientRect().top + text.scrollTop;
  text.scrollTo({ top: top - text.clientHeight / 3, behavior: still.matches ? "auto" : "smooth" });
  return true;
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-quote], a[data-claim]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const number = link.dataset.quote ?? link.dataset.claim;
  if (!show(number)) return;
  event.preventDefault();
  if (link.dataset.claim !== undefined) {
    document.getElementById("claims").scrollIntoView({ block: "nearest", behavior: still.matches ? "auto" : "smooth" });
    document.querySelector(`[data-quote="${number}"]`)?.focus({ preventScroll: true });
  } else {
    const text = document.querySelector("[data-source-text]");
    const box = text.getBoundingClientRect();
    if (box.top < 0 || box.bottom > window.innerHeight) text.scrollIntoView({ block: "nearest" });
  }
});
