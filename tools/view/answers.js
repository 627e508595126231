// Asks gpr view for what it has heard of the session, and compares it with what it said before.
import {clean, number, record, records} from "./elements.js";

const pollMs = 500;

// What grows, in a second. A count that is less than before is of another thing of the same name.
function perSecond(now, before, seconds) {
  return seconds > 0 ? Math.max(0, number(now) - number(before)) / seconds : 0;
}

function both(value) {
  return number(record(value).home) + number(record(value).away);
}

function costsOf(thread) {
  const crossings = record(thread.crossings);
  return {
    cpu: both(thread.cpu_s),
    crossings: number(crossings.out) + number(crossings.back),
    faults: both(thread.faults),
    calls: number(thread.calls_home),
  };
}

function rates(costs, before, seconds) {
  return Object.fromEntries(Object.entries(costs).map(([name, value]) =>
    [name, before ? perSecond(value, before[name], seconds) : 0]));
}

function nodeCosts(node) {
  const {cpu_s: cpu, faults, pages_in: pages, bytes_in: bytesIn, bytes_out: bytesOut,
    arrivals} = node;
  return {cpu, faults, pages, bytesIn, bytesOut, arrivals};
}

// Of one answer and the one before: nodes, threads, and what happens in a second.
class Moment {
  constructor(now, before) {
    const session = record(now.session);
    const statistics = record(now.statistics);
    this.atMs = number(now.at_ms);
    const seconds = before ? (this.atMs - before.atMs) / 1000 : 0;
    this.session = session;
    this.advice = clean(statistics.advice);
    this.totals = {
      crossings: number(statistics.crossings),
      calls: number(record(statistics.syscalls).home),
      bytes: number(session.bytes_moved),
    };
    this.rates = rates(this.totals, before?.totals, seconds);
    this.nodes = records(statistics.nodes).map((node, id) => {
      const costs = nodeCosts(node);
      return {id, name: clean(node.name), costs,
        rates: rates(costs, before?.nodes[id]?.costs, seconds)};
    });
    this.rates.faults = this.nodes.reduce((sum, node) => sum + node.rates.faults, 0);
    const known = new Map(before ? before.threads.map((each) => [each.key, each]) : []);
    this.threads = records(record(now.threads).threads).map((thread) => {
      const key = `${number(thread.pid)}/${number(thread.tid)}`;
      const costs = costsOf(thread);
      return {
        key, costs,
        pid: number(thread.pid), tid: number(thread.tid), node: number(thread.node),
        name: clean(thread.name), where: clean(thread.where), state: clean(thread.state),
        waitsFor: clean(thread.waits_for),
        rates: rates(costs, known.get(key)?.costs, seconds),
      };
    });
  }
}

export class Answers {
  // show: called with each answer: {moment, memory, error, ended, lost}; what is not new is null.
  constructor(show) {
    this.show = show;
    this.moment = null;
    this.pid = 0;  // whose memory is wanted; 0: of the process that was named to gpr view
    this.number = 0;
    this.ended = false;
  }

  wantProcess(pid) {
    this.pid = pid;
    this.number = 0;
  }

  async run() {
    while (!this.ended) {
      if (!document.hidden) await this.look();
      await new Promise((done) => setTimeout(done, pollMs));
    }
  }

  async look() {
    const asked = this.pid;
    let answer;
    try {
      const response = await fetch(`data?pid=${asked}&known=${this.number}`,
        {cache: "no-store", redirect: "error"});
      if (!response.ok) throw new Error(`status ${response.status}`);
      answer = record(await response.json());
    } catch {
      this.show({moment: null, memory: null, error: "", ended: false, lost: true});
      return;
    }
    let moment = null;
    const now = record(answer.now);
    if (number(now.at_ms) > (this.moment?.atMs ?? 0)) {
      moment = this.moment = new Moment(now, this.moment);
    }
    this.ended = answer.ended === true;
    let memory = null;
    if (answer.memory !== null && asked === this.pid) {
      this.number = number(answer.number);
      memory = record(answer.memory);
    }
    this.show({moment, memory, error: clean(answer.error), ended: this.ended, lost: false,
      pid: number(answer.pid)});
  }
}
