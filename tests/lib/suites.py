"""Where the cases come from: guests (our own small programs) and programs (real ones)."""

import fnmatch
import re
import shutil
from pathlib import Path

import regrtest
from case import Case, ManifestError, case_from_table, load_manifest

TESTS = Path(__file__).resolve().parent.parent
SLOW_MODULES = ("test_io", "test_concurrent_futures")
SUCCESS_WORD = "passed\n"
LIBRARY_NAME = re.compile(r"lib(?!rary_)")  # sources of libraries are not guests on their own


def guests(build: Path) -> list[Case]:
    """Every source in tests/guests is a case; guests.toml adds variants and exceptions. A glob
    there is about all guests of that name that have no table of their own."""
    folder = TESTS / "guests"
    binaries = build / "tests" / "guests"
    manifest = load_manifest(folder / "guests.toml")
    names = {path.stem for pattern in ("*.c", "*.cc") for path in folder.glob(pattern)
             if not LIBRARY_NAME.match(path.name)}
    variants = manifest.pop("variants", {})
    for glob in [name for name in manifest if "*" in name]:
        table = manifest.pop(glob)
        matching = fnmatch.filter(names, glob)
        if not matching:
            raise ManifestError(f"{folder}/guests.toml: no guest matches '{glob}'")
        manifest = {**dict.fromkeys(matching, table), **manifest}
    for name in manifest:
        if name not in names and name not in variants:
            raise ManifestError(f"{folder}/guests.toml: no guest called '{name}'")
    return [_guest(name, dict(variants.get(name) or manifest.get(name, {})), binaries)
            for name in sorted(names | set(variants))]


def _expand(value: str) -> str:
    """"@N@" stands for N bytes."""
    return re.sub("@([0-9]+)@", lambda match: "x" * int(match[1]), value)


def _guest(name: str, table: dict, binaries: Path) -> Case:
    table = {"stdout_ends": SUCCESS_WORD} | table
    binary = binaries / table.pop("of", name)
    args = table.pop("args", [])
    case = case_from_table("guests", name, [str(binary), *args], table,
                           TESTS / "guests" / "guests.toml")
    case.env = {"GUESTS": str(binaries)} | {
        key: _expand(value) for key, value in case.env.items()}
    if not binary.exists():
        case.not_built = f"not built: {binary}"
    return case


def programs(build: Path) -> list[Case]:
    cases = []
    for path in sorted((TESTS / "programs").glob("*.toml")):
        for table in load_manifest(path).get("case", []):
            cases.append(_program(dict(table), path, build))
    return cases


def _program(table: dict, path: Path, build: Path) -> Case:
    name = table.pop("name")
    if "shell" in table:
        command = ["bash", "-c", table.pop("shell")]
    else:
        command = table.pop("command")
    guests_dir = str(build / "tests" / "guests")
    command = [word.replace("@guests@", guests_dir) for word in command]
    table["setup"] = table.get("setup", "").replace("@guests@", guests_dir)
    case = case_from_table("programs", name, command, table, path)
    made_by_setup = command[0].startswith("./")
    for tool in case.needs + ([] if made_by_setup else [command[0]]):
        found = Path(tool).exists() if tool.startswith("/") else shutil.which(tool)
        if not found:
            case.missing = f"'{tool}' is not installed"
    return case


def cpython(build: Path) -> list[Case]:
    """The modules of tests/cpython/modules.txt; cpython/run compares every test of more modules."""
    lines = (TESTS / "cpython" / "modules.txt").read_text().splitlines()
    cases = [regrtest.module_case(name, timeout_s=1200)
             for name in lines if name and not name.startswith("#")]
    for case in cases:
        case.slow = case.name in SLOW_MODULES
        if not Path("/usr/lib/python3.11/test").exists():
            case.missing = "the package libpython3.11-testsuite is not installed"
    return cases


SUITES = {"guests": guests, "programs": programs, "cpython": cpython}
DEFAULT_SUITES = ("guests", "programs")


def select(cases: list[Case], globs: list[str]) -> list[Case]:
    if not globs:
        return cases
    return [case for case in cases
            if any(fnmatch.fnmatch(case.name, glob) or fnmatch.fnmatch(case.full_name, glob)
                   for glob in globs)]
