"""The machine a report comes from, as far as numbers depend on it."""

import os
import platform
import subprocess
from pathlib import Path


def _field(path: str, name: str) -> str:
    for line in Path(path).read_text().splitlines():
        if line.startswith(name):
            return line.split(":", 1)[1].strip()
    return "unknown"


def _version(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.splitlines()[0] if done.stdout else "unknown"


def _scheduling() -> str:
    """Of the bench and so of all it starts: on a busy machine it decides what is measured."""
    if os.sched_getscheduler(0) == os.SCHED_FIFO:
        return f"FIFO, priority {os.sched_getparam(0).sched_priority}"
    return f"normal, niceness {os.getpriority(os.PRIO_PROCESS, 0)}"


def describe(repository: Path) -> dict[str, str]:
    hypervisor = "yes" if "hypervisor" in _field("/proc/cpuinfo", "flags").split() else "no"
    commit = _version(["git", "-C", str(repository), "describe", "--always", "--dirty"])
    return {
        "processor": _field("/proc/cpuinfo", "model name"),
        "processors": str(os.cpu_count()),
        "virtual machine": hypervisor,
        "memory": f"{int(_field('/proc/meminfo', 'MemTotal').split()[0]) >> 20} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "gpr": commit,
        "iperf3": _version(["iperf3", "--version"]),
        "OpenSSL": _version(["openssl", "version"]),
        "scheduling": _scheduling(),
    }


def load() -> str:
    """How many others wanted to run."""
    return " ".join(Path("/proc/loadavg").read_text().split()[:3])
