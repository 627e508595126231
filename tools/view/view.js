// The page of gpr view: asks again and again, and shows what has changed.
import {Answers} from "./answers.js";
import {byId, clean, count, element, list, megabytes, number, rate, records, setText}
  from "./elements.js";
import {Lanes, ProcessChoice} from "./lanes.js";
import {Memory} from "./memory.js";
import {Tables} from "./tables.js";

const lanes = new Lanes();
const memory = new Memory();
const tables = new Tables();
const answers = new Answers(show);
const choice = new ProcessChoice((pid) => answers.wantProcess(pid));
let nodes = [];
let shownProcess = 0;

function setStatus(kind, text) {
  const status = byId("status");
  status.className = kind;
  setText(status, text);
}

function showTotals({rates, totals}) {
  const values = [["crossings/s", rate(rates.crossings)], ["faults/s", rate(rates.faults)],
    ["calls/s", rate(rates.calls)], ["over the links", `${megabytes(rates.bytes)}/s`],
    ["crossings so far", count(totals.crossings)], ["moved so far", megabytes(totals.bytes)]];
  const target = byId("totals");
  if (target.children.length === 0) {
    target.replaceChildren(...values.map(([name]) =>
      element("div", {}, element("dt", {}, name), element("dd"))));
  }
  values.forEach(([, value], i) => setText(target.children[i].querySelector("dd"), value));
}

function showSession(moment) {
  const {session} = moment;
  const program = clean(session.program);
  setText(byId("program"), program || "gpr view");
  document.title = `${program.slice(program.lastIndexOf("/") + 1)} — gpr view`;
  const since = new Date(1000 * number(session.since)).toLocaleString("en-GB");
  const where = records(session.acceptors).map((each) =>
    `${clean(each.name)} = ${clean(each.address)}`);
  const words = list(session.arguments).map(clean).join(" ");
  setText(byId("about"), `session ${number(session.session)} since ${since}; ` +
    `home and ${where.join(", ")}${words ? `; ${words.slice(0, 200)}` : ""}`);
  setText(byId("advice"), moment.advice);
  byId("advice").hidden = moment.advice === "";
  showTotals(moment);
}

function show({moment, memory: told, error, ended, lost, pid}) {
  if (lost) {
    setStatus("bad", "gpr view does not answer: it has ended, or the way to it is cut");
    return;
  }
  if (ended) setStatus("bad", "the session has ended");
  else if (error !== "") setStatus("bad", error);
  else if (moment) setStatus("live", "live");
  if (moment) {
    ({nodes} = moment);
    showSession(moment);
    lanes.show(moment);
    if (pid) shownProcess = pid;
    choice.show(records(moment.session.processes), shownProcess);
  }
  if (told && nodes.length > 0) {
    memory.show(told, nodes);
    tables.show(told);
  }
}

answers.run();
