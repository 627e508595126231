"""What is measured and against what. Each function returns rows; see tables.py for how they show.

A latency row compares one operation with raw round trips of the same sizes; a ratio row compares
one number with that of other programs doing the same work.
"""

import dataclasses
import json
import subprocess
import time
from pathlib import Path

from hosts import ACCEPTOR, ADDRESSES, INITIATOR, Hosts
from statistics_of import Summary, median, summary
from subjects import Subject, SubjectError, take_turns

RAW_PORT, IPERF_PORT = 7712, 7713
PAGE, REQUEST, RESULT = 4096, 32, 8
CROSSING = 1024  # registers and the part of the extended state that calls use
SMALL_WRITE = 64
RAW_KINDS = ["tcp block", "tls block", "tcp spin", "tls spin"]
WHOLE = ["all"]
# The program comes back after each call, whatever it does then.
LIBRARY = ["lib:*libgprbench*", "home:*_subject"]


@dataclasses.dataclass
class Sizes:
    """How much is measured; --quick takes little of everything."""
    rounds: int
    batch: int
    stream_bytes: int
    stream_rounds: int
    compute_chunks: int
    compress_bytes: int
    compress_rounds: int
    calls: int
    fork_mib: tuple[int, ...]
    forks: int


@dataclasses.dataclass
class LatencyRow:
    name: str
    placement: str
    target: float
    ours: Summary | None
    raw: dict[str, Summary]
    note: str = ""


@dataclasses.dataclass
class RatioRow:
    name: str
    placement: str
    unit: str
    target: str  # "<= 1.03", ">= 0.5" or ""
    ours: float | None
    others: dict[str, float]
    note: str = ""


class Bench:
    """What every measure needs: the hosts, where the programs lie, how much to do."""

    def __init__(self, hosts: Hosts, build: Path, sizes: Sizes, placement: str):
        self.hosts, self.build, self.sizes, self.placement = hosts, build, sizes, placement
        self.stats = hosts.lane.root / "stats.json"
        self.data = hosts.lane.root / "data"

    def program(self, name: str) -> str:
        return str(self.build / "bench" / name)

    def split_subject(self) -> Subject:
        command = [self.program("split_subject"), str(self.data)]
        return Subject(self.hosts, "split_subject", self.hosts.gpr_command(
            WHOLE, self.stats, command))

    def library_subject(self, before: list[str], name: str) -> Subject:
        command = [*before, self.program("library_subject"), str(self.data)]
        return Subject(self.hosts, name, self.hosts.command(INITIATOR, command))

    def raw(self, kind: str, request: int, response: int) -> Subject:
        protocol, wait = kind.split()
        command = [self.program("raw_client"), ADDRESSES[INITIATOR], str(RAW_PORT), str(request),
                   str(response), protocol, wait]
        return Subject(self.hosts, f"raw {kind}", self.hosts.command(ACCEPTOR, command))

    def memory_peer(self, protocol: str) -> Subject:
        command = [self.program("memory_client"), ADDRESSES[INITIATOR], str(RAW_PORT), protocol]
        return Subject(self.hosts, f"pages over {protocol}", self.hosts.command(ACCEPTOR, command))

    def raw_kinds(self) -> list[str]:
        # Two that spin on one processor would measure the scheduler's time slice.
        apart = self.hosts.processors[ACCEPTOR] != self.hosts.processors[INITIATOR]
        return RAW_KINDS if apart else RAW_KINDS[:2]


def _latency_row(bench: Bench, title: str, target: float, subject: Subject, command: str,
                 sizes: tuple[int, int]) -> LatencyRow:
    raw = {kind: bench.raw(kind, *sizes) for kind in bench.raw_kinds()}
    try:
        turns = [("ours", subject, command, bench.sizes.batch)]
        turns += [(kind, peer, "trips", bench.sizes.batch) for kind, peer in raw.items()]
        samples = take_turns(turns, bench.sizes.rounds)
    finally:
        for peer in raw.values():
            peer.kill()
    found = {kind: summary(values) for kind, values in samples.items()}
    return LatencyRow(title, bench.placement, target, found.pop("ours"), found)


