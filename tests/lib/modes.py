"""The ways to run a case; native Linux is the oracle for all others."""

import json
import os
import random
import shutil
from pathlib import Path

from case import Case
from lane import Lane

NATIVE_MODES = ("native", "again")  # "again" runs natively once more: is the case deterministic?
GPR_MODES = ("home", "split", "local", "library", "bound", "function", "chaos", "three",
             "attach", "detach", "auto", "sent", "returned")
RESTING_MODES = ("auto", "sent", "returned")  # processes begin at home
SENT_AFTER_MS = (1, 2, 5, 10, 20, 50, 100)
RETURNED_AFTER_MS = (20, 50, 100, 200)  # less leaves a process no time for anything else
LATE_MODES = ("attach", "detach")  # split in the middle of its life
ALL_MODES = NATIVE_MODES + GPR_MODES
DEFAULT_MODES = ("native", "home", "split", "library", "bound", "function")
CHAOS_SEED = 1


def parse_modes(text: str) -> list[str]:
    modes = [word for word in text.split(",") if word]
    for mode in modes:
        if mode not in ALL_MODES:
            raise ValueError(f"unknown mode '{mode}'; known: {', '.join(ALL_MODES)}")
    return ["native"] + [mode for mode in modes if mode != "native"]


def find_gpr(build: Path) -> Path | None:
    binary = build / "tools" / "gpr"
    return binary if binary.exists() else None


def why_not(mode: str, lane: Lane) -> str:
    """Why this mode cannot run here, or ""."""
    if mode in NATIVE_MODES:
        return ""
    if lane.gpr is None:
        return "no gpr binary"
    if mode != "local" and not lane.two_hosts:
        return "needs root to make network namespaces"
    return ""


def _program(case: Case) -> str:
    """Of which file the process will be; of a script's, its interpreter is not looked for."""
    return os.path.realpath(shutil.which(case.command[0]) or case.command[0])


def _rules(mode: str, case: Case, seed: int) -> list[str]:
    library = f"lib:{case.library}"
    if mode == "bound":
        return [library, f"home:{_program(case)}"]
    if mode == "three":
        mode = "chaos"
    return {"home": ["home:*"], "split": ["all"], "local": ["all"], "library": [library],
            "function": [f"fn:{case.library}!{case.functions}"], "chaos": [f"chaos:{seed}"]}[mode]


def command_line(mode: str, case: Case, lane: Lane, stats: Path, extra: list[str],
                 seed: int = CHAOS_SEED) -> list[str]:
    if mode in NATIVE_MODES or mode in LATE_MODES:  # which begins like that
        return lane.on_initiator(case.command)
    where = ["--acceptor", "local"]
    if mode != "local":
        where = ["--acceptor", lane.address, "--token-file", str(lane.token_file)]
    if mode == "three":
        where += ["--acceptor", lane.second_address]
    if mode == "sent":
        chance = random.Random(f"{seed} {case.name}")
        extra = [f"--go-after={chance.choice(SENT_AFTER_MS)}", *extra]
    if mode == "returned":
        chance = random.Random(f"{seed} {case.name} returned")
        extra = [f"--go-after={chance.choice(RETURNED_AFTER_MS)}",
                 f"--return-after={chance.choice(RETURNED_AFTER_MS)}", *extra]
    split = [] if mode in RESTING_MODES else [word for rule in _rules(mode, case, seed)
                                              for word in ("--split", rule)]
    return lane.on_initiator([str(lane.gpr), "exec", *where, *split, f"--stats={stats}", *extra,
                              "--", *case.command])


def attach_line(lane: Lane, stats: Path, log: Path, extra: list[str]) -> list[str]:
    """Of gpr attach, but for the process."""
    return lane.on_initiator([
        str(lane.gpr), "attach", "--acceptor", lane.address, "--token-file", str(lane.token_file),
        "--split", "all", f"--stats={stats}", "--log", str(log), "--log-level", "info", *extra])


def read_stats(path: Path) -> dict | None:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None
