// Nodes side by side, what passes over the links between them, and threads that move from one to
// the other.
import {byId, clean, count, counted, element, fillTable, megabytes, nodeColour, number, rate,
  setText} from "./elements.js";

const mostChips = 150;
const moveMs = 450;
const mostDots = 6;

const calm = matchMedia("(prefers-reduced-motion: reduce)");

class Chip {
  constructor() {
    this.name = element("b");
    this.more = element("small");
    this.waits = element("span", {className: "waits"});
    this.root = element("div", {className: "chip", role: "listitem"}, this.name, " ", this.more,
      this.waits);
  }

  show(thread) {
    const {root} = this;
    setText(this.name, thread.name || "?");
    const cpu = Math.round(100 * thread.rates.cpu);
    const crosses = thread.rates.crossings > 0 ? `, crosses ${rate(thread.rates.crossings)}/s` : "";
    setText(this.more, `${thread.tid} · ${cpu} %${crosses}`);
    setText(this.waits, thread.waitsFor ? `waits for ${thread.waitsFor}` : thread.state);
    root.classList.toggle("running", thread.state === "running");
    root.classList.toggle("crossing", thread.rates.crossings > 0);
    root.dataset.tid = thread.tid;
    root.dataset.node = thread.node;
    root.dataset.name = thread.name;
    root.style.setProperty("--node", nodeColour(thread.node));
  }
}

class Lane {
  constructor(node) {
    this.node = node.id;
    this.name = element("span");
    this.threads = element("span");
    this.counts = element("p", {className: "counts"});
    this.chips = element("div", {className: "chips", role: "list"});
    this.more = element("span", {className: "more"});
    this.root = element("div", {className: "lane"},
      element("h3", {}, this.name, this.threads), this.counts, this.chips);
    this.root.dataset.node = node.id;
    this.root.style.setProperty("--node", nodeColour(node.id));
  }

  show(node, threads) {
    setText(this.name, node.name);
    setText(this.threads, counted(threads, "thread"));
    this.chips.setAttribute("aria-label", `threads at ${node.name}`);
    setText(this.counts, `${Math.round(100 * node.rates.cpu)} % CPU, ` +
      `${rate(node.rates.faults)} faults/s, ${rate(node.rates.pages)} pages/s come`);
    const left = threads - this.chips.querySelectorAll(".chip").length;
    if (left > 0) {
      setText(this.more, `and ${count(left)} more`);
      this.chips.append(this.more);
    } else {
      this.more.remove();
    }
  }
}

// Between home and an acceptor. Dots go both ways, the faster the more is sent.
class Link {
  constructor(node) {
    this.wire = element("div", {className: "wire", "aria-hidden": "true"});
    this.there = element("p", {className: "rate"});
    this.back = element("p", {className: "rate"});
    this.crossings = element("p", {className: "rate"});
    this.root = element("div", {className: "link", role: "group",
      "aria-label": `link to ${node.name}`},
    element("p", {className: "ends"}, `home ↔ ${node.name}`), this.there, this.wire, this.back,
    this.crossings);
    this.root.dataset.node = node.id;
    this.root.style.setProperty("--node", nodeColour(node.id));
    this.pace = "";
  }

  // An acceptor's bytes_in are what home has sent to it.
  show(node) {
    this.rates(this.there, "→", node.rates.bytesIn);
    this.rates(this.back, "←", node.rates.bytesOut);
    setText(this.crossings, `${rate(node.rates.arrivals)} crossings/s`);
    this.crossings.classList.toggle("quiet", node.rates.arrivals === 0);
    const dots = (bytes) => (bytes > 0 ? Math.min(mostDots, 1 + Math.floor(Math.log10(bytes))) : 0);
    const pace = `${dots(node.rates.bytesIn)} ${dots(node.rates.bytesOut)}`;
    if (pace === this.pace) return;  // what moves goes on as it does
    this.pace = pace;
    const [there, back] = pace.split(" ").map(Number);
    this.wire.replaceChildren(...this.dots("there", there), ...this.dots("back", back));
  }

  rates(target, arrow, bytes) {
    setText(target, `${arrow} ${megabytes(bytes)}/s`);
    target.classList.toggle("quiet", bytes === 0);
  }

  dots(way, many) {
    const seconds = 2.4 / Math.max(1, many);
    return Array.from({length: many}, (_, i) => {
      const dot = element("i", {className: way});
      dot.style.setProperty("--time", `${seconds + 0.6}s`);
      dot.style.animationDelay = `${-(i / many) * (seconds + 0.6)}s`;
      return dot;
    });
  }
}

