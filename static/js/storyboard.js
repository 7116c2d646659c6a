// A preview of a storyboard is shown where it is typed. Without this the browser saves it as a file.

let shown = "";

function formOf(event) {
  return event.submitter?.name === "preview" ? event.target.closest("[data-storyboard]") : null;
}

function tell(form, problem) {
  const place = form.querySelector("[data-problem]");
  place.textContent = problem;
  place.hidden = problem === "";
}

function show(form, film, is_stale) {
  const place = form.querySelector("[data-preview]");
  const player = place.querySelector("video");
  if (shown) URL.revokeObjectURL(shown);
  shown = URL.createObjectURL(film);
  player.src = shown;
  place.hidden = false;
  stale(form, is_stale);
  forget(form);
  place.scrollIntoView({ block: "nearest" });
  // A browser that doesn't play by itself has its button for that.
  player.play().catch(() => {});
  document.getElementById("announcements").textContent = form.dataset.ready;
}

// What was wrong before isn't any more.
function forget(form) {
  for (const list of form.querySelectorAll(".errorlist")) list.remove();
  for (const field of form.querySelectorAll("[aria-invalid=true]")) {
    field.removeAttribute("aria-invalid");
    field.removeAttribute("aria-describedby");
  }
}

function stale(form, is_stale) {
  form.querySelector("[data-stale]").hidden = !is_stale;
}

// What was typed while the film was made: names and values that differ from those that were sent.
function later(form, sent) {
  return [...new FormData(form)].filter(([name, value]) => sent.get(name) !== value);
}

// What was refused is said at its fields, as the server says it; what was typed since stays.
function refuse(form, sent, page) {
  const typed = later(form, sent);
  const main = document.adoptNode(page.getElementById("main"));
  for (const [name, value] of typed) {
    const field = main.querySelector(`[data-storyboard] [name="${CSS.escape(name)}"]`);
    if (field) field.value = value;
  }
  document.getElementById("main").replaceWith(main);
  (main.querySelector("[aria-invalid=true]") ?? main).focus();
}

async function ask(form, button) {
  const label = button.querySelector("[data-label]");
  const before = label.textContent;
  const sent = new FormData(form);
  button.setAttribute("aria-busy", "true");
  label.textContent = button.dataset.busy;
  tell(form, "");
  try {
    const body = new FormData(form);
    body.set(button.name, button.value);
    const answer = await fetch(form.action, { method: "POST", body, credentials: "same-origin" });
    const kind = answer.headers.get("Content-Type") ?? "";
    if (answer.ok && kind.startsWith("video/")) {
      const film = await answer.blob();
      show(form, film, later(form, sent).length > 0);
    } else if (answer.status === 422 || answer.status === 409) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      // Nothing of what was typed is wrong where it can't be made now.
      if (answer.status === 422) refuse(form, sent, page);
      else tell(form, page.querySelector("[data-storyboard] .errorlist.nonfield")?.textContent.trim() ?? form.dataset.failed);
    } else if (answer.redirected) {
      // To the log-in, which keeps what was typed and leads back to it.
      location.assign(location.pathname + location.search);
    } else {
      tell(form, form.dataset.failed);
    }
  } catch {
    tell(form, form.dataset.offline);
  }
  button.removeAttribute("aria-busy");
  label.textContent = before;
}

// Before the listener that lets each form be sent once: asking sends nothing that is kept.
document.addEventListener("submit", (event) => {
  const form = formOf(event);
  if (!form) return;
  event.preventDefault();
  event.stopPropagation();
  if (event.submitter.getAttribute("aria-busy") !== "true") ask(form, event.submitter);
}, true);
document.addEventListener("input", (event) => {
  const form = event.target.closest("[data-storyboard]");
  if (form && shown) stale(form, true);
});
