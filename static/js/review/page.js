// What every part of the review queue shares: the page's elements, what it says, and what is under way.

export const root = document.querySelector("[data-review]");
export const place = root?.querySelector("[data-place]");
export const list = root?.querySelector("[data-list]");
export const say = root?.dataset ?? {};
export const here = () => place.querySelector("[data-card], [data-editing]");
export const isEditing = () => place.querySelector("[data-edit-form]") !== null;

export const isUnsaved = () => {
  const form = place.querySelector("[data-edit-form]");
  const node = here();
  return form !== null && node.dataset.saved === undefined && (node.dataset.unsaved !== undefined || [...form.elements].some(differs));
};

export const rows = () => [...list.querySelectorAll("li[data-lead]")];
export const rowOf = (node) => list.querySelector(`li[data-story="${node?.dataset.story}"]`);

export const withQuery = (address, extra = "") => {
  const query = [say.query, extra].filter(Boolean).join("&");
  return query ? `${address}?${query}` : address;
};

function differs(field) {
  if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
  if (field.type === "select-one") return field.selectedIndex !== Math.max(0, [...field.options].findIndex((one) => one.defaultSelected));
  return field.type !== "hidden" && field.defaultValue !== undefined && field.value !== field.defaultValue;
}

export const isOffline = (error) => error instanceof TypeError;

// What is under way, shared by all parts.
export const live = {
  token: say.token ?? "",
  asked: 0, // counts what was asked to be shown; a slower answer to an older question is not shown
  settled: 0, // the newest question that was answered
  sending: 0,
  decided: 0, // counts decisions as they are made; their answers may come in another order
  acts: 0, // begun and ended; news that were asked for before one of them are old
  last: Promise.resolve(), // the newest act, until it is done
};
