"""The end of tools/demo: what crossed in each run, from the files --stats=FILE wrote."""

import json
import sys
from pathlib import Path

HEADINGS = ["program", "native s", "split s", "crossings", "calls there", "calls home",
            "CPU there", "faults there", "pages in", "pages out", "MB moved"]


def native_seconds(folder, name):
    start, end = (folder / f"{name}.times").read_text().split()
    return float(end) - float(start)


def row(folder, name):
    stats = json.loads((folder / f"{name}.json").read_text())
    calls = stats["syscalls"]
    there = [node for node in stats["nodes"] if node["node"] != 0]
    cpu_there = sum(node["cpu_s"] for node in there)
    cpu_all = sum(node["cpu_s"] for node in stats["nodes"])
    moved = sum(node["bytes_in"] + node["bytes_out"] for node in there)
    return [name, f"{native_seconds(folder, name):.2f}", f"{stats['wall_s']:.2f}",
            str(stats["crossings"]), str(calls["native"]), str(calls["home"]),
            f"{cpu_there / cpu_all:.0%}" if cpu_all else "-",
            *(str(sum(node[key] for node in there)) for key in ("faults", "pages_in", "pages_out")),
            f"{moved / 1e6:.1f}"]


def main():
    folder = Path(sys.argv[1])
    rows = [HEADINGS]
    missing = []
    for name in sys.argv[2:]:
        if (folder / f"{name}.json").exists():
            rows.append(row(folder, name))
        else:
            missing.append(name)
    widths = [max(len(cells[i]) for cells in rows) for i in range(len(HEADINGS))]
    for cells in rows:
        first, *rest = (cell.rjust(width) for cell, width in zip(cells, widths))
        print("  ".join([cells[0].ljust(widths[0]), *rest]))
    if missing:
        print("no statistics were written by: " + ", ".join(missing))
    return 1 if missing else 0


sys.exit(main())
