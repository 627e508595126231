"""Threads, futexes, signals and children of a split process, against native runs."""

from measures import LIBRARY, PAGE, REQUEST, WHOLE, Bench, RatioRow
from hosts import ACCEPTOR, INITIATOR
from statistics_of import median
from subjects import Subject, take_turns

THREADS = (1, 2, 4, 8, 16, 32, 64)
WARM_BATCH = 20  # what costs milliseconds is repeated less often


def _native(bench: Bench, where: str) -> Subject:
    return Subject(bench.hosts, "native", bench.hosts.command(
        where, [bench.program("process_subject")]))


def _split(bench: Bench, rules: list[str]) -> Subject:
    return Subject(bench.hosts, "ours", bench.hosts.gpr_command(
        rules, bench.stats, [bench.program("process_subject")]))


def _row(bench: Bench, title: str, target: str, samples: dict[str, list[int]]) -> RatioRow:
    found = {name: median(values) / 1e3 for name, values in samples.items()}
    return RatioRow(title, bench.placement, "us", target, found.pop("ours"), found)


def _compare(bench: Bench, where: str, rules: list[str],
             wanted: list[tuple[str, str, int, str]]) -> list[RatioRow]:
    """Each (title, command, count, target) natively on `where` and split."""
    native, split = _native(bench, where), _split(bench, rules)
    try:
        rows = []
        for title, command, count, target in wanted:
            samples = take_turns([("native", native, command, count),
                                  ("ours", split, command, count)], bench.sizes.rounds)
            rows.append(_row(bench, title, target, samples))
        return rows
    finally:
        native.kill()
        split.kill()


def at_the_acceptor(bench: Bench) -> list[RatioRow]:
    batch = bench.sizes.batch
    few = max(batch // WARM_BATCH, 2)
    return _compare(bench, ACCEPTOR, WHOLE, [
        ("futex ping-pong of two threads, --split all", "turns", batch, "<= 1.1"),
        ("thread created and joined, --split all", "threads", few, ""),
        ("child forked and waited for, --split all", "forks", few, ""),
        ("signal to itself, --split all", "signals", batch, ""),
    ] + [(f"work of {n} threads, --split all", "work", n, "") for n in THREADS])


def at_home(bench: Bench, why_not: str) -> list[RatioRow]:
    """The half that stays at home, in a session whose threads live on both nodes."""
    if why_not:
        return []
    batch = bench.sizes.batch
    few = max(batch // WARM_BATCH, 2)
    return _compare(bench, INITIATOR, LIBRARY, [
        ("futex ping-pong of two threads, local half", "turns", batch, "<= 1.1"),
        ("thread created and joined, local half", "threads", few, ""),
        ("signal to itself, local half", "signals", batch, ""),
    ])


def between_nodes(bench: Bench, why_not: str) -> list[RatioRow]:
    """A word handed to a thread on the other node, which is waked for it, and back."""
    if why_not:
        return []
    split = _split(bench, LIBRARY)
    raw = {kind: bench.raw(kind, REQUEST, PAGE) for kind in bench.raw_kinds()[:2]}
    try:
        turns = [("ours", split, "remote_turns", bench.sizes.batch)]
        turns += [(f"raw {kind}", peer, "trips", bench.sizes.batch) for kind, peer in raw.items()]
        return [_row(bench, "futex hand-over between nodes, there and back", "",
                     take_turns(turns, bench.sizes.rounds))]
    finally:
        split.kill()
        for peer in raw.values():
            peer.kill()
