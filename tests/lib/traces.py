"""Traces of strace and of gpr trace, in a form in which they can be compared."""

import re
from collections import defaultdict

# Calls whose results are numbers of processes or threads.
IDS = {"clone", "clone3", "fork", "vfork", "wait4", "waitid", "getpid", "gettid", "getppid",
       "set_tid_address", "getpgrp", "setsid", "getsid", "getpgid"}
ADDRESSES = {"mmap", "brk", "mremap", "shmat"}
# Of these the first text is compared as well.
NAMED = {"openat", "open", "access", "newfstatat", "readlink", "unlink", "mkdir",
         "write", "chdir", "statx"}
# What a handler interrupted; and whether who kills itself sees the result is by chance.
LOOSE = {"rt_sigreturn", "kill", "tkill", "tgkill"}
# gpr refuses rseq, and restarts interrupted calls by other means.
UNLIKE = {"rseq", "restart_syscall"}
BEGUN = re.compile(r"^(\w+)\((.*?)(?:,? ?)<unfinished \.\.\.>$")
RESUMED = re.compile(r"^<\.\.\. (\w+) resumed>(.*)$")
CALL = re.compile(r"^(\w+)\((.*)\)\s+= (.*)$")
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


def result_of(name: str, result: str) -> str:
    if name in LOOSE:
        return ""
    words = result.split()
    if words[0] == "?":
        return "?" if len(words) == 1 else words[1]
    if words[0] == "-1":
        return words[1]
    if name in IDS:
        return "id"
    if name in ADDRESSES:
        return "address"
    return str(int(words[0], 0)) if re.fullmatch(r"-?\d+|0x[0-9a-f]+", words[0]) else words[0]


def comparable(line: str) -> str | None:
    """None: it is not compared."""
    if line.startswith("+++ "):
        return line
    if line.startswith("--- SIGCHLD"):  # before or after the next call: by chance
        return None
    if line.startswith("--- "):
        return " ".join(line.split()[:2])
    found = CALL.match(line)
    if not found or found[1] in UNLIKE:
        return None
    name, arguments, result = found.groups()
    text = TEXT.search(arguments) if name in NAMED else None
    return f"{name} {text[1][:24] if text else ''} = {result_of(name, result)}"


def lines_by_thread(text: str, columns: int) -> dict[int, list[str]]:
    """columns: how many there are before the call. Calls that are in two lines are joined."""
    threads: dict[int, list[str]] = defaultdict(list)
    begun: dict[int, str] = {}
    for line in text.splitlines():
        words = line.split(None, columns)
        if len(words) <= columns or not words[0].isdigit():
            continue
        tid, rest = int(words[0]), words[columns].strip()
        if (half := BEGUN.match(rest)) is not None:
            begun[tid] = f"{half[1]}({half[2]}"
            threads[tid] += []
            continue
        if (half := RESUMED.match(rest)) is not None:
            before = begun.pop(tid, f"{half[1]}(")
            # gpr repeats the arguments, with what the call has left in memory.
            whole = half[2].lstrip()
            rest = f"{half[1]}{whole}" if whole.startswith("(") else f"{before}{half[2]}"
        threads[tid].append(rest)
    for tid, half in begun.items():
        threads[tid].append(f"{half}) = ?")
    return threads


def threads_of(text: str, columns: int) -> list[list[str]]:
    """Of each thread what is compared, the threads in an order that does not depend on their
    numbers."""
    found = []
    for lines in lines_by_thread(text, columns).values():
        found.append([c for c in (comparable(line) for line in lines) if c is not None])
    return sorted(found)
