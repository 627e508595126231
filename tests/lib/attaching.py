"""Modes `attach` and `detach`: a case begins natively, is stopped somewhere in its life, and goes
on split; and a while later natively again."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

ATTACHED = "is attached"
PATIENCE_S = 30.0
LOOK_S = 0.002


class Attacher:
    """Attaches gpr to the program of one run; see launch.run(on_start)."""

    def __init__(self, command: list[str], log: Path, native_wall_s: float, seed: int,
                 detaches: bool):
        self.command = command  # of gpr attach, without the process
        self.log = log
        # Early enough that something is left of it.
        chance = random.Random(seed)
        self.after_s = chance.uniform(0.1, 0.7) * native_wall_s
        self.stays_s = chance.uniform(0.05, 0.7) * native_wall_s if detaches else None
        self.problems: list[str] = []
        self._detach_at: float | None = None
        self._looked = False
        self.said = ""  # by a gpr that refused
        self.attached = False
        self._gpr: subprocess.Popen | None = None

    def on_start(self, pid: int):
        shell = os.readlink("/proc/self/exe")
        began = time.monotonic()
        # The runner's child executes nsenter, and that the program.
        while self._executable(pid) in (shell, self._nsenter()):
            if time.monotonic() > began + PATIENCE_S:
                return None
            time.sleep(LOOK_S / 4)
        time.sleep(self.after_s)
        self._signal(pid, signal.SIGSTOP)
        try:
            self._attach(pid)
        finally:
            self._signal(pid, signal.SIGCONT)
        if self.stays_s is None or not self.attached:
            return None
        self._detach_at = time.monotonic() + self.stays_s
        return lambda: self._detach(pid)

    def _detach(self, pid: int) -> None:
        """Called every now and then; never waits, for the program's output is waited for."""
        if self._gpr.poll() is not None:
            if self._detach_at is None and not self._looked:
                self._looked = True
                self._look(pid)
        elif self._detach_at is not None and time.monotonic() > self._detach_at:
            self._detach_at = None
            self._gpr.send_signal(signal.SIGTERM)

    def _look(self, pid: int) -> None:
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            return
        if "TracerPid:\t0\n" not in status:
            self.problems.append("still traced after it was detached")

    def _attach(self, pid: int) -> None:
        self.log.unlink(missing_ok=True)
        self._gpr = subprocess.Popen([*self.command, str(pid)], stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until and self._gpr.poll() is None:
            if self.log.exists() and ATTACHED in self.log.read_text(errors="replace"):
                self.attached = True
                return
            time.sleep(LOOK_S)

    def end(self) -> int | None:
        """What gpr says of a run that is over; None: it was never started or does not end."""
        if self._gpr is None:
            return None
        try:
            self.said = self._gpr.communicate(timeout=PATIENCE_S)[1].decode(errors="replace")
        except subprocess.TimeoutExpired:
            self._gpr.kill()
            self.said = "gpr attach does not end with the program"
            self._gpr.wait()
            return None
        return self._gpr.returncode

    @staticmethod
    def _executable(pid: int) -> str:
        try:
            return os.readlink(f"/proc/{pid}/exe")
        except OSError:
            return ""

    @staticmethod
    def _nsenter() -> str:
        return os.path.realpath("/usr/bin/nsenter")

    @staticmethod
    def _signal(pid: int, number: int) -> None:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass
