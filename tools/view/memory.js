// Memory as a map: a strip for each mapping, of cells that have the colours of the nodes whose
// pages are in them. Pages that never moved belong to the mapping's owner.
import {byId, clean, count, counted, element, fileName, fillTable, hex, list, nodeColour, number,
  rate, record, records, setText, size} from "./elements.js";

const mostStrips = 120;
const maxCells = 256;  // of one mapping, whatever a session says

// Which pages of a mapping are in a cell: as monitor/control/page_cells.h divides them.
function firstPage(cell, cells, pages) {
  return Math.ceil(cell * pages / cells);
}

// What is known of one mapping, from one picture to the next.
class Mapping {
  constructor(told, pageSize, nodes) {
    this.begin = number(told.begin);
    this.end = number(told.end);
    this.file = clean(told.file);
    this.protection = clean(told.protection);
    this.owner = nodes.findIndex((node) => node.name === clean(told.owner));
    this.ownerName = clean(told.owner);
    this.code = clean(told.code);
    const traffic = record(told.traffic);
    this.toHome = number(traffic.pages_to_home);
    this.fromHome = number(traffic.pages_from_home);
    this.pages = Math.max(1, Math.round((this.end - this.begin) / pageSize));
    const cells = record(told.cells);
    const many = Math.min(maxCells, Math.max(1, number(cells.count)));
    this.cells = Array.from({length: many}, (_, i) => ({
      pages: firstPage(i + 1, many, this.pages) - firstPage(i, many, this.pages),
      begin: this.begin + firstPage(i, many, this.pages) * pageSize,
      end: this.begin + firstPage(i + 1, many, this.pages) * pageSize,
      moves: 0, shared: 0, only: nodes.map(() => 0), rate: 0,
    }));
    this.moves = 0;
    for (const row of list(cells.moved)) {
      const [index, moves, shared, ...only] = list(row).map(number);
      const cell = this.cells[index];
      if (!cell) continue;  // it grew while it was counted
      Object.assign(cell, {moves, shared, only: nodes.map((_, node) => number(only[node]))});
      this.moves += moves;
    }
    this.rate = 0;
  }

  get key() {
    return `${this.begin}-${this.end}-${this.cells.length}`;
  }

  get title() {
    return fileName(this.file) || (this.protection.includes("s") ? "shared memory" : "memory");
  }

  since(before, seconds) {
    if (!before || seconds <= 0) return;
    this.cells.forEach((cell, i) => {
      cell.rate = Math.max(0, cell.moves - before.cells[i].moves) / seconds;
      this.rate += cell.rate;
    });
  }

  // Pages of a cell, by who has them.
  holders(cell) {
    const parts = cell.only.map((pages, node) => ({node, pages, what: "only"}))
      .filter((part) => part.pages > 0);
    if (cell.shared > 0) parts.push({node: -1, pages: cell.shared, what: "shared"});
    const moved = parts.reduce((sum, part) => sum + part.pages, 0);
    const rest = cell.pages - moved;
    if (rest > 0) parts.push({node: this.owner, pages: rest, what: "unmoved"});
    return parts;
  }
}

function fillOf(part, nodes) {
  if (part.what === "unmoved") {
    return `color-mix(in srgb, ${nodeColour(part.node)} var(--unmoved), var(--paper))`;
  }
  return part.node >= 0 ? nodeColour(part.node) : stripes(nodes);
}

// Pages that several nodes read.
function stripes(nodes) {
  const colours = nodes.slice(0, 3).map((node, i) =>
    `${nodeColour(node.id)} ${3 * i}px ${3 * i + 3}px`);
  return `repeating-linear-gradient(45deg, ${colours.join(", ")})`;
}