export class Lanes {
  constructor() {
    this.root = byId("lanes");
    this.lanes = [];
    this.links = [];
    this.chips = new Map();
    this.height = 0;
    addEventListener("resize", () => this.keepHeight(0));
  }

  // What stands below does not go up and down with each thread.
  keepHeight(height) {
    this.height = height;
    this.root.style.minHeight = height > 0 ? `${height}px` : "";
  }

  show(moment) {
    this.showNodes(moment.nodes);
    const before = new Map([...this.chips].map(([key, chip]) => [key, this.placeOf(chip)]));
    this.placeThreads(moment.threads);
    if (!calm.matches) this.animate(before);
    moment.nodes.forEach((node, i) => {
      this.lanes[i].show(node, moment.threads.filter((each) => each.node === node.id).length);
      this.links[i]?.show(node);
    });
    if (this.root.offsetHeight > this.height) this.keepHeight(this.root.offsetHeight);
    this.showTable(moment.threads);
  }

  showNodes(nodes) {
    if (nodes.length === this.lanes.length) return;
    this.lanes = nodes.map((node) => new Lane(node));
    this.links = nodes.map((node) => (node.id === 0 ? null : new Link(node)));
    this.chips.clear();
    this.root.replaceChildren(...this.lanes.flatMap((lane, i) =>
      (this.links[i] ? [this.links[i].root, lane.root] : [lane.root])));
  }

  placeOf(chip) {
    const {left, top} = chip.root.getBoundingClientRect();
    return {left, top, node: chip.root.dataset.node};
  }

  placeThreads(threads) {
    const gone = new Set(this.chips.keys());
    const room = this.lanes.map(() => mostChips);
    for (const thread of threads) {
      const lane = this.lanes[thread.node];
      if (!lane || room[thread.node]-- <= 0) continue;
      gone.delete(thread.key);
      let chip = this.chips.get(thread.key);
      if (!chip) this.chips.set(thread.key, chip = new Chip());
      chip.show(thread);
      if (chip.root.parentElement !== lane.chips) lane.chips.append(chip.root);
    }
    for (const key of gone) {
      this.chips.get(key).root.remove();
      this.chips.delete(key);
    }
  }

  // From where each chip was to where it is.
  animate(before) {
    for (const [key, chip] of this.chips) {
      const old = before.get(key);
      if (!old) continue;
      const now = this.placeOf(chip);
      const x = old.left - now.left, y = old.top - now.top;
      if (Math.abs(x) < 2 && Math.abs(y) < 2) continue;
      const moves = old.node !== now.node;
      chip.root.animate([{transform: `translate(${x}px, ${y}px)`, zIndex: moves ? 2 : 1},
        {transform: "none", zIndex: moves ? 2 : 1}], {duration: moveMs, easing: "ease-in-out"});
    }
  }

  showTable(threads) {
    const table = byId("threads");
    if (!table.closest("details").open) return;
    fillTable(table, "Threads", [{name: "Process", className: "number"},
      {name: "Thread", className: "number"}, {name: "Name"}, {name: "Node"}, {name: "State"},
      {name: "Waits for"}, {name: "CPU %", className: "number"},
      {name: "Crossings/s", className: "number"}, {name: "Faults/s", className: "number"},
      {name: "Calls/s", className: "number"}],
    threads.map((each) => [`${each.pid}`, `${each.tid}`, each.name, each.where, each.state,
      each.waitsFor, `${Math.round(100 * each.rates.cpu)}`, rate(each.rates.crossings),
      rate(each.rates.faults), rate(each.rates.calls)]));
  }
}

// The processes of the session, one of which has its memory shown.
export class ProcessChoice {
  constructor(choose) {
    this.select = byId("process");
    this.select.addEventListener("change", () => choose(Number(this.select.value)));
    this.known = "";
  }

  show(processes, chosen) {
    const shown = JSON.stringify([processes, chosen]);
    if (shown === this.known) return;
    this.known = shown;
    this.select.replaceChildren(...processes.map((each) => {
      const pid = number(each.pid);
      const entry = element("option", {value: pid}, `${pid} ${clean(each.name)}`);
      entry.selected = pid === chosen;
      return entry;
    }));
    byId("choice").hidden = processes.length < 2;
  }
}
