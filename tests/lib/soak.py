"""Parts of tests/soak/run: what is watched in long-lived processes, and who runs the cases."""

import dataclasses
import multiprocessing
import os
import shutil
import signal
from pathlib import Path

import launch
import modes
import process_tree
from case import Case
from lane import Lane, die_with_parent
from runner import CaseRunner, Result

PROC = Path("/proc")
WARM_UP = 0.25  # of the samples: caches fill, threads of libraries start
# How much more there may be in the last quarter of a soak than after the warm-up. Memory: what the
# allocator keeps, and records of pages, which come in steps.
BOUNDS = {"fds": 4, "threads": 1, "vmas": 16, "rss_kib": 4096, "children": 0}


@dataclasses.dataclass
class Sample:
    """What one process has at one moment."""
    fds: int
    threads: int
    vmas: int
    rss_kib: int  # its own: anonymous memory
    children: int

    @staticmethod
    def of(pid: int) -> "Sample | None":
        folder = PROC / str(pid)
        try:
            status = dict(line.split(":", 1) for line in
                          (folder / "status").read_text().splitlines())
            return Sample(len(list((folder / "fd").iterdir())), int(status["Threads"]),
                          len((folder / "maps").read_text().splitlines()),
                          int(status["RssAnon"].split()[0]), len(children_of(pid)))
        except (OSError, KeyError):
            return None


def children_of(pid: int) -> list[int]:
    return [int(word) for task in (PROC / str(pid) / "task").iterdir()
            for word in (task / "children").read_text().split()]


class Watched:
    """One long-lived process."""

    def __init__(self, name: str, pid: int):
        self.name = name
        self.pid = pid
        self.samples: list[Sample] = []

    def look(self) -> bool:
        """Whether it is still there."""
        sample = Sample.of(self.pid)
        if sample:
            self.samples.append(sample)
        return sample is not None

    def before_and_after(self, what: str) -> tuple[float, float]:
        """After the warm-up, and in the end: the least, because a sample may meet a fork."""
        values = [getattr(sample, what) for sample in self.samples]
        warm = values[int(len(values) * WARM_UP):] or [0]
        part = max(1, len(warm) // 3)
        return min(warm[:part]), min(warm[-part:])

    def leaks(self) -> list[str]:
        found = []
        for what, bound in BOUNDS.items():
            before, after = self.before_and_after(what)
            if after - before > bound:
                found.append(f"{self.name}: {what} grew from {before:g} to {after:g}, "
                             f"allowed are {bound} more")
        return found


class Slot:
    """A process that runs one case after another, told which by a pipe."""

    def __init__(self, lane: Lane, name: str, log_dir: Path):
        self.name = name
        self.busy = False
        context = multiprocessing.get_context("fork")
        self.pipe, far = context.Pipe()
        self._process = context.Process(target=self._work, args=(lane.share(name), log_dir, far))
        self._process.start()
        far.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self, work, *arguments) -> None:
        """work(lane, log_dir, *arguments) gives the Result."""
        self.busy = True
        self.pipe.send((work, arguments))

    def result(self) -> Result:
        result = self.pipe.recv()  # EOFError: the process died
        self.busy = False
        return result

    def stop(self) -> None:
        if self._process.is_alive():
            os.kill(self._process.pid, signal.SIGTERM)
        self._process.join()

    def _work(self, lane: Lane, log_dir: Path, pipe) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: (process_tree.kill_all(set()), os._exit(0)))
        die_with_parent(signal.SIGTERM)
        lane.become_reaper()
        while True:
            work, arguments = pipe.recv()
            pipe.send(work(lane, log_dir, *arguments))


def run_case(lane: Lane, log_dir: Path, case: Case, seed: int) -> Result:
    """Natively, then crossing at random. Of a failure the record and all logs are kept."""
    record, log = lane.root / "record", lane.root / "gpr.log"
    for path in (record, log):
        path.unlink(missing_ok=True)
    kept = log_dir / f"{case.suite}.{case.name}.{seed}"
    runner = CaseRunner(lane, ["chaos"], kept, [f"--record={record}", f"--log={log}"], False,
                        chaos_seed=seed)
    result = Result(case.full_name, "native", "skipped", "it does not run in chaos mode")
    for result in runner.run(case):
        pass
    if result.verdict == "failed" and result.mode == "chaos":
        result.detail += keep(kept, record, log)
    return result


def keep(folder: Path, *paths: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    for path in paths:
        if path.exists():
            shutil.copy(path, folder)
    return f"\nkept in {folder}"


def run_steady(lane: Lane, log_dir: Path, guest: Path, seconds: int, seed: int) -> Result:
    """The session that lives as long as the soak."""
    case = Case("soak", "steady", [str(guest), str(seconds), "tell"], timeout_s=seconds + 120)
    record, log, stats = (lane.root / name for name in ("record", "gpr.log", "stats.json"))
    command = modes.command_line("chaos", case, lane, stats,
                                 [f"--record={record}", f"--log={log}"], seed)
    outcome = launch.run(command, lane.fresh_case_dir(), lane.environment(), b"", case.timeout_s,
                         lane.protected())
    text = (outcome.stdout + outcome.stderr).decode(errors="replace")
    if outcome.status == 0 and outcome.stdout == b"passed\n":
        return Result(case.full_name, "chaos", "passed", text, outcome.wall_s)
    detail = f"status {launch.describe_status(outcome.status)}\n{text[-2000:]}"
    kept = log_dir / f"{case.suite}.{case.name}.{seed}"
    detail += keep(kept, record, log)
    (kept / "diagnosis").write_text(outcome.diagnosis)
    return Result(case.full_name, "chaos", "failed", detail, outcome.wall_s)