// The colours of those who have most of its pages, in proportion. What was moved is seen, however
// little it is.
function paintCell(target, mapping, cell, nodes, hottest) {
  const parts = mapping.holders(cell);
  const main = parts.filter((part) => part.what !== "unmoved");
  const largest = main.reduce((most, part) => (part.pages > most.pages ? part : most),
    main[0] ?? parts[0]);
  let fill = fillOf(largest, nodes);
  if (main.length > 1 && main.every((part) => part.node >= 0)) {
    const total = main.reduce((sum, part) => sum + part.pages, 0);
    let done = 0;
    const stops = main.map((part) => {
      const from = 100 * done / total;
      done += part.pages;
      return `${nodeColour(part.node)} ${from}% ${100 * done / total}%`;
    });
    fill = `linear-gradient(to top, ${stops.join(", ")})`;
  }
  const heat = hottest > 0 ? Math.log1p(cell.rate) / Math.log1p(hottest) : 0;
  target.style.setProperty("--fill", fill);
  target.style.setProperty("--heat", (main.length === 0 ? 1 : 0.6 + 0.4 * heat).toFixed(2));
  target.classList.toggle("hot", heat > 0.66);
  target.dataset.node = largest.node;
  target.dataset.what = largest.what;
}

class Strip {
  constructor(mapping, choose) {
    this.name = element("span");
    this.about = element("small");
    this.label = element("div", {className: "label"}, this.name, " ", this.about);
    this.cells = mapping.cells.map((_, i) => {
      const cell = element("span", {className: "cell"});
      cell.addEventListener("pointerenter", () => this.choose(i));
      return cell;
    });
    this.strip = element("div", {className: "strip", role: "slider", tabindex: "0",
      "aria-valuemin": "1", "aria-valuemax": `${this.cells.length}`}, ...this.cells);
    this.strip.style.width = `${Math.min(100, 100 * Math.sqrt(this.cells.length / 64))}%`;
    this.strip.addEventListener("keydown", (event) => this.onKey(event));
    this.strip.addEventListener("focus", () => this.choose(Math.max(0, this.chosen)));
    this.root = element("div", {className: "mapping"}, this.label, this.strip);
    this.chosen = -1;
    this.tell = choose;
  }

  show(mapping, nodes, hottest) {
    this.mapping = mapping;
    setText(this.name, mapping.title);
    setText(this.about, `${mapping.protection} ${size(mapping.end - mapping.begin)}` +
      (mapping.rate > 0 ? `, ${rate(mapping.rate)} moves/s` : ""));
    this.label.title = `${hex(mapping.begin)}-${hex(mapping.end)} ${mapping.file}`;
    this.root.dataset.begin = hex(mapping.begin);
    this.strip.setAttribute("aria-label", `${mapping.title}, owner ${mapping.ownerName}`);
    mapping.cells.forEach((cell, i) => paintCell(this.cells[i], mapping, cell, nodes, hottest));
    if (this.chosen >= 0) this.tell(this);
  }

  choose(index) {
    this.chosen = index;
    this.tell(this);
  }

  mark(chosen) {
    this.cells.forEach((cell, i) => cell.classList.toggle("chosen", chosen && i === this.chosen));
    if (!chosen) this.chosen = -1;
  }

  onKey(event) {
    const steps = {ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, Home: -Infinity,
      End: Infinity};
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    this.choose(Math.min(this.cells.length - 1, Math.max(0, this.chosen + step)));
  }
}

export class Memory {
  constructor() {
    this.root = byId("map");
    this.strips = new Map();
    this.mappings = new Map();
    this.atMs = 0;
    this.pid = 0;
    this.chosen = null;
    this.pages = [];
    byId("all").addEventListener("change", () => this.draw());
  }

  show(told, nodes) {
    const error = clean(told.error);
    setText(byId("memory-error"), error);
    byId("memory-error").hidden = error === "";
    if (error !== "") return;
    const pid = number(told.pid);
    const seconds = pid === this.pid ? (number(told.at_ms) - this.atMs) / 1000 : 0;
    const before = this.mappings;
    this.pid = pid;
    this.atMs = number(told.at_ms);
    this.nodes = nodes;
    this.pages = records(told.pages);
    this.left = number(told.mappings_count) - list(told.mappings).length;
    this.mappings = new Map();
    for (const each of records(told.mappings)) {
      const mapping = new Mapping(each, Math.max(1, number(told.page_size)), nodes);
      if (mapping.end <= mapping.begin || mapping.end > 2 ** 47) continue;
      mapping.since(before.get(mapping.key), seconds);
      this.mappings.set(mapping.key, mapping);
    }
    this.showLegend();
    this.draw();
  }

