"""A case: one command that must behave the same in every mode, and how to check it."""

import dataclasses
import re
import tomllib
from pathlib import Path

DEFAULT_TIMEOUT_S = 60
SKIP_STATUS = 77  # a guest that lacks something it needs says so and exits with this (as automake)

# Modes a case takes part in unless it says otherwise; "library", "bound" and "function" only when
# it names a library.
EVERYWHERE = ("native", "again", "home", "split", "local", "chaos")


class ManifestError(Exception):
    """A manifest is wrong; the message names the file, the case and the key."""


@dataclasses.dataclass
class Case:
    suite: str
    name: str
    command: list[str]
    setup: str = ""  # bash, run natively in the case's directory before every mode
    stdin: bytes = b""
    env: dict[str, str] = dataclasses.field(default_factory=dict)
    status: int | None = 0  # expected natively; a negative number is a signal, None is not checked
    stdout_ends: str = ""  # what native stdout must end with: a guest's success word
    timeout_s: float = DEFAULT_TIMEOUT_S
    modes: tuple[str, ...] = EVERYWHERE
    library: str = ""  # glob for --split lib:GLOB
    functions: str = "*"  # of the library, for --split fn:GLOB!GLOB; "": not in that mode
    cpu_bound: bool = False  # at least 90 % of the CPU time must be spent on node 1
    expect: dict[str, float] = dataclasses.field(default_factory=dict)  # NAME_min / NAME_max
    expect_bound: dict[str, float] = dataclasses.field(default_factory=dict)
    mask: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    ignore_files: list[str] = dataclasses.field(default_factory=list)
    needs: list[str] = dataclasses.field(default_factory=list)  # commands that must be installed
    slow: bool = False  # only with --slow
    as_user: bool = False  # also part of the run as a normal user
    # Modes in which it is known to differ, and why: counted as skipped while it does.
    known: dict[str, str] = dataclasses.field(default_factory=dict)
    missing: str = ""  # what this machine lacks for the case: it is skipped
    not_built: str = ""  # what the build should have made: it fails

    @property
    def full_name(self) -> str:
        return f"{self.suite}/{self.name}"

    def runs_in(self, mode: str) -> bool:
        if mode == "function":
            return bool(self.library and self.functions)
        if mode in ("attach", "detach", "auto", "sent", "returned"):  # and is split then
            mode = "split"
        if mode == "three":  # crossing at random over two acceptors
            mode = "chaos"
        return bool(self.library) if mode in ("library", "bound") else mode in self.modes

    def masked(self, output: bytes) -> bytes:
        """The output with everything replaced that may differ between two native runs."""
        for pattern, replacement in self.mask:
            output = re.sub(pattern.encode(), replacement.encode(), output, flags=re.MULTILINE)
        return output


_KEYS = {"setup", "stdin", "env", "status", "stdout_ends", "timeout_s", "modes", "library",
         "functions", "cpu_bound", "expect", "expect_bound", "mask", "ignore_files", "needs",
         "slow", "as_user", "known"}


def case_from_table(suite: str, name: str, command: list[str], table: dict, where: Path) -> Case:
    unknown = set(table) - _KEYS
    if unknown:
        raise ManifestError(f"{where}: case '{name}' has unknown key '{sorted(unknown)[0]}'")
    fields = dict(table)
    if "stdin" in fields:
        fields["stdin"] = fields["stdin"].encode()
    if "modes" in fields:
        fields["modes"] = tuple(fields["modes"])
    if "mask" in fields:
        fields["mask"] = [(pattern, replacement) for pattern, replacement in fields["mask"]]
    return Case(suite=suite, name=name, command=command, **fields)


def load_manifest(path: Path) -> dict:
    try:
        return tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise ManifestError(f"{path}: {error}") from error
