"""Decides whether a run did what native Linux did, and whether it was really split."""

import difflib

from case import Case
from launch import Outcome, describe_status

MAX_DIFF_LINES = 30


def native_problems(case: Case, outcome: Outcome) -> list[str]:
    """What is wrong with the native run itself: then the case, not gpr, is at fault."""
    problems = []
    if outcome.setup_error:
        return [f"set-up failed: {outcome.setup_error}"]
    if outcome.timed_out:
        return [f"time-out after {case.timeout_s:g} s"]
    if case.status is not None and outcome.status != case.status:
        problems.append(f"status {describe_status(outcome.status)}, "
                        f"expected {describe_status(case.status)}")
    if case.stdout_ends and not outcome.stdout.endswith(case.stdout_ends.encode()):
        problems.append(f"stdout does not end with {case.stdout_ends!r}")
    if problems and outcome.stderr:
        problems.append("stderr: " + outcome.stderr.decode(errors="backslashreplace")[-500:])
    return problems


def differences(case: Case, native: Outcome, other: Outcome) -> list[str]:
    if other.setup_error:
        return [f"set-up failed: {other.setup_error}"]
    problems = []
    if other.timed_out:
        problems.append(f"time-out after {case.timeout_s:g} s")
    elif other.status != native.status:
        problems.append(f"status {describe_status(other.status)}, "
                        f"native {describe_status(native.status)}")
    for name in ("stdout", "stderr"):
        expected = case.masked(getattr(native, name))
        got = case.masked(getattr(other, name))
        if expected != got:
            problems.append(f"{name} differs\n{_diff(expected, got)}")
    problems += [f"file {name}" for name in _file_differences(native.files, other.files)]
    return problems


def _diff(expected: bytes, got: bytes) -> str:
    lines = [text.decode(errors="backslashreplace").splitlines() for text in (expected, got)]
    diff = list(difflib.unified_diff(*lines, "native", "here", lineterm="", n=1))
    if not diff:
        return "  (line ends or undecodable bytes differ)"
    more = [f"... {len(diff) - MAX_DIFF_LINES} more lines"] if len(diff) > MAX_DIFF_LINES else []
    return "\n".join("  " + line[:200] for line in diff[:MAX_DIFF_LINES] + more)


def _file_differences(expected: dict[str, str], got: dict[str, str]) -> list[str]:
    found = []
    for name in sorted(expected.keys() | got.keys()):
        if expected.get(name) != got.get(name):
            found.append(f"{name}: native {expected.get(name, 'absent')}, "
                         f"here {got.get(name, 'absent')}")
    return found[:10]


# -- the statistics: a run that silently stayed native must fail


def stats_values(stats: dict) -> dict[str, float]:
    """Flat numbers that a case may bound: crossings, home_calls, node1_pages_in, ..."""
    values = {"crossings": stats["crossings"], "wall_s": stats["wall_s"]}
    for kind in ("native", "fd_owner", "home", "delegated"):
        values[f"{kind}_calls"] = stats["syscalls"][kind]
    for node in stats["nodes"]:
        for key, value in node.items():
            if key != "node":
                values[f"node{node['node']}_{key}"] = value
    cpu = sum(node["user_s"] for node in stats["nodes"])
    remote = sum(node["user_s"] for node in stats["nodes"] if node["node"] != 0)
    values["remote_cpu_share"] = remote / cpu if cpu > 0 else 0.0
    return values


def split_problems(case: Case, mode: str, outcome: Outcome, stats: dict | None) -> list[str]:
    if mode == "detach":  # they are of what came before
        return []
    if stats is None:
        return ["no statistics were written"]
    try:
        values = stats_values(stats)
    except (KeyError, TypeError) as error:
        return [f"statistics lack {error}"]
    problems = []
    shell_status = outcome.status if (outcome.status or 0) >= 0 else 128 - outcome.status
    if stats.get("exit_status") not in (outcome.status, shell_status):
        problems.append(f"statistics say exit_status {stats.get('exit_status')}, "
                        f"the parent saw {outcome.status}")
    for bound, limit in _bounds(case, mode).items():
        problem = _check_bound(bound, limit, values)
        if problem:
            problems.append(problem)
    return problems


def _bounds(case: Case, mode: str) -> dict[str, float]:
    bounds: dict[str, float] = {"crossings_min": 1, "node1_pages_in_min": 1}
    if mode == "home":  # supervised, and nothing of it belongs elsewhere
        return {"crossings_max": 0, "home_calls_min": 0}
    if mode in ("auto", "sent", "returned"):  # a short one may end before it goes
        return {}
    if mode == "bound":  # each call of the library crosses twice
        return bounds | case.expect_bound
    if mode in ("library", "function", "attach"):
        return bounds
    if case.cpu_bound and mode in ("split", "local"):
        bounds["remote_cpu_share_min"] = 0.9
    return bounds | case.expect


def _check_bound(bound: str, limit: float, values: dict[str, float]) -> str:
    name, _, kind = bound.rpartition("_")
    if kind not in ("min", "max") or name not in values:
        return f"expectation '{bound}' names nothing in the statistics"
    value = values[name]
    if kind == "min" and value < limit:
        return f"{name} is {value:g}, expected at least {limit:g}"
    if kind == "max" and value > limit:
        return f"{name} is {value:g}, expected at most {limit:g}"
    return ""
