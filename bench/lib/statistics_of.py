"""Many samples in a few numbers."""

import dataclasses


@dataclasses.dataclass
class Summary:
    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    least: float


def quantile(ordered: list, share: float) -> float:
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def median(samples: list) -> float:
    return quantile(sorted(samples), 0.5)


def summary(samples: list) -> Summary:
    ordered = sorted(samples)
    return Summary(len(ordered), sum(ordered) / len(ordered), quantile(ordered, 0.5),
                   quantile(ordered, 0.9), quantile(ordered, 0.99), ordered[0])
