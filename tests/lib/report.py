"""The table: one line a case, one column a mode, and what failed."""

from collections import Counter

MARKS = {"passed": "ok", "failed": "FAIL", "skipped": "skip"}
COLUMN = 11
LAST_LINES = 25  # of a failure, in the closing words


class Report:
    def __init__(self, wanted_modes: list[str], out, verbose: bool):
        self.modes = wanted_modes
        self.out = out
        self.verbose = verbose
        self.counts: Counter = Counter()
        self.skips: Counter = Counter()
        self.failures: list = []
        self._print(f"{'case':40}" + "".join(f"{mode:>{COLUMN}}" for mode in wanted_modes))

    def add_case(self, results: list) -> None:
        """All results of one case, native first."""
        for result in results:
            self.counts[result.verdict] += 1
            if result.verdict == "skipped":
                self.skips[(result.mode, result.detail)] += 1
            if result.verdict == "failed":
                self.failures.append(result)
        if results:
            self._print_line({result.mode: result for result in results})

    def _print_line(self, results: dict) -> None:
        case = next(iter(results.values())).case
        cells = "".join(f"{_cell(results.get(mode)):>{COLUMN}}" for mode in self.modes)
        numbers = next((result.numbers for result in results.values() if result.numbers), {})
        text = " ".join(f"{name}={value:.6g}" for name, value in numbers.items())
        self._print(f"{case:40}{cells}  {text}".rstrip())
        for result in results.values():
            if result.verdict == "failed":
                self._print(f"    {result.mode}: {self._shortened(result.detail)}")

    def _shortened(self, detail: str, at_most: int = 6) -> str:
        lines = detail.splitlines()
        shown = lines if self.verbose else lines[:at_most]
        more = [f"... {len(lines) - len(shown)} more lines"] if len(lines) > len(shown) else []
        return "\n      ".join(shown + more)

    def finish(self) -> int:
        for (mode, reason), count in sorted(self.skips.items()):
            self._print(f"skipped: {count} × {mode}: {reason}")
        for failure in self.failures:  # once more, where a reader of a long log looks first
            self._print(f"failed: {failure.case} ({failure.mode}), after {failure.wall_s:.2f} s:")
            self._print(f"      {self._shortened(failure.detail, LAST_LINES)}")
        if self.failures:
            self._print("failed: " + ", ".join(f"{r.case} ({r.mode})" for r in self.failures))
        counts = self.counts
        self._print(f"{counts['passed']} passed, {counts['failed']} failed, "
                    f"{counts['skipped']} skipped")
        return 1 if counts["failed"] else 0

    def _print(self, text: str) -> None:
        print(text, file=self.out, flush=True)


def _cell(result) -> str:
    if result is None:
        return "-"
    if result.verdict == "passed":
        return f"{'ok at 2nd' if result.detail else 'ok'} {result.wall_s:.2f}"
    return MARKS[result.verdict]
