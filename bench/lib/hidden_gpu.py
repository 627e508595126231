"""A GPU that only the acceptor has: the initiator's mount namespace lacks its driver."""

import glob
import subprocess
import tomllib
from pathlib import Path

from hosts import INITIATOR, Hosts

ACCEL = Path(__file__).resolve().parents[2] / "tests" / "accel"


def here() -> bool:
    return bool(glob.glob("/dev/nvidia*"))


def name_and_driver() -> str:
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True)
    return "; ".join(done.stdout.split("\n")).strip("; ")


def gpr_command(hosts: Hosts, rules: list[str], stats: Path, program: list[str]) -> list[str]:
    about = tomllib.loads((ACCEL / "cases.toml").read_text())["cuda"]
    lacks = [path for pattern in about["lacks"] for path in glob.glob(pattern)]
    split = hosts.gpr_command(rules, stats, program)
    own = hosts.command(INITIATOR, [])
    return [*own, str(ACCEL / "without"), *lacks, "--", *split[len(own):]]
