"""What scenario tests of the gpr command share: run it, compare, count."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import modes
from lane import Lane, LaneError

GPR_FAILED = 125
SKIPPED = 77


class Checks:
    def __init__(self, lane: Lane):
        self.lane = lane
        self.problems: list[str] = []
        self.done = 0

    def gpr(self, *arguments: str, timeout_s: float = 30,
            **environment: str) -> subprocess.CompletedProcess:
        return self.on_initiator(str(self.lane.gpr), *arguments, timeout_s=timeout_s,
                                 **environment)

    def on_initiator(self, *command: str, timeout_s: float = 30,
                     **environment: str) -> subprocess.CompletedProcess:
        return subprocess.run(self.lane.on_initiator(list(command)), capture_output=True,
                              text=True, timeout=timeout_s, cwd="/", stdin=subprocess.DEVNULL,
                              start_new_session=True,
                              env={**self.lane.environment(), **environment})

    def expect(self, what: str, good: bool, seen: object) -> None:
        self.done += 1
        if good:
            return
        self.problems.append(f"{what}: {seen}")
        print(f"FAIL {what}: {seen}", flush=True)

    def refused(self, what: str, outcome: subprocess.CompletedProcess, *wanted: str,
                status: int = GPR_FAILED) -> None:
        """Nothing but a single line that has all the wanted words."""
        lines = outcome.stderr.splitlines()
        good = (outcome.returncode == status and len(lines) == 1 and not outcome.stdout
                and lines[0].startswith("gpr: ") and all(word in lines[0] for word in wanted))
        self.expect(what, good, (outcome.returncode, outcome.stdout, outcome.stderr))


def run_in_lane(build: Path, run: Callable[[Lane], Checks]) -> int:
    """The exit status: that of `run` in a lane with two hosts."""
    lane = Lane(modes.find_gpr(build.resolve()))
    try:
        lane.enter()
        reason = modes.why_not("split", lane)
        if reason:
            print(f"skipped: {reason}")
            return SKIPPED
        checks = run(lane)
        verdict = "failed" if checks.problems else "passed"
        print(f"{verdict}: {checks.done} checks, {len(checks.problems)} failed")
        return 1 if checks.problems else 0
    except LaneError as error:
        print(f"{sys.argv[0]}: {error}", file=sys.stderr)
        return 1
    finally:
        lane.close()
