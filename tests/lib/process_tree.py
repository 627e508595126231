"""What our process has started, seen through /proc: to find leaks and to diagnose hangs."""

import os
import signal
import time
from pathlib import Path

PROC = Path("/proc")
SPARE = "gpr-spare"
DIAGNOSED = ("status", "wchan", "syscall", "stack")


def _parents() -> dict[int, int]:
    parents = {}
    for entry in PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text(errors="replace")
        except OSError:
            continue  # it ended while we looked
        parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    return parents


def _is_spare(pid: int, parent: int) -> bool:
    """A worker that an acceptor keeps for the next session. It ends with its acceptor."""
    return name_of(pid) == SPARE and name_of(parent) == "gpr"


def descendants(root: int) -> set[int]:
    """All living processes below root, except acceptors' spare workers. With root a subreaper,
    orphans are included."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents().items():
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    queue = [root]
    while queue:
        parent = queue.pop()
        for child in children.get(parent, []):
            if not _is_spare(child, parent):
                found.add(child)
                queue.append(child)
    return found


def state_of(pid: int) -> str:
    """The one-letter state, or "" when the process is gone."""
    try:
        return (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return ""


def name_of(pid: int) -> str:
    try:
        return (PROC / str(pid) / "comm").read_text(errors="replace").strip()
    except OSError:
        return "?"


def tracer_of(pid: int) -> int:
    try:
        for line in (PROC / str(pid) / "status").read_text(errors="replace").splitlines():
            if line.startswith("TracerPid:"):
                return int(line.split()[1])
    except OSError:
        pass
    return 0


def reap_adopted(keep: set[int]) -> None:
    """Collect orphans that were handed to us, so that zombies do not count as leaks."""
    for pid, parent in _parents().items():
        if parent == os.getpid() and pid not in keep and state_of(pid) == "Z":
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass


def leftovers(keep: set[int], wait_s: float = 3.0) -> list[str]:
    """Processes below us other than `keep`, once they had wait_s to go away."""
    deadline = time.monotonic() + wait_s
    while True:
        reap_adopted(keep)
        left = descendants(os.getpid()) - keep
        if not left or time.monotonic() > deadline:
            return [f"{name_of(pid)}[{pid}]" for pid in sorted(left)]
        time.sleep(0.02)


def kill_all(keep: set[int]) -> None:
    """End every descendant except `keep`, also those that appear while we do it."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        left = descendants(os.getpid()) - keep
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        reap_adopted(keep)
        time.sleep(0.02)


def diagnose(pids: set[int]) -> str:
    """Where every thread of these processes is; reading needs root for stack."""
    out = []
    for pid in sorted(pids):
        out.append(f"=== {name_of(pid)}[{pid}] {_text(PROC / str(pid) / 'cmdline')}")
        for task in sorted((PROC / str(pid) / "task").glob("*")):
            out.append(f"--- thread {task.name}")
            for item in DIAGNOSED:
                out.append(f"{item}: {_text(task / item)}")
    return "\n".join(out) + "\n"


def _text(path: Path) -> str:
    try:
        text = path.read_bytes().replace(b"\0", b" ").decode(errors="replace").rstrip()
    except OSError as error:
        return f"({error.strerror})"
    if path.name == "status":
        wanted = ("State", "Tgid", "PPid", "TracerPid", "NSpid", "SigPnd", "ShdPnd", "SigBlk")
        return "; ".join(line for line in text.splitlines() if line.startswith(wanted))
    return text
