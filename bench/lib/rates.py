"""Programs that print what they measure: a run of one, and the table that compares its ways.

A line is "= NAME VALUE", which has to be the same in every run, or "NAME VALUE UNIT", where NAME
has _ for spaces. What has the unit s is a time; anything else is a rate.
"""

import argparse
import datetime
import json
import platform
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import machine
from hosts import Hosts, LaneError
from subjects import SubjectError

BENCH = Path(__file__).resolve().parents[1]
WHOLE = "the whole program"


class Rates:
    def __init__(self) -> None:
        self.values: dict[str, dict[str, list[float]]] = {}  # by name and way
        self.units: dict[str, str] = {}
        self.counted: dict[str, dict] = {}  # by way: what gpr counted in its last run
        self._results: dict[str, str] = {}

    def run(self, way: str, command: list[str], stats: Path | None, timeout_s: float) -> None:
        """`stats` is gpr's, where the program runs under gpr: it has to have been split, unless
        gpr was free to leave it where it was."""
        if stats:
            stats.unlink(missing_ok=True)
        start = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s,
                              stdin=subprocess.DEVNULL, start_new_session=True)
        took = time.monotonic() - start
        if done.returncode != 0:
            said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
            raise SubjectError(f"{way}: it ended with {done.returncode}: {said}")
        if stats:
            self.counted[way] = json.loads(stats.read_text())
            if way != "auto" and not self.counted[way].get("crossings"):
                raise SubjectError(f"{way}: it was not split")
        self.add(way, WHOLE, took, "s")
        for line in done.stdout.splitlines():
            self._take(way, line)

    def _take(self, way: str, line: str) -> None:
        if line.startswith("= "):
            name, value = line.removeprefix("= ").rsplit(" ", 1)
            if self._results.setdefault(name, value) != value:
                raise SubjectError(f"{way}: {name} is {value}, before {self._results[name]}")
            return
        words = line.split()
        if len(words) != 3:
            raise SubjectError(f"{way}: it said {line!r}")
        name, value, unit = words
        self.add(way, name.replace("_", " "), float(value), unit)

    def add(self, way: str, name: str, value: float, unit: str) -> None:
        self.values.setdefault(name, {}).setdefault(way, []).append(value)
        self.units[name] = unit

    def of_native(self, name: str, way: str) -> float:
        """How fast: above 1 is faster than natively, whatever the unit."""
        native, other = (statistics.median(self.values[name][w]) for w in ("native", way))
        return native / other if self.units[name] == "s" else other / native

    def rates(self) -> list[str]:
        return [name for name in self.values if self.units[name] != "s"]

    def mean(self, way: str, names: Iterable[str]) -> float:
        """Geometric."""
        return statistics.geometric_mean(self.of_native(name, way) for name in names)

    def table(self, ways: list[str]) -> list[str]:
        compared = [way for way in ways if way != "native"]
        lines = ["| what | unit | " + " | ".join(ways) + " | "
                 + " | ".join(f"{way}: of native speed" for way in compared) + " |",
                 "|---|---|" + "---:|" * (len(ways) + len(compared))]
        for name, by_way in self.values.items():
            cells = [f"{statistics.median(by_way[way]):.4g}" for way in ways]
            cells += [f"**{self.of_native(name, way):.3g}**" for way in compared]
            lines.append(f"| {name} | {self.units[name]} | " + " | ".join(cells) + " |")
        # A whole program's time is made of what its rates tell.
        averaged = self.rates() or list(self.values)
        means = [f"**{self.mean(way, averaged):.3g}**" for way in compared]
        of_what = "the rates" if self.rates() else "all"
        lines.append(f"| mean of {of_what} | |" + " |" * len(ways) + " " + " | ".join(means) + " |")
        return lines

    def counts(self) -> list[str]:
        """What crossed and was called, by way."""
        if not self.counted:
            return []
        lines = ["| | crossings | calls carried home | calls at the acceptor |",
                 "|---|---:|---:|---:|"]
        for way, seen in self.counted.items():
            calls = seen["syscalls"]
            lines.append(f"| {way} | {seen['crossings']} | {calls['home']} | {calls['native']} |")
        return lines


def add_arguments(parser: argparse.ArgumentParser, ways: Iterable[str]) -> None:
    parser.add_argument("--build", type=Path, default=BENCH.parent / "build", metavar="DIR")
    parser.add_argument("--python", default="python3", metavar="FILE", help="with PyTorch")
    parser.add_argument("--ways", default=",".join(ways), metavar="WAY,...")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="of which the median")
    parser.add_argument("--output", type=Path, metavar="DIR")


def report(name: str, title: str, measured: Rates, ways: list[str], link: str,
           facts: dict[str, str], below: list[str]) -> str:
    about = machine.describe(BENCH.parent) | facts | {
        "link": link, "load average, at the end": machine.load(),
        "command": f"`{shlex.join([f'bench/{name}', *sys.argv[1:]])}`"}
    head = [f"# {title}", "", "| | |", "|---|---|"]
    head += [f"| {fact} | {value} |" for fact, value in about.items()]
    head += ["", "The values are medians.", ""]
    return "\n".join([*head, *measured.table(ways), "", *below, *measured.counts(), ""])


def main(name: str, title: str, arguments: argparse.Namespace,
         command: Callable[[Hosts, str, Path], list[str]], timeout_s: float, shape: str,
         facts: dict[str, str],
         verdict: Callable[[Rates, list[str]], list[str]] | None = None) -> int:
    """Runs `command(hosts, way, stats)` of every way by turns and writes the report."""
    ways = arguments.ways.split(",")
    measured = Rates()
    try:
        with Hosts(arguments.build.resolve() / "tools" / "gpr", shape) as hosts:
            hosts.place(pinned=False)
            hosts.start_acceptor()
            stats = hosts.lane.root / "stats.json"
            for number in range(arguments.rounds):
                for way in ways:
                    print(f"bench/{name}: {way}, {number + 1}", file=sys.stderr, flush=True)
                    measured.run(way, command(hosts, way, stats),
                                 None if way == "native" else stats, timeout_s)
    except (LaneError, SubjectError, subprocess.TimeoutExpired) as error:
        print(f"bench/{name}: {error}", file=sys.stderr)
        return 1
    below = [*verdict(measured, ways), ""] if verdict else []
    print(write(name, title, measured, ways, shape, facts, below, arguments.output,
                measured.values))
    return 0


def write(name: str, title: str, measured: Rates, ways: list[str], shape: str,
          facts: dict[str, str], below: list[str], output: Path | None, results: dict) -> Path:
    """The report and its numbers; returns their folder."""
    link = f"veth, tbf {shape}; TLS 1.3" if shape else "veth, not shaped; TLS 1.3"
    folder = f"{datetime.date.today().isoformat()}-{platform.node()}-{name}"
    output = output or BENCH / "reports" / folder
    output.mkdir(parents=True, exist_ok=True)
    (output / "README.md").write_text(
        report(name, title, measured, ways, link, facts, below))
    (output / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    return output