  draw() {
    const all = byId("all").checked;
    const wanted = [...this.mappings.values()].filter((each) => all || each.moves > 0);
    const shown = wanted.slice(0, mostStrips);
    const hottest = Math.max(0, ...shown.flatMap((each) => each.cells.map((cell) => cell.rate)));
    const roots = shown.map((mapping) => {
      let strip = this.strips.get(mapping.key);
      if (!strip) {
        strip = new Strip(mapping, (told) => this.choose(told));
        this.strips.set(mapping.key, strip);
      }
      strip.show(mapping, this.nodes, hottest);
      return strip.root;
    });
    const keys = new Set(shown.map((each) => each.key));
    for (const key of this.strips.keys()) if (!keys.has(key)) this.strips.delete(key);
    const old = [...this.root.children];
    const same = old.length === roots.length && roots.every((root, i) => root === old[i]);
    if (!same) this.root.replaceChildren(...roots);
    const left = wanted.length - shown.length + (all ? this.left : 0);
    if (left > 0) this.root.append(element("p", {className: "more"}, `and ${count(left)} more`));
    if (roots.length === 0) {
      this.root.replaceChildren(element("p", {className: "more"}, "No page has moved yet."));
    }
    this.showTable();
  }

  choose(strip) {
    if (this.chosen && this.chosen !== strip) this.chosen.mark(false);
    this.chosen = strip;
    strip.mark(true);
    const {mapping, chosen} = strip;
    const cell = mapping.cells[chosen];
    const name = (node) => this.nodes[node]?.name ?? mapping.ownerName;
    const parts = mapping.holders(cell).map((part) => ({
      only: `${count(part.pages)} at ${name(part.node)}`,
      shared: `${count(part.pages)} to read on several nodes`,
      unmoved: `${count(part.pages)} of ${name(part.node)} that never moved`,
    })[part.what]);
    const inside = this.pages.filter((page) =>
      number(page.address) >= cell.begin && number(page.address) < cell.end);
    const variables = [...new Set(inside.flatMap((page) => list(page.variables).map(clean)))];
    const text = `${hex(cell.begin)}-${hex(cell.end)} of ${mapping.title} ` +
      `(${mapping.protection}): ${counted(cell.pages, "page")}: ${parts.join(", ")}; ` +
      `${counted(cell.moves, "move")}, ${rate(cell.rate)} a second` +
      (variables.length > 0 ? `; in the hottest: ${variables.slice(0, 8).join(", ")}` : "");
    setText(byId("cell"), text);
    strip.strip.setAttribute("aria-valuenow", `${chosen + 1}`);
    strip.strip.setAttribute("aria-valuetext", text);
  }

  showLegend() {
    const shown = JSON.stringify(this.nodes.map((node) => node.name));
    if (shown === this.legend) return;
    this.legend = shown;
    const entry = (fill, text) => {
      const mark = element("i");
      mark.style.background = fill;
      return element("span", {}, mark, text);
    };
    byId("legend").replaceChildren(
      ...this.nodes.map((node) => entry(nodeColour(node.id), `at ${node.name}`)),
      entry(stripes(this.nodes), "to read on several"),
      ...this.nodes.map((node) => entry(fillOf({node: node.id, what: "unmoved"}, this.nodes),
        `${node.name}'s, never moved`)),
      element("span", {}, "the stronger, the more it moves now; framed: most"));
  }

  showTable() {
    const table = byId("mappings");
    if (!table.closest("details").open) return;
    const pages = (mapping, node) =>
      count(mapping.cells.reduce((sum, cell) => sum + cell.only[node], 0));
    fillTable(table, "Mappings", [{name: "Range", className: "code"}, {name: "Perm"},
      {name: "Pages", className: "number"}, {name: "Owner"},
      ...this.nodes.map((node) => ({name: `Moved to ${node.name}`, className: "number"})),
      {name: "On several", className: "number"}, {name: "Moves", className: "number"},
      {name: "To home", className: "number"}, {name: "From home", className: "number"},
      {name: "File"}],
    [...this.mappings.values()].map((each) => [`${hex(each.begin)}-${hex(each.end)}`,
      each.protection, count(each.pages), each.ownerName,
      ...this.nodes.map((node) => pages(each, node.id)),
      count(each.cells.reduce((sum, cell) => sum + cell.shared, 0)), count(each.moves),
      count(each.toHome), count(each.fromHome), each.file]));
  }
}