def latencies(bench: Bench) -> list[LatencyRow]:
    """One-page faults and forwarded calls."""
    subject = bench.split_subject()
    wanted = [
        ("one-page fault, read", "fault_read", (REQUEST, PAGE)),
        ("one-page fault, write", "fault_write", (REQUEST, PAGE)),
        ("forwarded write, 64 B", "write", (SMALL_WRITE, RESULT)),
        ("forwarded read, 4 KiB", "read", (REQUEST, PAGE)),
    ]
    try:
        return [_latency_row(bench, title, 1.5, subject, command, sizes)
                for title, command, sizes in wanted]
    finally:
        subject.kill()


def random_reads(rows: list[LatencyRow]) -> list[RatioRow]:
    """The same samples as a rate: one request at a time, so slow ones count."""
    found = []
    for row in rows:
        if row.name != "one-page fault, read" or not row.ours:
            continue
        others = {f"raw {kind}": 1e9 / raw.mean for kind, raw in row.raw.items()
                  if kind.endswith("block")}
        found.append(RatioRow("random 4 KiB reads", row.placement, "reads/s", "",
                              1e9 / row.ours.mean, others))
    return found


def why_no_library_mode(bench: Bench) -> str:
    """"" if a library's text really runs at the acceptor; asked of the program, not assumed."""
    bench.stats.unlink(missing_ok=True)
    command = [bench.program("library_subject"), str(bench.data)]
    try:
        subject = Subject(bench.hosts, "library_subject",
                          bench.hosts.gpr_command(LIBRARY, bench.stats, command))
        subject.ask("cross", 10)
        subject.quit()
        crossings = json.loads(bench.stats.read_text())["crossings"]
    except (SubjectError, OSError, ValueError, KeyError) as error:
        return f"not available in this build ({error})"
    return "" if crossings >= 20 else f"not available in this build ({crossings} crossings for 10)"


def crossing(bench: Bench, why_not: str) -> LatencyRow:
    title = "warm crossing, there and back"
    if why_not:
        return LatencyRow(title, bench.placement, 1.5, None, {}, why_not)
    command = [bench.program("library_subject"), str(bench.data)]
    subject = Subject(bench.hosts, "library_subject",
                      bench.hosts.gpr_command(LIBRARY, bench.stats, command))
    try:
        return _latency_row(bench, title, 1.5, subject, "cross", (CROSSING, CROSSING))
    finally:
        subject.kill()


def _iperf(bench: Bench) -> float:
    """Bytes a second from the initiator to the acceptor."""
    server = bench.hosts.start(
        bench.hosts.command(ACCEPTOR, ["iperf3", "-s", "-1", "-p", str(IPERF_PORT),
                                       "--forceflush"]),
        stdout=subprocess.PIPE, text=True)
    try:
        while "listening" not in server.stdout.readline():
            if server.poll() is not None:
                raise SubjectError("iperf3 -s does not start")
        client = ["iperf3", "-c", ADDRESSES[ACCEPTOR], "-p", str(IPERF_PORT), "-J", "-n",
                  str(bench.sizes.stream_bytes)]
        done = subprocess.run(bench.hosts.command(INITIATOR, client), capture_output=True,
                              timeout=60)
        told = json.loads(done.stdout.decode(errors="replace"))  # its "cookie" may be any bytes
        return told["end"]["sum_received"]["bits_per_second"] / 8
    finally:
        server.kill()
        server.wait()


def streaming(bench: Bench) -> list[RatioRow]:
    """Home's memory read from end to end at the acceptor. Beside it a program that does no more
    than it must: it receives pages over TLS, or without, and places them."""
    size = bench.sizes.stream_bytes
    peers = {f"pages over {kind}": bench.memory_peer(kind) for kind in ("tls", "tcp")}
    subject = bench.split_subject()
    rates = {name: [] for name in ("ours", *peers, "iperf3")}
    try:
        for peer in peers.values():
            peer.ask("fill", size)  # its server then has all that it sends
        for _ in range(bench.sizes.stream_rounds):
            rates["iperf3"].append(_iperf(bench))
            for name, peer in peers.items():
                rates[name].append(size / (peer.ask("fill", size)[0] / 1e9))
            rates["ours"].append(size / (subject.ask("stream", size)[0] / 1e9))
    finally:
        for each in (subject, *peers.values()):
            each.kill()
    found = {name: median(values) / 1e6 for name, values in rates.items()}
    ours = found.pop("ours")
    over_iperf = ">= 0.9" if bench.hosts.shape else ""
    wanted = {"pages over tls": "" if bench.hosts.shape else ">= 0.8", "iperf3": over_iperf}
    return [RatioRow(f"streaming {size >> 20} MiB", bench.placement, "MB/s", wanted.get(name, ""),
                     ours, {name: rate}) for name, rate in found.items()]


