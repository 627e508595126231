"""Two hosts on one machine: network namespaces, a processor each, a link that may be shaped."""

import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "lib"))

from lane import ACCEPTOR_IP, INITIATOR_IP, Lane, LaneError, die_with_parent  # noqa: E402

INITIATOR, ACCEPTOR = "initiator", "acceptor"
ADDRESSES = {INITIATOR: INITIATOR_IP, ACCEPTOR: ACCEPTOR_IP}
TBF_BURST, TBF_LATENCY = "256kb", "50ms"

READY_S = 0.5  # until it has made what sessions find ready

__all__ = ["ACCEPTOR", "ADDRESSES", "Hosts", "INITIATOR", "LaneError"]


def _descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        children.setdefault(parent, []).append(int(stat.parent.name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def _place_all(pid: int, processors: set[int]) -> None:
    """A process's threads, and its descendants'. One that ends meanwhile needs no place."""
    for one in _descendants(pid):
        try:
            for task in Path(f"/proc/{one}/task").iterdir():
                os.sched_setaffinity(int(task.name), processors)
        except (ProcessLookupError, FileNotFoundError):
            continue


class Hosts:
    """A lane (see tests/lib/lane.py: private, leaves nothing) with processors and shaping."""

    def __init__(self, gpr: Path, shape: str):
        self.lane = Lane(gpr, keeps_contents=True)
        self.shape = shape
        self.processors: dict[str, set[int]] = {}
        self.all_processors = os.sched_getaffinity(0)

    def __enter__(self) -> "Hosts":
        self.lane.enter()
        os.environ["XDG_CACHE_HOME"] = str(self.lane.cache)  # of whatever is measured
        if not self.lane.two_hosts:
            raise LaneError("network namespaces need root")
        if self.shape:
            for name in ADDRESSES:
                subprocess.run(["ip", "netns", "exec", name, "tc", "qdisc", "replace", "dev",
                                "veth0", "root", "tbf", "rate", self.shape, "burst", TBF_BURST,
                                "latency", TBF_LATENCY], check=True)
        return self

    def __exit__(self, *_) -> None:
        self.lane.close()

    def place(self, pinned: bool) -> None:
        """Before anything is started on the hosts: a processor each, or all for both."""
        ordered = sorted(self.all_processors)
        if pinned:
            self.processors = {INITIATOR: {ordered[0]}, ACCEPTOR: {ordered[1]}}
        else:
            self.processors = {INITIATOR: set(ordered), ACCEPTOR: set(ordered)}

    def start_acceptor(self) -> None:
        """Also moves one that runs, and what it has ready for sessions: the sessions inherit its
        processors."""
        self.lane.ensure_acceptor()
        time.sleep(READY_S)
        _place_all(self.lane.acceptor_pid, self.processors[ACCEPTOR])

    def command(self, host: str, command: list[str]) -> list[str]:
        """The command as it is started on that host."""
        processors = ",".join(str(number) for number in sorted(self.processors[host]))
        return ["nsenter", f"--net=/run/netns/{host}", "taskset", "-c", processors, *command]

    def gpr_command(self, rules: list[str], stats: Path, command: list[str]) -> list[str]:
        gpr = [str(self.lane.gpr), "exec", "--acceptor", self.lane.address, "--token-file",
               str(self.lane.token_file), *(w for rule in rules for w in ("--split", rule)),
               f"--stats={stats}", "--", *command]
        return self.command(INITIATOR, gpr)

    def start(self, command: list[str], **options) -> subprocess.Popen:
        return subprocess.Popen(command, preexec_fn=die_with_parent, **options)
