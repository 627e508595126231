"""Attaches gpr to one process and detaches it again, as long as that lives. For mode `detach`: see
`under` in prelude.bash. Arguments: the process, a file for the record, the words of gpr attach."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

BEGINS_S = 0.4  # the program has been executed, and is at its work
PATIENCE_S = 30.0
STAYS_S, RESTS_S = (0.2, 1.5), (0.1, 0.5)
# Of a process that is native.
NATIVE = ("TracerPid:\t0", "Seccomp:\t0")


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def status(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return ""


def cycle(pid: int, words: list[str], folder: Path, record: dict) -> None:
    log, stats = folder / f"attach-{pid}.log", folder / f"attach-{pid}.json"
    log.unlink(missing_ok=True)
    stats.unlink(missing_ok=True)
    gpr = subprocess.Popen([*words, f"--stats={stats}", "--log", str(log), "--log-level", "info",
                            str(pid)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + PATIENCE_S
    while gpr.poll() is None and time.monotonic() < until:
        if log.exists() and "is attached" in log.read_text(errors="replace"):
            record["attached"] += 1
            break
        time.sleep(0.005)
    time.sleep(random.uniform(*STAYS_S))
    done = subprocess.run([words[0], "detach", str(pid)], capture_output=True, text=True)
    try:
        said = gpr.communicate(timeout=PATIENCE_S)[1]
    except subprocess.TimeoutExpired:
        gpr.kill()
        said = f"it does not end; gpr detach said: {done.stderr}"
    seen = status(pid)
    if not lives(pid):
        return  # it ended meanwhile, and its status is the script's matter
    if gpr.returncode != 0 or said or not all(line in seen for line in NATIVE):
        record["problems"].append(f"{said} {done.stderr} {gpr.returncode} {seen[:400]}")
    record["detached"] += 1
    try:
        its = json.loads(stats.read_text())
        record["arrivals"] += its["nodes"][1]["arrivals"]
        record["away_s"] += its["nodes"][1]["cpu_s"]
    except (OSError, ValueError, IndexError):
        pass


def main() -> int:
    pid, path, words = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    record = {"attached": 0, "detached": 0, "arrivals": 0, "away_s": 0.0,
              "problems": []}
    random.seed(1)
    time.sleep(BEGINS_S)
    while lives(pid):
        cycle(pid, words, path.parent, record)
        with open(path, "a", encoding="utf-8") as records:
            os.truncate(path, 0)
            records.write(json.dumps(record))
        time.sleep(random.uniform(*RESTS_S))
    return 0


if __name__ == "__main__":
    sys.exit(main())