def remote_compute(bench: Bench) -> RatioRow:
    """The acceptor's half: the same loop there, natively on the same processor and split."""
    native = Subject(bench.hosts, "native", bench.hosts.command(
        ACCEPTOR, [bench.program("split_subject"), str(bench.data)]))
    split = bench.split_subject()
    try:
        chunks = bench.sizes.compute_chunks
        samples = take_turns([("native", native, "compute", 1), ("ours", split, "compute", 1)],
                             chunks)
    finally:
        native.kill()
        split.kill()
    # The best chunk: on a busy machine the median says how long others ran.
    return RatioRow("CPU-bound, --split all, best chunk", bench.placement, "ms", "<= 1.03",
                    min(samples["ours"]) / 1e6, {"native": min(samples["native"]) / 1e6})


def forks(bench: Bench) -> list[RatioRow]:
    """fork() of a process whose memory is at the acceptor, natively on the same processor and
    split."""
    rows = []
    for mib in bench.sizes.fork_mib:
        native = Subject(bench.hosts, "native", bench.hosts.command(
            ACCEPTOR, [bench.program("split_subject"), str(bench.data)]))
        split = bench.split_subject()
        try:
            samples = take_turns([(name, subject, f"fork_{mib}", 1)
                                  for name, subject in (("native", native), ("ours", split))],
                                 bench.sizes.forks)
        finally:
            native.kill()
            split.kill()
        rows.append(RatioRow(f"fork, {mib} MiB written at the acceptor", bench.placement, "ms", "",
                             median(samples["ours"]) / 1e6,
                             {"native": median(samples["native"]) / 1e6}))
    return rows


def compress(bench: Bench) -> RatioRow:
    """A real program from its start to its end."""
    source = bench.hosts.lane.root / "text"
    source.write_bytes(b"".join(b"%d %d\n" % (i, i * i % 9973)
                                for i in range(bench.sizes.compress_bytes // 12)))
    command = ["xz", "-T1", "-2", "-c", str(source)]
    ways = {"native": bench.hosts.command(ACCEPTOR, command),
            "ours": bench.hosts.gpr_command(WHOLE, bench.stats, command)}
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(bench.sizes.compress_rounds):
        for way, words in ways.items():
            begin = time.monotonic()
            done = subprocess.run(words, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                                  timeout=120)
            if done.returncode != 0:
                raise SubjectError(f"{' '.join(words)}: status {done.returncode}")
            times[way].append(time.monotonic() - begin)
    return RatioRow(f"xz of {source.stat().st_size / 1e6:.1f} MB, start to end, --split all",
                    bench.placement, "s", "<= 1.03", median(times["ours"]),
                    {"native": median(times["native"])})


def local_half(bench: Bench, why_not: str) -> list[RatioRow]:
    """The part of a split program that stays at home, and what other supervisors cost there."""
    names = {"compute": "CPU-bound, local half, best chunk", "calls": "syscall-bound, local half"}
    peers = {"native": [], "strace --seccomp-bpf": ["strace", "-f", "--seccomp-bpf", "-e",
                                                   "trace=exit_group", "-o", "/dev/null"],
             "proot": ["proot", "-r", "/"]}
    subjects = {name: bench.library_subject(before, name) for name, before in peers.items()}
    if not why_not:
        command = [bench.program("library_subject"), str(bench.data)]
        subjects["ours"] = Subject(bench.hosts, "ours", bench.hosts.gpr_command(
            LIBRARY, bench.stats, command))
        subjects["ours"].ask("cross", 10)  # it is really split
    rows = []
    try:
        for command, count, rounds, target in (
                ("compute", 1, bench.sizes.compute_chunks, "<= 1.03"),
                ("calls", bench.sizes.calls, bench.sizes.rounds, "")):
            samples = take_turns([(n, s, command, count) for n, s in subjects.items()], rounds)
            scale, unit = (1e6, "ms") if command == "compute" else (1e3, "us")
            typical = min if command == "compute" else median
            found = {name: typical(values) / scale for name, values in samples.items()}
            rows.append(RatioRow(names[command], bench.placement, unit, target,
                                 found.pop("ours", None), found, why_not))
    finally:
        for subject in subjects.values():
            subject.kill()
    return rows
