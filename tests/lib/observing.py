"""What scenarios that look at sessions have in common: a program to look at, and asking gpr."""

import argparse
import contextlib
import json
import signal
import subprocess
import time
from pathlib import Path

from checks import Checks, run_in_lane
from lane import Lane, die_with_parent

# A thread that computes, one that sleeps, and the first, which waits for its input; 32 MiB that
# are touched where they run.
PROGRAM = """
import sys, threading, time
memory = bytearray(b"x" * (32 << 20))
def busy():
    while True:
        pass
threading.Thread(target=busy, daemon=True, name="busy").start()
threading.Thread(target=lambda: time.sleep(1000), daemon=True).start()
print("ready", flush=True)
sys.stdin.read(1)
"""
MEMORY_PAGES = 8192
END_S = 10
SESSIONS = Path("/run/gpr")
USAGE, FAILED = 2, 1


class Observing(Checks):
    def __init__(self, lane: Lane, guests: Path):
        super().__init__(lane)
        self.guests = guests
        # Nobody else's sessions, and no trace on the host.
        SESSIONS.mkdir(mode=0o700, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0700", "gpr-tests", str(SESSIONS)],
                       check=True)

    @property
    def credential(self) -> tuple[str, ...]:
        return ("--token-file", str(self.lane.token_file))

    def begin(self, verb: str, *words: str) -> list[str]:
        return [str(self.lane.gpr), verb, "--acceptor", f"far={self.lane.address}",
                "--token-file", str(self.lane.token_file), *words]

    def exec(self, *words: str) -> list[str]:
        return self.begin("exec", "--split", "all", *words)

    @contextlib.contextmanager
    def running(self, command: list[str]):
        """The program, and what it said when it was ready."""
        program = subprocess.Popen(self.lane.on_initiator(command), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/",
                                   env=self.lane.environment(), preexec_fn=die_with_parent)
        try:
            line = program.stdout.readline().decode()
            self.expect("the program begins", line.startswith("ready"),
                        line or program.stderr.read1(4096))
            time.sleep(0.5)  # the first thread is in its read, others have computed
            yield program, line
        finally:
            program.kill()
            program.wait()
            program.stdin.close()
            program.stdout.close()
            program.stderr.close()

    @contextlib.contextmanager
    def session(self, *options: str):
        command = self.exec(*options, "--", "/usr/bin/python3", "-c", PROGRAM)
        with self.running(command) as (program, _):
            yield program
        ends_by = time.monotonic() + END_S
        while (left := self.json("ps").get("sessions")) and time.monotonic() < ends_by:
            time.sleep(0.05)
        self.expect("the session ends with its program", left == [], left)

    def json(self, *words: str) -> dict:
        outcome = self.gpr(*words, "--json")
        try:
            return json.loads(outcome.stdout)
        except ValueError:
            self.expect(f"gpr {' '.join(words)} --json", False, outcome)
            return {}


def main(scenario: type[Observing], description: str) -> int:
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--build", type=Path, metavar="DIR",
                        default=Path(__file__).resolve().parent.parent.parent / "build")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up as after Ctrl-C

    def run(lane: Lane) -> Observing:
        observe = scenario(lane, arguments.build.resolve() / "tests" / "guests")
        observe.run()
        return observe
    return run_in_lane(arguments.build, run)
