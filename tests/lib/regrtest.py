"""CPython's own test suite: one module in one mode, reduced to what must be equal."""

import dataclasses
import subprocess
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

import launch
import modes
import oracle
from case import Case
from lane import Lane

PYTHON = "/usr/bin/python3"
# What regrtest prints that differs from run to run.
MASKS = [(r"^\d+:\d\d:\d\d load avg: [\d.]+ ", ""), (r"^Total duration: .*", "Total duration"),
         (r"^\[\d+/\d+\]", ""), (r" (passed|failed) in .*$", r" \1"),
         (r"^\S+ (took|passed in) .*\n", "")]
# Natively these connect to their own machine through VSOCK, and wait for ever in a guest machine
# that cannot.
IGNORED = {"test_socket": ["*VSOCK*"]}


@dataclasses.dataclass
class ModuleRun:
    verdict: str  # SUCCESS, FAILURE, SKIPPED, TIMEOUT, CRASH
    wall_s: float
    tests: dict[str, str]  # name -> ok, failure, error, skipped
    notes: list[str]


def module_case(module: str, timeout_s: float) -> Case:
    return Case(suite="cpython", name=module, command=[PYTHON, "-m", "test", module], status=None,
                timeout_s=timeout_s, mask=MASKS, ignore_files=["*"])


def all_modules() -> list[str]:
    done = subprocess.run([PYTHON, "-m", "test", "--list-tests"], capture_output=True, text=True,
                          check=True)
    return done.stdout.split()


def run_module(lane: Lane, module: str, mode: str, timeout_s: float,
               gpr_args: list[str]) -> ModuleRun:
    case = module_case(module, timeout_s)
    cwd = lane.fresh_case_dir()
    report, stats = lane.root / "junit.xml", lane.root / "stats.json"
    for path in (report, stats):
        path.unlink(missing_ok=True)
    ignored = [f"--ignore={pattern}" for pattern in IGNORED.get(module, [])]
    case.command = [*case.command[:-1], f"--junit-xml={report}", *ignored, module]
    if mode in modes.GPR_MODES and mode != "local":
        lane.ensure_acceptor()
    command = modes.command_line(mode, case, lane, stats, gpr_args)
    outcome = launch.run(command, cwd, lane.environment(), b"", timeout_s, lane.protected())
    notes = []
    if mode in modes.GPR_MODES:
        notes += [f"left behind: {leak}" for leak in lane.leaks()]
        if not outcome.timed_out:
            notes += oracle.split_problems(case, mode, outcome, modes.read_stats(stats))
    lane.clean_up_leaks()
    return ModuleRun(_verdict(outcome), outcome.wall_s, _tests(report),
                     notes + _tail_if_bad(outcome))


def _verdict(outcome: launch.Outcome) -> str:
    if outcome.timed_out:
        return "TIMEOUT"
    if outcome.status is None or outcome.status < 0 or b"Tests result:" not in outcome.stdout:
        return "CRASH"
    if b"1 test skipped:" in outcome.stdout:
        return "SKIPPED"
    return outcome.stdout.rpartition(b"Tests result:")[2].strip().decode()


def _tail_if_bad(outcome: launch.Outcome) -> list[str]:
    if _verdict(outcome) in ("SUCCESS", "SKIPPED"):
        return []
    text = (outcome.stdout + b"\n" + outcome.stderr).decode(errors="backslashreplace")
    return [f"status {launch.describe_status(outcome.status)}", text[-3000:], outcome.diagnosis]


def _tests(report: Path) -> dict[str, str]:
    try:
        root = ElementTree.parse(report).getroot()
    except (OSError, ElementTree.ParseError):
        return {}
    seen: Counter = Counter()
    tests = {}
    for item in root.iter("testcase"):
        name = item.get("name", "?")
        seen[name] += 1
        kinds = [child.tag for child in item if child.tag in ("failure", "error", "skipped")]
        tests[f"{name}#{seen[name]}" if seen[name] > 1 else name] = kinds[0] if kinds else "ok"
    return tests


def differing(native: ModuleRun, other: ModuleRun) -> list[str]:
    """The verdict and every single test that ended otherwise than natively."""
    found = []
    if native.verdict != other.verdict:
        found.append(f"verdict {other.verdict}, native {native.verdict}")
    for name in sorted(native.tests.keys() | other.tests.keys()):
        expected, got = native.tests.get(name, "absent"), other.tests.get(name, "absent")
        if expected != got:
            found.append(f"{name}: {got}, native {expected}")
    return found
