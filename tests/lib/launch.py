"""Run one command to its end or its time-out and keep everything it did."""

import dataclasses
import hashlib
import os
import resource
import selectors
import signal
import stat
import subprocess
import time
from pathlib import Path

import process_tree
from lane import die_with_parent

REAP_EVERY_S = 2.0  # what has ended and was handed to us: a program may make thousands
EOF_GRACE_S = 3.0  # how long a background child may keep stdout open after the program's end


@dataclasses.dataclass
class Outcome:
    status: int | None  # as in subprocess: negative for a signal; None after a time-out
    stdout: bytes
    stderr: bytes
    wall_s: float
    files: dict[str, str] = dataclasses.field(default_factory=dict)
    timed_out: bool = False
    diagnosis: str = ""
    setup_error: str = ""  # the case's set-up failed, so the command never ran


def _prepare_child() -> None:
    die_with_parent()
    os.umask(0o022)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class _Streams:
    """Feeds stdin and collects stdout and stderr without ever blocking."""

    def __init__(self, child: subprocess.Popen, stdin: bytes):
        self.child = child
        self.pending_input = memoryview(stdin)
        self.output = {child.stdout: bytearray(), child.stderr: bytearray()}
        self.selector = selectors.DefaultSelector()
        for stream in (child.stdin, *self.output):
            os.set_blocking(stream.fileno(), False)
        for stream in self.output:
            self.selector.register(stream, selectors.EVENT_READ)
        if stdin:
            self.selector.register(child.stdin, selectors.EVENT_WRITE)
        else:
            child.stdin.close()

    def outputs_open(self) -> bool:
        return any(not stream.closed for stream in self.output)

    def step(self, timeout_s: float) -> None:
        for key, _ in self.selector.select(timeout_s):
            if key.fileobj is self.child.stdin:
                self._feed()
            elif key.fileobj in self.output:
                self._collect(key.fileobj)

    def _feed(self) -> None:
        try:
            written = os.write(self.child.stdin.fileno(), self.pending_input[:65536])
            self.pending_input = self.pending_input[written:]
        except BrokenPipeError:
            self.pending_input = memoryview(b"")
        except BlockingIOError:
            return
        if not self.pending_input:
            self._close(self.child.stdin)

    def _collect(self, stream) -> None:
        try:
            data = os.read(stream.fileno(), 1 << 20)
        except BlockingIOError:
            return
        if data:
            self.output[stream] += data
        else:
            self._close(stream)

    def _close(self, stream) -> None:
        self.selector.unregister(stream)
        stream.close()

    def close(self) -> None:
        for stream in (self.child.stdin, *self.output):
            if not stream.closed:
                self._close(stream) if stream in self.selector.get_map() else stream.close()
        self.selector.close()


def run(command: list[str], cwd: Path, env: dict[str, str], stdin: bytes, timeout_s: float,
        keep: set[int], on_start=None) -> Outcome:
    """Run command; `keep` are the processes below us that must survive a time-out.

    on_start(pid), when given, is called once and may return a callable that is polled every
    20 ms: the fault injector's hook.
    """
    started = time.monotonic()
    child = subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             start_new_session=True, preexec_fn=_prepare_child)
    poll_hook = on_start(child.pid) if on_start else None
    streams = _Streams(child, stdin)
    exit_fd = os.pidfd_open(child.pid)
    streams.selector.register(exit_fd, selectors.EVENT_READ)
    timed_out, diagnosis, ended_at, reaped_at = False, "", None, started
    while True:
        streams.step(0.02 if poll_hook else 0.2)
        now = time.monotonic()
        if now > reaped_at + REAP_EVERY_S:
            process_tree.reap_adopted(keep | {child.pid})
            reaped_at = now
        if ended_at is None and child.poll() is not None:
            ended_at = now
            streams.selector.unregister(exit_fd)
        if poll_hook and ended_at is None:
            poll_hook()
        if ended_at is not None and (not streams.outputs_open() or now > ended_at + EOF_GRACE_S):
            break
        if ended_at is None and now > started + timeout_s:
            timed_out = True
            diagnosis = process_tree.diagnose(process_tree.descendants(os.getpid()))
            process_tree.kill_all(keep | {child.pid})
            child.kill()
            child.wait()
            break
    wall_s = (ended_at or time.monotonic()) - started
    outputs = [bytes(streams.output[stream]) for stream in (child.stdout, child.stderr)]
    streams.close()
    os.close(exit_fd)
    return Outcome(None if timed_out else child.returncode, *outputs, wall_s,
                   timed_out=timed_out, diagnosis=diagnosis)


def describe_status(status: int | None) -> str:
    if status is None:
        return "time-out"
    if status < 0:
        return signal.Signals(-status).name
    return str(status)


def hash_tree(root: Path, ignore: list[str]) -> dict[str, str]:
    """Every name below root with its type, mode, size and content, for comparing two runs."""
    found = {}
    for folder, subfolders, names in os.walk(root):
        subfolders.sort()
        for name in subfolders + names:
            path = Path(folder) / name
            relative = path.relative_to(root)
            if not any(relative.match(pattern) for pattern in ignore):
                found[str(relative)] = _describe_file(path)
    return found


def _describe_file(path: Path) -> str:
    info = path.lstat()
    text = f"{stat.filemode(info.st_mode)} links={info.st_nlink}"
    if stat.S_ISLNK(info.st_mode):
        return f"{text} -> {os.readlink(path)}"
    if stat.S_ISREG(info.st_mode):
        digest = hashlib.file_digest(path.open("rb"), "sha256").hexdigest()
        return f"{text} size={info.st_size} {digest[:16]}"
    return text
