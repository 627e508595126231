"""Talking to the measured programs; see subject.h for what they speak."""

import os
import select
import subprocess
import time

ANSWER_TIMEOUT_S = 120.0


class SubjectError(Exception):
    """A measured program did not do what it should; the message says which and how."""


class Subject:
    """A program that waits for commands, so that several can take turns."""

    def __init__(self, hosts, name: str, command: list[str]):
        self.name = name
        self._pending = b""
        self._process = hosts.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, start_new_session=True)
        try:
            self._expect_ready()
        except SubjectError:
            self.kill()
            raise

    def _expect_ready(self) -> None:
        line = self._line(ANSWER_TIMEOUT_S)
        if line != "ready":
            raise SubjectError(f"{self.name} said '{line}' instead of 'ready'")

    def _why(self) -> str:
        if self._process.poll() is None:
            return "no answer"
        said = self._process.stderr.read1(4096).decode(errors="replace").strip()
        return f"ended with {self._process.returncode}: {said.splitlines()[-1] if said else ''}"

    def _line(self, timeout_s: float) -> str:
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            ready = select.select([self._process.stdout], [], [], max(left, 0))[0]
            data = os.read(self._process.stdout.fileno(), 1 << 16) if ready else b""
            if not data:
                if ready:
                    try:
                        self._process.wait(5)
                    except subprocess.TimeoutExpired:
                        pass
                raise SubjectError(f"{self.name}: {self._why()}")
            self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        return line.decode()

    def ask(self, command: str, count: int) -> list[int]:
        """Nanoseconds of each operation."""
        try:
            self._process.stdin.write(f"{command} {count}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # reading tells why
        return [int(word) for word in self._line(ANSWER_TIMEOUT_S).split()]

    def quit(self) -> None:
        """Lets it end by itself, so that statistics are written."""
        try:
            self._process.communicate(b"quit\n", timeout=10)
        except (subprocess.TimeoutExpired, BrokenPipeError, ValueError):
            self.kill()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            try:
                stream.close()
            except BrokenPipeError:
                pass


def take_turns(turns: list[tuple[str, Subject, str, int]], rounds: int) -> dict[str, list[int]]:
    """Every subject in every round: what disturbs the machine disturbs all of them."""
    samples: dict[str, list[int]] = {name: [] for name, *_ in turns}
    for name, subject, command, count in turns:
        subject.ask(command, max(count // 4, 1))  # warm
    for _ in range(rounds):
        for name, subject, command, count in turns:
            samples[name] += subject.ask(command, count)
    return samples
