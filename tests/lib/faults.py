"""Injects one fault into a split run and says whether everything ended as it must."""

import dataclasses
import os
import random
import signal
import time

import launch
import modes
import process_tree
from case import Case
from lane import Lane

END_LIMIT_S = 10.0  # after the fault, everything must be over on both hosts
GPR_FAILED = 125
WORKLOAD_FAILED = 1
TARGETS = ("worker", "monitor", "link", "daemon", "program", "remote", "helper")


@dataclasses.dataclass
class Round:
    target: str
    at_s: float
    hit: bool = False  # the fault happened while the program ran
    status: int | None = None
    end_after_s: float = 0.0  # from the fault to the program's end
    problems: list[str] = dataclasses.field(default_factory=list)


class Injector:
    """The hook of launch.run: kills the target when its moment comes."""

    def __init__(self, lane: Lane, target: str, at_s: float, choice: random.Random):
        self.lane, self.target, self.at_s, self.choice = lane, target, at_s, choice
        self.program = 0
        self.started = 0.0
        self.fault_at: float | None = None
        self.hit = False

    def __call__(self, pid: int):
        self.program, self.started = pid, time.monotonic()
        return self._poll

    def _poll(self) -> None:
        if self.fault_at is None and time.monotonic() >= self.started + self.at_s:
            self.hit = self._strike()
            self.fault_at = time.monotonic()

    def _strike(self) -> bool:
        if self.target == "link":
            self.lane.set_link(up=False)
            return True
        victims = sorted(self._victims())
        if not victims:
            return False
        try:
            os.kill(self.choice.choice(victims), signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def _victims(self) -> set[int]:
        remote = process_tree.descendants(self.lane.acceptor_pid)
        local = process_tree.descendants(os.getpid()) - remote - {self.lane.acceptor_pid}
        tracers = {process_tree.tracer_of(pid) for pid in local | remote} - {0}
        return {"daemon": {self.lane.acceptor_pid},
                "program": {self.program},
                "monitor": tracers & local,
                "worker": tracers & remote,
                # The program's fragment there, and every other helper of gpr, the keepers included.
                "remote": {pid for pid in remote if process_tree.tracer_of(pid)},
                "helper": {pid for pid in local | remote
                           if pid not in tracers and pid != self.program
                           and not process_tree.tracer_of(pid)}}[self.target]


def run_round(lane: Lane, case: Case, native: launch.Outcome, target: str, at_s: float,
              choice: random.Random, gpr_args: list[str]) -> Round:
    result = Round(target, at_s)
    lane.ensure_acceptor()
    stats = lane.root / "stats.json"
    stats.unlink(missing_ok=True)
    command = modes.command_line("split", case, lane, stats, gpr_args)
    injector = Injector(lane, target, at_s, choice)
    outcome = launch.run(command, lane.fresh_case_dir(), lane.environment(), case.stdin,
                         case.timeout_s + at_s, lane.protected(), on_start=injector)
    result.hit, result.status = injector.hit, outcome.status
    ended = injector.started + outcome.wall_s
    result.end_after_s = ended - injector.fault_at if injector.fault_at else 0.0
    result.problems += _judge(outcome, native, result)
    spent_s = time.monotonic() - injector.fault_at if injector.fault_at else 0.0
    left = process_tree.leftovers(lane.protected(), max(0.5, END_LIMIT_S - spent_s))
    result.problems += [f"left behind: {name}" for name in left]
    if left:
        here = process_tree.descendants(os.getpid()) - lane.protected()
        result.problems.append("what they do:\n" + process_tree.diagnose(here))
    result.problems += [f"left behind: {leak}" for leak in lane.leaks() if "[" not in leak]
    lane.clean_up_leaks()
    lane.set_link(up=True)
    return result


def _judge(outcome: launch.Outcome, native: launch.Outcome, result: Round) -> list[str]:
    if outcome.timed_out:
        return ["hangs\n" + outcome.diagnosis]
    problems = []
    if result.hit and result.end_after_s > END_LIMIT_S:
        problems.append(f"ended only {result.end_after_s:.1f} s after the fault")
    if outcome.status == native.status and outcome.stdout == native.stdout:
        return problems
    killed = -int(signal.SIGKILL)
    allowed = {GPR_FAILED}
    if result.target in ("monitor", "program"):
        allowed.add(killed)
    if result.target in ("remote", "helper") and b"cannot go on" in outcome.stderr:
        allowed.add(WORKLOAD_FAILED)  # it was a child's, and the program saw the child fail
    if not result.hit:
        problems.append(f"no fault yet status {launch.describe_status(outcome.status)}")
    elif outcome.status not in allowed:
        problems.append(f"status {launch.describe_status(outcome.status)}")
    elif outcome.status == GPR_FAILED and b"gpr: " not in outcome.stderr:
        problems.append("status 125 without a reason on stderr")
    if problems and outcome.stderr:
        problems.append("stderr: " + outcome.stderr.decode(errors="replace")[-2000:])
    if not native.stdout.startswith(outcome.stdout):
        problems.append("printed something that native does not print")
    return problems
