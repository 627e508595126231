"""What the acceptor's host sees of a box while a program runs in it."""

import os
import re
import subprocess
import time
from pathlib import Path

USER_IDS = range(2_100_000_000, 2_100_065_536)
NAMESPACES = ("user", "net", "mnt", "pid", "ipc", "uts")
ONLY_CHECKPOINT_RESTORE = 1 << 40
OOM_DISTANCE, MOST_FILES = 500, 1 << 18
START_S = 10.0


def children_of(pid: int) -> list[int]:
    try:
        words = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [int(word) for word in words]


def status_of(pid: int) -> dict[str, str]:
    """Empty if the process has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return {}
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def number_in(pid: int, name: str) -> int:
    return int(Path(f"/proc/{pid}/{name}").read_text())


def namespaces_of(pid: int) -> dict[str, str]:
    return {kind: os.readlink(f"/proc/{pid}/ns/{kind}") for kind in NAMESPACES}


def soft_limit(pid: int, name: str) -> int:
    found = re.search(rf"^{name} +(\d+) ", Path(f"/proc/{pid}/limits").read_text(), re.MULTILINE)
    return int(found[1]) if found else 1 << 62


class Box:
    """A session of a program that waits; its worker and the processes in its box."""

    def __init__(self, checks, rules: str = "all"):
        self.checks = checks
        lane = checks.lane
        self.session = subprocess.Popen(
            lane.on_initiator([str(lane.gpr), "exec", "--acceptor", lane.address, "--token-file",
                               str(lane.token_file), "--split", rules, "--", "/bin/sleep", "60"]),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd="/", start_new_session=True, env=lane.environment())
        self.worker, self.inside = 0, []

    def find(self, others: set[int]) -> bool:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self.session.poll() is None:
            for worker in set(children_of(self.checks.lane.acceptor_pid)) - others:
                inside = children_of(worker)
                # Init, and the program with its filters.
                if len(inside) >= 2 and any(status_of(p).get("Seccomp") == "2" for p in inside):
                    self.worker, self.inside = worker, inside
                    return True
            time.sleep(0.02)
        return False

    def end(self) -> None:
        self.session.terminate()
        self.session.communicate()


def look_at(checks, box: Box) -> set[int]:
    """The users that it runs as; what is not as it should be is a problem."""
    daemon = checks.lane.acceptor_pid
    hosts, users = namespaces_of(daemon), set()
    for pid in box.inside:
        status = status_of(pid)
        ids = {int(word) for word in (status["Uid"] + " " + status["Gid"]).split()}
        users |= ids
        checks.expect("its user is nobody", len(ids) == 1 and ids <= set(USER_IDS), status)
        checks.expect("it has no groups", not status["Groups"].strip("0 "), status["Groups"])
        theirs = namespaces_of(pid)
        shared = [kind for kind in NAMESPACES if theirs[kind] == hosts[kind]]
        checks.expect("its namespaces are its own", not shared, (pid, shared))
        powers = int(status["CapPrm"], 16) | int(status["CapInh"], 16) | int(status["CapBnd"], 16)
        checks.expect("it may choose ids of processes, and nothing else",
                      not powers & ~ONLY_CHECKPOINT_RESTORE, status["CapPrm"])
        checks.expect("it gains no privileges", status["NoNewPrivs"] == "1", status)
        if status["Seccomp"] != "2":
            continue  # init
        checks.expect("it is the first to go when memory is short",
                      number_in(pid, "oom_score_adj") - number_in(box.worker, "oom_score_adj")
                      == OOM_DISTANCE, pid)
        checks.expect("its descriptors have a limit", soft_limit(pid, "Max open files")
                      <= MOST_FILES, pid)
        checks.expect("its tasks have a limit", soft_limit(pid, "Max processes") <= 1 << 15, pid)
    checks.expect("the worker's memory has a limit",
                  soft_limit(box.worker, "Max data size") < 1 << 40, box.worker)
    return users


def look_at_boxes(checks) -> None:
    """Two at once: each has what it should have, and a user of its own."""
    boxes, seen, workers = [], [], set()
    try:
        for _ in range(2):
            box = Box(checks)
            boxes.append(box)
            found = box.find(workers)
            checks.expect("a box is there", found, box.session.poll())
            if not found:
                return
            workers.add(box.worker)
            seen.append(look_at(checks, box))
        checks.expect("each has a user of its own", not seen[0] & seen[1], seen)
    finally:
        for box in boxes:
            box.end()
