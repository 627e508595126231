"""What scenarios that debug split programs have in common: gdb, as it is installed, is asked the
same about a program that runs natively and about one that is split."""

import contextlib
import os
import re
import subprocess
import time
from pathlib import Path

from lane import die_with_parent
from observing import Observing

MARK = "== next answer"
QUIET = ("-q", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex",
         "set pagination off", "-iex", "set width 0", "-iex", "set sysroot /", "-iex",
         "set remotetimeout 60")
END_S = 20


class Debugging(Observing):
    GUEST = ""  # a program that waits for a debugger if it is told to

    WAYS = (("all", ("--split", "all")), ("auto", ()),
            ("the C library away", ("--split", "lib:libc.so*")),
            ("crossing at random", ("--split", "chaos:3")), ("at home", ("--split", "home:*")))

    @contextlib.contextmanager
    def subject(self, before: list[str], status: int = 0, word: str = "wait"):
        command = ["setarch", "-R", *before, str(self.guests / self.GUEST), word]
        program = subprocess.Popen(self.lane.on_initiator(command), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=self.lane.environment(),
                                   cwd="/", preexec_fn=die_with_parent)
        try:
            self.expect("the program begins", program.stdout.readline() == b"ready\n", "it did not")
            time.sleep(0.3)
            yield program, self.pid_of(program.pid)
            out, err = program.communicate(timeout=END_S)
            self.expect("how it ends", program.returncode == status, (program.returncode, err))
            self.output = out.decode()
        finally:
            program.kill()
            program.communicate()

    def pid_of(self, above: int) -> int:
        """The guest's process, which is `above` or a descendant."""
        seen = [above]
        for pid in seen:
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text() == f"{self.GUEST[:15]}\n":
                    return pid
                for task in Path(f"/proc/{pid}/task").iterdir():
                    seen += map(int, (task / "children").read_text().split())
        raise RuntimeError("the guest is not there")

    def target(self, pid: int) -> str:
        gpr = " ".join(self.lane.on_initiator([str(self.lane.gpr), "gdbserver", str(pid)]))
        return f"target remote | {gpr}"

    def debug(self, before: list[str], session: tuple[str, ...], word: str) -> list[str]:
        with self.subject(before, word=word) as (_, pid):
            target = self.target(pid) if before else f"attach {pid}"
            commands = [word for question in session
                        for word in ("-ex", f"echo {MARK}\\n", "-ex", question)]
            try:
                outcome = subprocess.run(
                    ["gdb", *QUIET, "-ex", target, *commands, str(self.guests / self.GUEST)],
                    capture_output=True, text=True, timeout=int(os.environ.get("GDB_S", "120")))
            except subprocess.TimeoutExpired as late:
                said = (late.stdout or b"").decode(errors="replace")
                self.expect(f"gdb ends ({before})", False, said[-2000:])
                raise
        self.errors = outcome.stderr
        answers = outcome.stdout.split(MARK)[1:]
        self.expect("gdb answers all", len(answers) == len(session), outcome)
        answers += ["none"] * (len(session) - len(answers))
        # What the program itself says in the end belongs to the last answer.
        return [self.comparable(part) for part in answers[:-1]] + [self.output]

    @staticmethod
    def comparable(text: str) -> str:
        """Without numbers of threads and places, which of a remote target are said otherwise."""
        text = re.sub(r"Thread 0x[0-9a-f]+ \(LWP \d+\)|Thread \d+\.\d+( \([^)]*\))?|LWP \d+",
                      "Thread", text)
        text = re.sub(r'"debugged", |Thread [\d.]+ ("[^"]*" )?hit', "Thread hit", text)
        text = re.sub(r'Thread \d+ "[^"]*"|Thread \d+ (?=received)', "Thread ", text)
        text = re.sub(r' "debugged\w*"', "", text)
        text = re.sub(r"\[Inferior \d+ \(.*\) detached\]", "detached", text)
        text = re.sub(r"\(process \d+\)|forked process \d+", "process", text)
        text = re.sub(r"process \d+ is exec", "process is exec", text)
        text = re.sub(r"0x[0-9a-f]{6,}|\b\d{5,}\b", "#", text).replace("# in ", "")
        lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
        if "Watchpoint" in text:  # the thread that gdb chooses then is any
            lines = [line for line in lines if "value =" in line]
        if "process)," in text:  # a fork: the parent may have gone on a little
            lines = [line.split(",")[0] for line in lines if "process)," in line]
        lines = [line for line in lines
                 if not any(word in line for word in ("Switching to", "[Thread", "Detaching",
                                                      "libthread_db"))
                 and not line.startswith(("warning:", "Reading "))]
        return "\n".join(lines)
