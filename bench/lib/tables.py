"""The Markdown tables of a report."""

from measures import RAW_KINDS, LatencyRow, RatioRow

BLOCKING = ("tcp block", "tls block")


def _us(ns: float) -> str:
    return f"{ns / 1000:.1f}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def latency_ratios(row: LatencyRow) -> dict[str, float]:
    if not row.ours:
        return {}
    return {kind: row.ours.p50 / row.raw[kind].p50 for kind in BLOCKING if kind in row.raw}


def _verdict(row: LatencyRow) -> str:
    ratios = latency_ratios(row)
    met = [name.split()[0].upper() for name, ratio in ratios.items() if ratio <= row.target]
    missed = [name.split()[0].upper() for name, ratio in ratios.items() if ratio > row.target]
    words = [f"met over {' and '.join(met)}"] if met else []
    words += [f"missed over {' and '.join(missed)}"] if missed else []
    return ", ".join(words)


def _latency_lines(rows: list[LatencyRow]) -> list[str]:
    lines = ["| operation | gpr p50 | p99 | TCP p50 | p99 | TLS p50 | p99 | TCP, TLS spinning p50 "
             "| gpr/TCP | gpr/TLS | target |", "|---" * 11 + "|"]
    for row in rows:
        if not row.ours:
            lines.append(f"| {row.name} | {row.note} " + "| " * 8 + f"| ≤ {row.target} × raw |")
            continue
        cells = [row.name, _us(row.ours.p50), _us(row.ours.p99)]
        for kind in BLOCKING:
            cells += [_us(row.raw[kind].p50), _us(row.raw[kind].p99)]
        spinning = [_us(row.raw[kind].p50) for kind in RAW_KINDS[2:] if kind in row.raw]
        cells.append(", ".join(spinning) or "not measured")
        cells += [f"**{ratio:.2f}**" for ratio in latency_ratios(row).values()]
        cells.append(f"≤ {row.target} × raw: {_verdict(row)}")
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def ratio_met(row: RatioRow, ratio: float) -> bool:
    sign, limit = row.target.split()
    return ratio <= float(limit) if sign == "<=" else ratio >= float(limit)


def _ratio_lines(rows: list[RatioRow]) -> list[str]:
    lines = ["| measure | unit | gpr | compared with | gpr over it | target |", "|---" * 6 + "|"]
    for row in rows:
        target = row.target.replace("<=", "≤").replace(">=", "≥")
        for name, value in row.others.items():
            compared = f"{name} {_number(value)}"
            if row.ours is None:
                lines.append(f"| {row.name} | {row.unit} | {row.note} | {compared} | | {target} |")
                continue
            ratio = row.ours / value
            verdict = target
            if target and name in ("native", "iperf3", "pages over tls"):
                verdict += ": met" if ratio_met(row, ratio) else ": missed"
            elif target:
                verdict = ""
            lines.append(f"| {row.name} | {row.unit} | {_number(row.ours)} | {compared} "
                         f"| **{ratio:.3g}** | {verdict} |")
    return lines


def markdown(header: dict, latencies: list[LatencyRow], ratios: list[RatioRow]) -> str:
    lines = [f"# {header['title']}", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in header["machine"].items()]
    lines += [f"| command | `{header['command']}` |", f"| link | {header['link']} |",
              f"| load average, begin and end | {header['load']} |", "", *header["notes"], ""]
    for placement, meaning in header["placements"].items():
        lines += [f"## {placement}", "", meaning, "", "Latencies in µs.", ""]
        lines += _latency_lines([row for row in latencies if row.placement == placement])
        some = [row for row in ratios if row.placement == placement]
        if some:
            lines += ["", *_ratio_lines(some)]
        lines.append("")
    lines += ["![ratios](ratios.png)", ""]
    return "\n".join(lines)
