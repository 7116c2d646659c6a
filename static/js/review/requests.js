// What is asked of the server and sent to it, whatever becomes of the network, the session and the form's token.

import { live, say } from "./page.js";

const KEPT_LETTERS = 60_000;

export function made(html) {
  const box = document.createElement("template");
  box.innerHTML = html;
  const node = document.importNode(box.content, true).firstElementChild;
  for (const picture of node.querySelectorAll("img")) picture.loading = "eager";
  return node;
}

export async function read(address) {
  const answer = await fetch(address, { headers: { "X-Part": "1" }, credentials: "same-origin", redirect: "manual" });
  if (answer.type === "opaqueredirect" || answer.status === 401) throw new Error(say.saySession);
  if (answer.status === 404) return null;
  if (!answer.ok) throw new Error(say.sayFailed);
  return answer.text();
}

export async function post(address, data, again = true) {
  live.acts += 1;
  try { return await posted(address, data, again); } finally { live.acts += 1; }
}

async function posted(address, data, again) {
  const body = new URLSearchParams(data);
  body.delete("csrfmiddlewaretoken");
  let answer;
  try {
    answer = await fetch(address, {
      method: "POST", body, credentials: "same-origin", redirect: "manual",
      headers: { "X-Part": "1", "X-CSRFToken": live.token }, keepalive: body.toString().length < KEPT_LETTERS,
    });
  } catch { return { is_done: false, error: say.sayNetwork }; }
  if (answer.type === "opaqueredirect" || answer.status === 401) return { is_done: false, error: say.saySession };
  if (answer.status === 403) {
    // A new log-in has a new token, which the news bring along.
    if (again && (await renewed())) return post(address, data, false);
    return { is_done: false, error: again ? say.saySession : say.sayRefused };
  }
  if (answer.headers.get("content-type")?.includes("json")) {
    const told = await answer.json();
    return { ...told, is_done: answer.ok, status: answer.status };
  }
  const html = await answer.text();
  const isPart = !html.trimStart().toLowerCase().startsWith("<!doctype");
  return { is_done: false, status: answer.status, html: isPart ? html : "", error: isPart ? "" : say.sayFailed };
}

async function renewed() {
  try {
    const answer = await fetch(say.news, { credentials: "same-origin", redirect: "manual" });
    if (!answer.ok) return false;
    live.token = (await answer.json()).token;
    return true;
  } catch { return false; }
}
