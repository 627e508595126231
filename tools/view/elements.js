// What all parts of the page use: elements with text in them, and numbers in words. Names come from
// the program that is watched, which may choose any: they become text, and never markup.

// Characters that are not seen, and those that turn the direction of what stands beside them.
const unseen = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

export function clean(value) {
  return typeof value === "string" ? value.replace(unseen, "\ufffd") : "";
}

// A session may be of another gpr: what is missing, or is of another type, is empty.
export const number = (value) => (Number.isFinite(value) ? value : 0);
export const list = (value) => (Array.isArray(value) ? value : []);
export const record = (value) =>
  (value !== null && typeof value === "object" && !Array.isArray(value) ? value : {});
export const records = (value) => list(value).map(record);

// with: className, or attributes such as aria-label.
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "className") made.className = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);  // strings become text
  return made;
}

export function byId(id) {
  return document.getElementById(id);
}

// Changes nothing where the text is the same, so that what is selected stays so.
export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

export function nodeColour(node) {
  return `var(--node-${Math.min(Math.max(0, number(node)), 5)})`;
}

export function count(value) {
  return Math.round(number(value)).toLocaleString("en");
}

// "1 page", "2,345 pages".
export function counted(value, noun) {
  return `${count(value)} ${noun}${number(value) === 1 ? "" : "s"}`;
}

// Of what happens in a second.
export function rate(value) {
  const rounded = number(value);
  return rounded >= 10 || rounded === 0 ? count(rounded) : rounded.toFixed(1);
}

export function megabytes(bytes) {
  const value = number(bytes) / 1e6;
  return `${value >= 100 ? count(value) : value.toFixed(value >= 10 ? 1 : 2)} MB`;
}

export function size(bytes) {
  if (bytes >= 2 ** 30) return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
  if (bytes >= 2 ** 20) return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
  return `${Math.round(bytes / 1024)} KiB`;
}

export function hex(address) {
  return number(address).toString(16);
}

export function fileName(path) {
  const text = clean(path);
  return text.slice(text.lastIndexOf("/") + 1);
}

// Fills a table: columns are {name, className}; rows are lists of texts or elements.
export function fillTable(table, caption, columns, rows) {
  const head = element("tr", {}, ...columns.map(({name, className = ""}) =>
    element("th", {scope: "col", className}, name)));
  const body = rows.map((cells) => element("tr", {}, ...cells.map((cell, i) =>
    element("td", {className: columns[i].className ?? ""}, cell))));
  table.setAttribute("aria-label", caption);
  table.replaceChildren(element("thead", {}, head), element("tbody", {}, ...body));
}
