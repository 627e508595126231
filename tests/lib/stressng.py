"""One stressor of stress-ng in one mode, reduced to what must be equal."""

import dataclasses
import re
import tomllib
from pathlib import Path

import launch
import modes
import oracle
from case import Case
from lane import Lane

PROGRAM = "stress-ng"
SLACK_S = 20.0  # past its own limit a stressor has as long to end; then it hangs
# The exit statuses of stress-ng (its manual page) that judge the run and not the machine.
SUCCESS, NO_RESOURCE, NOT_IMPLEMENTED = 0, 3, 4
SKIPPED = (NO_RESOURCE, NOT_IMPLEMENTED)
# A line is "stress-ng: KIND: [PID] STRESSOR: TEXT".
LINE = re.compile(r"^stress-ng: (\w+): +\[\d+\] (.*)$", re.MULTILINE)
BAD_KINDS = ("fail", "error")
METRIC = re.compile(r"^stress-ng: metrc: +\[\d+\] (\S+) +(\d+) +([\d.]+) ", re.MULTILINE)


@dataclasses.dataclass
class Stressor:
    name: str
    group: str
    instances: int = 1
    options: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class StressorRun:
    status: int | None  # None: it did not end
    wall_s: float
    operations: float  # "bogo operations", by which stress-ng measures
    complaints: list[str]  # lines in which a stressor says that something is wrong
    notes: list[str]  # leaks, statistics, and what was printed if it went wrong

    @property
    def verdict(self) -> str:
        if self.status is None:
            return "hang"
        if self.status in SKIPPED:
            return "skipped"
        return "ok" if self.status == SUCCESS and not self.complaints else "failed"


def load(path: Path) -> list[Stressor]:
    """The table: groups of names, and the options of those that need some."""
    table = tomllib.loads(path.read_text())
    options = table.get("options", {})
    found = [Stressor(name, group, table.get("instances", {}).get(name, 1), options.get(name, []))
             for group, names in table["groups"].items() for name in names]
    names = [stressor.name for stressor in found]
    strays = (set(options) | set(table.get("instances", {}))) - set(names)
    twice = {name for name in names if names.count(name) > 1}
    if strays or twice:
        raise ValueError(f"{path}: in no group or in two: {', '.join(sorted(strays | twice))}")
    return found


def _case(stressor: Stressor, seconds: int, folder: Path) -> Case:
    command = [PROGRAM, f"--{stressor.name}", str(stressor.instances), *stressor.options,
               "--verify", "--metrics-brief", "--timeout", f"{seconds}s",
               "--temp-path", str(folder / "tmp")]
    return Case(suite="stress", name=stressor.name, command=command, status=None,
                timeout_s=seconds + SLACK_S)


def run_stressor(lane: Lane, stressor: Stressor, mode: str, seconds: int,
                 gpr_args: list[str]) -> StressorRun:
    folder = lane.fresh_case_dir()
    case = _case(stressor, seconds, folder)
    stats = lane.root / "stats.json"
    stats.unlink(missing_ok=True)
    if mode in modes.GPR_MODES and mode != "local":
        lane.ensure_acceptor()
    command = modes.command_line(mode, case, lane, stats, gpr_args)
    outcome = launch.run(command, folder, lane.environment(), b"", case.timeout_s,
                         lane.protected())
    notes = []
    if mode in modes.GPR_MODES:
        notes += [f"left behind: {leak}" for leak in lane.leaks()]
        if not outcome.timed_out:
            notes += oracle.split_problems(case, mode, outcome, modes.read_stats(stats))
    lane.clean_up_leaks()
    return _judged(outcome, notes)


def _judged(outcome: launch.Outcome, notes: list[str]) -> StressorRun:
    text = (outcome.stdout + outcome.stderr).decode(errors="backslashreplace")
    complaints = [message for kind, message in LINE.findall(text) if kind in BAD_KINDS]
    operations = sum(float(count) for _, count, _ in METRIC.findall(text))
    run = StressorRun(outcome.status, outcome.wall_s, operations, complaints, notes)
    if run.verdict in ("hang", "failed"):
        run.notes.append(f"printed: {text[-3000:]}")
    if outcome.diagnosis:
        run.notes.append(outcome.diagnosis)
    return run


def differing(native: StressorRun, other: StressorRun) -> list[str]:
    """What is wrong with the other run; empty is right."""
    if native.verdict in ("hang", "failed"):
        return []  # natively it fails as well: nothing can be asked of gpr
    found = []
    if native.verdict != other.verdict:
        status = launch.describe_status(other.status)
        found.append(f"{other.verdict} (status {status}), native {native.verdict}")
    found += [f"says: {line}" for line in other.complaints[:5]]
    if other.verdict == "ok" and native.operations and not other.operations:
        found.append("no operation was done")
    return found + [note for note in other.notes
                    if note.startswith(("left behind", "no statistics", "statistics"))]
