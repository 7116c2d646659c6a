// Items of the tray are scheduled and posts are moved by dragging, posts also by Alt with an arrow. Without it each has a
// link to a form.

const board = document.querySelector("[data-calendar]");
const form = document.querySelector("[data-move]");
const FAR = 6;
let held = null;

function say(text, kind) {
  const place = document.querySelector(".toasts");
  const toast = document.createElement("div");
  toast.className = `toast ${kind}`;
  const words = document.createElement("span");
  words.className = "text";
  words.textContent = text;
  toast.append(words);
  place?.append(toast);
  window.setTimeout(() => toast.remove(), 8000);
}

async function send(event, fields) {
  const body = new FormData(form);
  body.set("version", event.dataset.version);
  for (const [name, value] of Object.entries(fields)) body.set(name, value);
  event.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(event.dataset.event, {
      method: "POST", body, headers: { "X-Calendar": "1" }, credentials: "same-origin",
    });
    if (answer.status === 204) {
      sessionStorage.setItem("calendar-focus", isOfTray(event) ? itemLink(event) : `[data-event="${CSS.escape(event.dataset.event)}"] > a`);
      location.reload();
      return;
    }
    if (answer.status === 409) say(await answer.text(), "error");
    // A log-in, or an error: the form of its own page says which.
    else location.assign(event.dataset.event);
  } catch {
    say(board.dataset.offline, "error");
  }
  event.removeAttribute("aria-busy");
}

function isOfTray(event) {
  return event.dataset.tray !== undefined;
}

// Where the item stands once it is scheduled.
function itemLink(event) {
  return `.event > a[href="${CSS.escape(event.querySelector("a").getAttribute("href"))}"]`;
}

function dayWith(event, day) {
  return { local_time: `${day}T${event.querySelector("time").textContent.trim()}` };
}

// A slot, or a day: of one outlet in a week, of all of the item's outlets in a month.
function placeAt(over) {
  const outlet = over.closest("[data-outlet]")?.dataset.outlet;
  const place = over.dataset.at ? { at: over.dataset.at } : { day: over.dataset.day };
  return outlet ? { ...place, outlet } : place;
}

function targetAt(x, y) {
  const below = document.elementFromPoint(x, y);
  const cell = below?.closest("td[data-day], li[data-at]");
  if (!cell) return null;
  // In a week a post stays in its outlet's lane; an item of the tray goes to any.
  if (!isOfTray(held.event) && cell.dataset.lane && cell.dataset.lane !== held.event.dataset.outlet) return null;
  return below.closest(".slot") ?? cell;
}

function lift(pointer) {
  if (held.ghost) return;
  const box = held.event.getBoundingClientRect();
  held.ghost = held.event.cloneNode(true);
  held.ghost.classList.add("ghost");
  held.ghost.inert = true;
  document.body.append(held.ghost);
  held.ghost.style.setProperty("inline-size", `${box.width}px`);
  held.event.classList.add("lifted");
  held.event.setPointerCapture(pointer);
}

function drop() {
  held?.ghost?.remove();
  held?.event.classList.remove("lifted");
  held?.over?.classList.remove("over");
  held = null;
}

board?.addEventListener("pointerdown", (event) => {
  const card = event.target.closest("[data-event]");
  // A finger scrolls; it moves a post by the form.
  if (!card || event.button !== 0 || event.pointerType === "touch" || event.target.closest(".event-move, .button")) return;
  held = { event: card, x: event.clientX, y: event.clientY, ghost: null, over: null };
});

board?.addEventListener("pointermove", (event) => {
  if (!held) return;
  if (!held.ghost && Math.hypot(event.clientX - held.x, event.clientY - held.y) < FAR) return;
  lift(event.pointerId);
  event.preventDefault();
  held.ghost.style.setProperty("translate", `${event.clientX + 8}px ${event.clientY + 8}px`);
  const over = targetAt(event.clientX, event.clientY);
  if (over === held.over) return;
  held.over?.classList.remove("over");
  over?.classList.add("over");
  held.over = over;
});

board?.addEventListener("pointerup", () => {
  if (!held) return;
  const { event, over, ghost } = held;
  drop();
  if (!ghost) return;
  // The click that ends a drag opens nothing.
  const still = (click) => click.preventDefault();
  event.addEventListener("click", still, { capture: true });
  window.setTimeout(() => event.removeEventListener("click", still, { capture: true }), 0);
  if (!over || over.contains(event)) return;
  if (isOfTray(event)) send(event, placeAt(over));
  else if (over.dataset.at) send(event, { at: over.dataset.at });
  else send(event, dayWith(event, over.dataset.day));
});

board?.addEventListener("pointercancel", drop);
board?.addEventListener("dragstart", (event) => event.preventDefault());

function neighbour(cell, way) {
  const cells = [...board.querySelectorAll("td[data-day]")].filter((one) => one.dataset.lane === cell.dataset.lane);
  return cells[cells.indexOf(cell) + way];
}

function slotBeside(event, way) {
  const cell = event.closest("td[data-day]");
  const slots = [...board.querySelectorAll(".slot")].filter((one) => one.closest("td").dataset.lane === cell.dataset.lane);
  const now = Date.parse(event.dataset.at);
  const there = slots.map((one) => one.dataset.at).sort((a, b) => Date.parse(a) - Date.parse(b));
  return way > 0 ? there.find((at) => Date.parse(at) > now) : there.filter((at) => Date.parse(at) < now).pop();
}

board?.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && held) { drop(); return; }
  const card = event.target.closest("[data-event]");
  if (!card || isOfTray(card) || !event.altKey) return;
  const way = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (!way) return;
  // Else the browser goes back a page.
  event.preventDefault();
  if (event.key === "ArrowUp" || event.key === "ArrowDown") {
    const at = slotBeside(card, way);
    if (at) send(card, { at });
    else say(board.dataset.noSlot, "error");
    return;
  }
  const cell = neighbour(card.closest("td[data-day]"), way);
  if (cell) send(card, dayWith(card, cell.dataset.day));
  else say(board.dataset.edge, "error");
});

const last = sessionStorage.getItem("calendar-focus");
if (last) {
  sessionStorage.removeItem("calendar-focus");
  document.querySelector(last)?.focus();
}
