// The pages that move most, and the places in the code between which threads cross most.
import {byId, clean, count, element, fileName, fillTable, hex, list, number, rate, record, records}
  from "./elements.js";

const mostRows = 15;
const mostVariables = 4;

// With what has happened to each in a second, the busiest first; then by what happened so far.
function withRates(rows, keyOf, valueOf, before, seconds) {
  const known = rows.map((row) => {
    const key = keyOf(row), value = valueOf(row);
    const grown = before.has(key) && seconds > 0 ? Math.max(0, value - before.get(key)) : 0;
    return {row, key, value, rate: seconds > 0 ? grown / seconds : 0};
  });
  return known.sort((one, other) => other.rate - one.rate || other.value - one.value);
}

function codeCell(code) {
  const {address, symbol, file, source} = record(code);
  const where = clean(source) || fileName(clean(file));
  return element("span", {}, clean(symbol) || hex(address), element("small", {}, where));
}

export class Tables {
  constructor() {
    this.reset();
  }

  reset() {
    this.pid = 0;
    this.atMs = 0;
    this.pages = new Map();
    this.crossings = new Map();
  }

  show(told) {
    if (clean(told.error) !== "") return;
    if (number(told.pid) !== this.pid) this.reset();
    const atMs = number(told.at_ms);
    const seconds = this.atMs > 0 ? (atMs - this.atMs) / 1000 : 0;
    this.pid = number(told.pid);
    this.atMs = atMs;
    this.showPages(records(told.pages), seconds);
    this.showCrossings(records(told.crossings), seconds);
  }

  showPages(pages, seconds) {
    const rows = withRates(pages, (page) => number(page.address), (page) => number(page.moves),
      this.pages, seconds);
    this.pages = new Map(rows.map(({key, value}) => [key, value]));
    const names = (page) => {
      const all = list(page.variables).map(clean);
      return all.slice(0, mostVariables).join(" ") + (all.length > mostVariables ? " ..." : "");
    };
    fillTable(byId("pages"), "Hottest pages", [{name: "Moves/s", className: "number"},
      {name: "Moves", className: "number"}, {name: "Address", className: "code"}, {name: "Is at"},
      {name: "Variables and mapping"}],
    rows.slice(0, mostRows).map(({row, value, rate: now}) => [rate(now), count(value),
      hex(row.address), list(row.nodes).map(clean).join(" "),
      element("span", {}, names(row), element("small", {}, fileName(clean(row.mapping))))]));
  }

  showCrossings(crossings, seconds) {
    const key = (each) => `${clean(each.node)} ${number(record(each.there).address)} ` +
      number(record(each.here).address);
    const rows = withRates(crossings, key, (each) => number(each.times), this.crossings, seconds);
    this.crossings = new Map(rows.map((each) => [each.key, each.value]));
    fillTable(byId("calls"), "Hottest crossings", [{name: "A second", className: "number"},
      {name: "Times", className: "number"}, {name: "Node"}, {name: "Went on there at"},
      {name: "Came home at"}],
    rows.slice(0, mostRows).map(({row, value, rate: now}) => [rate(now), count(value),
      clean(row.node), codeCell(row.there), codeCell(row.here)]));
  }
}
