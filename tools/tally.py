"""Adds up what tools/test ran. The last line is `N passed, N failed, N skipped`; exit status 1 if
anything failed, was cut short, or did not run at all."""

import json
import re
import sys
from collections import Counter
from pathlib import Path

# The closing words of a doctest program and of tests/run.
DOCTEST = re.compile(r"test cases:\s*\d+\s*\|\s*(\d+) passed\s*\|\s*(\d+) failed\s*\|\s*(\d+) skipped")
SUMMARY = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", re.MULTILINE)
# A case that was never built did not run: that is no skip.
NOT_BUILT = re.compile(r"^skipped: (\d+) × .*not built", re.MULTILINE)
VERDICTS = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}


def counted(groups):
    return Counter(dict(zip(("passed", "failed", "skipped"), map(int, groups))))


def meson_test(record):
    """One meson test: as many cases as it reports, or one."""
    verdict = VERDICTS.get(record["result"], "failed")
    text = record.get("stdout", "")
    found = DOCTEST.search(text) or SUMMARY.search(text)
    counts = counted(found.groups()) if found else Counter({verdict: 1})
    if verdict == "failed" and not counts["failed"]:
        counts["failed"] += 1  # crashed or timed out, whatever it had counted before
    return counts


def meson_tests(path):
    records = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    if not records:
        print(f"tally: {path} names no test", file=sys.stderr)
        return Counter({"failed": 1})
    return sum((meson_test(record) for record in records), Counter())


def scenario_tests(path):
    text = path.read_text()
    if "was left out" in text:
        return Counter({"skipped": 1})
    found = SUMMARY.findall(text)
    if not found:
        print("tally: tests/run did not come to its end", file=sys.stderr)
        return Counter({"failed": 1})
    counts = counted(found[-1])
    not_built = sum(int(number) for number in NOT_BUILT.findall(text))
    counts["skipped"] -= not_built
    counts["failed"] += not_built
    return counts


def main():
    counts = Counter()
    for path, count in ((Path(sys.argv[1]), meson_tests), (Path(sys.argv[2]), scenario_tests)):
        counts.update(count(path) if path.exists() else {"failed": 1})
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


sys.exit(main())
