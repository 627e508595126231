"""Reads what Prometheus would read: its text format, version 0.0.4, strictly."""

import re

SAMPLE = re.compile(r'(?P<name>[a-z_]+)(?P<labels>\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? '
                    r'(?P<value>[-+.e0-9]+)')


def value(text: str, sample: str) -> float:
    """Of the one sample with this name and these labels; -1: there is none, or more."""
    found = [line for line in text.splitlines() if line.startswith(sample + " ")]
    return float(found[0].rsplit(" ", 1)[1]) if len(found) == 1 else -1


def problems(text: str) -> list[str]:
    """Lines that are not as the format wants them: each name once, with its type before it, and
    histograms that add up."""
    types: dict[str, str] = {}
    buckets: dict[str, list[tuple[str, float]]] = {}
    bad, current, seen = [], "", set()
    for line in text.splitlines():
        if line.startswith("# HELP "):
            current = line.split()[2]
            bad += [line] if current in types else []
        elif line.startswith("# TYPE "):
            types[current] = line.split()[3]
            bad += [line] if line.split()[2] != current else []
        elif match := SAMPLE.fullmatch(line):
            name, labels, value = match["name"], match["labels"] or "", float(match["value"])
            suffix = name.removeprefix(current)
            histogram = types.get(current) == "histogram"
            good = (suffix in ("_bucket", "_sum", "_count") if histogram else suffix == "") \
                and (name + labels) not in seen and value >= 0 \
                and (types.get(current) != "counter" or current.endswith("_total"))
            seen.add(name + labels)
            if histogram and suffix in ("_bucket", "_count"):
                bound = re.search('le="([^"]*)"', labels)
                rest = re.sub(',?le="[^"]*"', "", labels)
                buckets.setdefault(current + (rest if rest != "{}" else ""), []).append(
                    (bound[1] if bound else "", value))
            bad += [] if good else [line]
        else:
            bad.append(line)
    for name, rows in buckets.items():
        values = [value for _, value in rows]
        bounds = [float(bound) for bound, _ in rows[:-1]]
        if values != sorted(values) or bounds != sorted(set(bounds)) \
                or rows[-2][0] != "+Inf" or rows[-1][0] != "" or values[-1] != values[-2]:
            bad.append(f"{name}: {rows}")
    return bad or ([] if buckets else ["no histogram"])
