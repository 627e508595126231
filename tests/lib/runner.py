"""Runs one case in all its modes and judges each."""

import dataclasses
import subprocess
from pathlib import Path

import launch
import modes
import oracle

from attaching import Attacher
from case import SKIP_STATUS, Case
from lane import Lane, LaneError

KNOWN_TIMEOUT_S = 10.0  # some that are known to fail hang


@dataclasses.dataclass
class Result:
    case: str
    mode: str
    verdict: str  # "passed", "failed", "skipped"
    detail: str = ""
    wall_s: float = 0.0
    numbers: dict[str, float] = dataclasses.field(default_factory=dict)


class CaseRunner:
    def __init__(self, lane: Lane, wanted_modes: list[str], log_dir: Path, gpr_args: list[str],
                 keep_output: bool, second_try: bool = False,
                 chaos_seed: int = modes.CHAOS_SEED):
        self.lane = lane
        self.wanted_modes = wanted_modes
        self.log_dir = log_dir
        self.gpr_args = gpr_args
        self.keep_output = keep_output
        self.second_try = second_try
        self.chaos_seed = chaos_seed

    def run(self, case: Case):
        """Yields a Result for each mode; native comes first and decides about the rest."""
        if case.not_built:
            yield Result(case.full_name, "native", "failed", case.not_built)
            return
        if case.missing:
            yield Result(case.full_name, "native", "skipped", case.missing)
            return
        native = self._execute(case, "native", None)
        result = self._judge_native(case, native)
        if result.verdict == "failed" and self.second_try:
            native = self._execute(case, "native", None)
            result = _on_second_try(result, self._judge_native(case, native))
        yield result
        if result.verdict != "passed":
            return
        for mode in self.wanted_modes:
            if mode != "native" and case.runs_in(mode):
                result = self._run_mode(case, mode, native)
                if result.verdict == "failed" and self.second_try:
                    result = _on_second_try(result, self._run_mode(case, mode, native))
                yield result

    def _run_mode(self, case: Case, mode: str, native: launch.Outcome) -> Result:
        reason = modes.why_not(mode, self.lane)
        if reason:
            return Result(case.full_name, mode, "skipped", reason)
        known = _known(case, mode)
        if known:
            case = dataclasses.replace(case, timeout_s=min(case.timeout_s, KNOWN_TIMEOUT_S))
        stats_path = self.lane.root / "stats.json"
        stats_path.unlink(missing_ok=True)
        try:
            if mode in modes.GPR_MODES and mode != "local":
                self.lane.ensure_acceptor()
            if mode == "three":
                self.lane.ensure_second_acceptor()
        except LaneError as error:
            return Result(case.full_name, mode, "failed", str(error))
        attacher = self._attacher(mode, stats_path, native) if mode in modes.LATE_MODES else None
        outcome = self._execute(case, mode, stats_path, attacher)
        if attacher and (result := self._not_attached(case, mode, attacher, native,
                                                            outcome)):
            return result
        problems = oracle.differences(case, native, outcome)
        problems += attacher.problems if attacher else []
        numbers: dict[str, float] = {}
        if mode in modes.GPR_MODES:
            stats = modes.read_stats(stats_path)
            if not outcome.timed_out:
                problems += oracle.split_problems(case, mode, outcome, stats)
            numbers = _numbers(stats)
            problems += [f"left behind: {leak}" for leak in self.lane.leaks()]
            self.lane.clean_up_leaks()
        if known and problems:
            self._write_log(case, mode, outcome, problems)
            return Result(case.full_name, mode, "skipped", f"known to fail: {known}",
                          outcome.wall_s, numbers)
        if mode == "sent" and not problems and not (stats or {}).get("crossings"):
            return Result(case.full_name, mode, "skipped", "it had ended", outcome.wall_s)
        return self._result(case, mode, outcome, problems, numbers)

    def _attacher(self, mode: str, stats_path: Path, native: launch.Outcome) -> Attacher:
        log = self.lane.root / "attach.log"
        command = modes.attach_line(self.lane, stats_path, log, self.gpr_args)
        return Attacher(command, log, native.wall_s, self.chaos_seed, mode == "detach")

    def _not_attached(self, case: Case, mode: str, attacher: Attacher, native: launch.Outcome,
                      outcome: launch.Outcome) -> Result | None:
        """A refusal with a reason is no failure, if the program goes on as natively."""
        ended = attacher.end()
        if attacher.attached:
            if ended == 0:
                return None
            return Result(case.full_name, mode, "failed", f"gpr: {attacher.said[-600:]}",
                          outcome.wall_s)
        self.lane.clean_up_leaks()
        refused = "cannot attach" in attacher.said
        problems = oracle.differences(case, native, outcome) if not case.known.get(mode) else []
        if problems or not (refused or ended is None):
            return self._result(case, mode, outcome, [attacher.said[-600:].strip(), *problems], {})
        return Result(case.full_name, mode, "skipped", attacher.said[-600:].strip()
                      or "it had ended", outcome.wall_s)

    def _execute(self, case: Case, mode: str, stats_path: Path | None,
                 attacher: Attacher | None = None) -> launch.Outcome:
        lane = self.lane
        cwd = lane.fresh_case_dir()
        env = lane.environment() | case.env
        if case.setup:
            # Through the same prefix, so that the files belong to the right user.
            done = subprocess.run(lane.on_initiator(["bash", "-ec", case.setup]), cwd=cwd, env=env,
                                  stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
            if done.returncode != 0:
                error = done.stderr.decode(errors="backslashreplace")[-500:]
                return launch.Outcome(None, b"", b"", 0.0, setup_error=error)
        command = modes.command_line(mode, case, lane, stats_path, self.gpr_args,
                                     self.chaos_seed)
        outcome = launch.run(command, cwd, env, case.stdin, case.timeout_s, lane.protected(),
                             attacher.on_start if attacher else None)
        outcome.files = launch.hash_tree(cwd, case.ignore_files)
        return outcome

    def _judge_native(self, case: Case, outcome: launch.Outcome) -> Result:
        if outcome.status == SKIP_STATUS and case.status != SKIP_STATUS:
            reason = outcome.stdout.decode(errors="replace").strip() or "the guest skipped itself"
            return Result(case.full_name, "native", "skipped", reason)
        problems = oracle.native_problems(case, outcome)
        self.lane.clean_up_leaks()
        return self._result(case, "native", outcome, problems, {})

    def _result(self, case: Case, mode: str, outcome: launch.Outcome, problems: list[str],
                numbers: dict[str, float]) -> Result:
        if problems or self.keep_output:
            self._write_log(case, mode, outcome, problems)
        if not problems:
            return Result(case.full_name, mode, "passed", "", outcome.wall_s, numbers)
        return Result(case.full_name, mode, "failed", "\n".join(problems), outcome.wall_s, numbers)

    def _write_log(self, case: Case, mode: str, outcome: launch.Outcome,
                   problems: list[str]) -> None:
        self.log_dir.mkdir(parents=True, exist_ok=True)
        path = self.log_dir / f"{case.suite}.{case.name}.{mode}.log"
        parts = [f"command: {case.command}", "problems:", *problems,
                 "--- stdout", outcome.stdout.decode(errors="backslashreplace"),
                 "--- stderr", outcome.stderr.decode(errors="backslashreplace"),
                 "--- diagnosis", outcome.diagnosis]
        if self.lane.acceptor_log.exists() and mode != "native":
            parts += ["--- acceptor", self.lane.acceptor_log.read_text(errors="replace")[-8000:]]
        path.write_text("\n".join(parts))


def _known(case: Case, mode: str) -> str:
    """Why it fails in this mode, as is known."""
    # Three nodes are chaos over one host more.
    return case.known.get(mode, "") or (case.known.get("chaos", "") if mode == "three" else "")


def _on_second_try(first: Result, again: Result) -> Result:
    """A run that failed counts as passed if it passes when repeated, and says why it failed."""
    if again.verdict != "passed":
        return first
    again.detail = f"on the second try; the first: {first.detail}"
    return again


def _numbers(stats: dict | None) -> dict[str, float]:
    try:
        values = oracle.stats_values(stats)
    except (KeyError, TypeError):
        return {}
    wanted = ("crossings", "home_calls", "node1_pages_in", "node1_pages_out", "remote_cpu_share")
    return {name: values[name] for name in wanted if name in values}
