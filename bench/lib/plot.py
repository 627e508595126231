#!/usr/bin/env python3
"""Draws results.json as ratios.png: plot.py RESULTS PNG. Needs matplotlib."""

import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


def _latency_panel(axes, rows: list[dict], placement: str) -> None:
    rows = [row for row in rows if row["placement"] == placement and row["ours"]]
    kinds = [("gpr", None, "tab:red"), ("raw TCP", "tcp block", "tab:blue"),
             ("raw TLS", "tls block", "tab:cyan")]
    for offset, (label, kind, color) in enumerate(kinds):
        found = [row["ours"] if kind is None else row["raw"][kind] for row in rows]
        places = [i + (offset - 1) * 0.27 for i in range(len(rows))]
        axes.barh(places, [f["p50"] / 1000 for f in found], 0.25, label=label, color=color)
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel("µs, median")
    axes.set_title(f"latency, {placement}")
    axes.legend()


def _ratio_panel(axes, latencies: list[dict], ratios: list[dict]) -> None:
    bars = []
    for row in latencies:
        if row["ours"]:
            for kind in ("tcp block", "tls block"):
                bars.append((f"{row['name']} / {kind.split()[0].upper()}, {row['placement']}",
                             row["ours"]["p50"] / row["raw"][kind]["p50"], row["target"]))
    for row in ratios:
        if row["ours"] is not None:
            for name, value in row["others"].items():
                limit = float(row["target"].split()[1]) if row["target"] else None
                bars.append((f"{row['name']} / {name}, {row['placement']}",
                             row["ours"] / value, limit))
    axes.barh(range(len(bars)), [ratio for _, ratio, _ in bars], color="tab:gray")
    for i, (_, _, limit) in enumerate(bars):
        if limit is not None:
            axes.plot([limit, limit], [i - 0.4, i + 0.4], color="tab:red")
    axes.set_yticks(range(len(bars)), [name for name, _, _ in bars], fontsize=7)
    axes.invert_yaxis()
    axes.axvline(1, color="black", linewidth=0.5)
    axes.set_title("gpr over the baseline; red: the target")


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        results = json.load(file)
    placements = list(results["placements"])
    figure, panels = plt.subplots(1, len(placements) + 1, figsize=(6 * (len(placements) + 1), 6),
                                  layout="constrained")
    for axes, placement in zip(panels, placements):
        _latency_panel(axes, results["latencies"], placement)
    _ratio_panel(panels[-1], results["latencies"], results["ratios"])
    figure.suptitle(results["title"])
    figure.savefig(sys.argv[2], dpi=100)


if __name__ == "__main__":
    main()
