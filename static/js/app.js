// What the pages do beyond their links and forms: copy, dialogs, toasts, the theme. Every page works without it.

const root = document.documentElement;
root.classList.add("scripted");

async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  await navigator.clipboard.writeText(source.textContent.trim());
  const label = button.querySelector("[data-label]") ?? button;
  const before = label.textContent;
  label.textContent = button.dataset.copied;
  announce(button.dataset.copied);
  window.setTimeout(() => { label.textContent = before; }, 2000);
}

function announce(text) {
  const place = document.getElementById("announcements");
  if (place) place.textContent = text;
}

function chooseTheme(button) {
  const theme = button.value;
  if (theme === "system") root.removeAttribute("data-theme");
  else root.dataset.theme = theme;
  document.cookie = `theme=${theme};path=/;max-age=31536000;samesite=lax${location.protocol === "https:" ? ";secure" : ""}`;
  for (const other of document.querySelectorAll("[data-theme-choice]")) {
    other.setAttribute("aria-pressed", String(other.value === theme));
  }
}

// A toast that asks for nothing goes by itself; one with an undo stays as long as the undo holds; an error stays.
function dismissToasts() {
  for (const toast of document.querySelectorAll(".toast:not([data-timed])")) {
    toast.dataset.timed = "";
    const seconds = Number(toast.dataset.seconds ?? 6);
    if (seconds > 0) window.setTimeout(() => toast.remove(), seconds * 1000);
  }
}

// One submission at a time; the button says that it is at work.
function guardSubmit(event) {
  const form = event.target;
  // A download leaves the page as it is, so nothing would ever release its form.
  if (!(form instanceof HTMLFormElement) || form.method !== "post" || form.dataset.download !== undefined) return;
  if (form.dataset.sent !== undefined) { event.preventDefault(); return; }
  form.dataset.sent = "";
  for (const button of form.querySelectorAll("button[type=submit], button:not([type])")) button.setAttribute("aria-busy", "true");
}

function releaseForms() {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  for (const button of document.querySelectorAll("[aria-busy=true]")) button.removeAttribute("aria-busy");
}

// A link with data-dialog opens its page's content in a dialog; the browser traps the focus and closes it on Escape.
let asked = 0;
async function openDialog(link) {
  const number = ++asked;
  const answer = await fetch(link.href, { headers: { "X-Dialog": "1" }, credentials: "same-origin" });
  const text = await answer.text();
  // A whole page came instead of its content: a log-in, or an error. The browser shows it by itself.
  if (!answer.ok || text.trimStart().toLowerCase().startsWith("<!doctype")) { location.assign(link.href); return; }
  const dialog = document.getElementById("dialog");
  // Another one was opened meanwhile: what is typed into it stays.
  if (number !== asked || (dialog.open && !dialog.contains(link))) return;
  dialog.innerHTML = text;
  const heading = dialog.querySelector("h1, h2");
  if (heading) { heading.id = "dialog-title"; dialog.setAttribute("aria-labelledby", "dialog-title"); }
  dialog.returnFocus = link;
  dialog.showModal();
}

document.addEventListener("click", (event) => {
  const target = event.target.closest("[data-copy], [data-theme-choice], [data-close], [data-dialog], [data-dismiss], [data-reveal]");
  if (!target) {
    // A click outside of an open menu closes it.
    for (const menu of document.querySelectorAll("details[data-menu][open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
    return;
  }
  if (target.dataset.copy !== undefined) copy(target);
  else if (target.dataset.themeChoice !== undefined) { event.preventDefault(); chooseTheme(target); }
  else if (target.dataset.close !== undefined && target.closest("dialog")) { event.preventDefault(); target.closest("dialog").close(); }
  else if (target.dataset.dismiss !== undefined) target.closest(".toast").remove();
  else if (target.dataset.dialog !== undefined && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    openDialog(target);
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details[data-menu][open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});
// Of more tabs or views than a phone shows, the open one.
for (const open of document.querySelectorAll(":is(.tabs, .views) > [aria-current=page]")) open.scrollIntoView({ block: "nearest", inline: "center" });
document.addEventListener("submit", guardSubmit);
// The event comes a moment after the dialog closed; meanwhile it may have been opened again.
document.addEventListener("close", (event) => { if (!event.target.open) event.target.returnFocus?.focus(); }, true);
// The page may come back from the browser's memory, with its forms as they were when they were sent.
window.addEventListener("pageshow", releaseForms);
// What is shown once isn't shown again from that memory.
window.addEventListener("pageshow", (event) => {
  if (event.persisted && document.querySelector("[data-gone-on-return]")) location.reload();
});
// A poll that reloads the page waits for the dialog, and asks again afterwards: what is typed there stays.
document.addEventListener("htmx:beforeOnLoad", (event) => {
  const dialog = document.getElementById("dialog");
  const isReload = event.detail.xhr.getResponseHeader("HX-Refresh") === "true";
  if (isReload && dialog?.open && !dialog.contains(event.target)) event.preventDefault();
});
document.addEventListener("htmx:afterSettle", () => { dismissToasts(); releaseForms(); });
document.addEventListener("toasted", dismissToasts);
dismissToasts();
// A new form begins with the time zone of the browser, where it may be chosen.
const ownZone = document.querySelector("select[data-own-zone]");
if (ownZone?.value === "UTC") {
  const reported = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const timeZone = JSON.parse(ownZone.dataset.ownZone)[reported] || reported;
  if ([...ownZone.options].some((option) => option.value === timeZone)) ownZone.value = timeZone;
}
// An answer to what a form held before would undo what was chosen since; the form asks again by itself.
document.addEventListener("input", (event) => {
  const form = event.target.closest("form[hx-sync]");
  if (form) form.dataset.changed = "";
});
document.addEventListener("htmx:beforeRequest", (event) => { delete event.detail.elt.dataset.changed; });
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.requestConfig.elt.dataset.changed !== undefined) event.detail.shouldSwap = false;
});
// A select with data-submit sends its form when it changes.
document.addEventListener("change", (event) => {
  if (event.target.dataset.submit !== undefined) event.target.form.requestSubmit();
});
