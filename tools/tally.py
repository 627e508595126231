"""Adds up what tools/test ran: meson's log, and stage-NAME.txt with stage-NAME.status for the rest.
What failed is shown again, by its last words, then in one line for each failed check; what passed
at the second try (first-try-NAME.txt has the first) in such lines alone. The last line
is `N passed, N failed, N skipped`; the exit status is 1 if anything failed, was cut short, or did
not run at all."""

import json
import re
import sys
from collections import Counter
from pathlib import Path

# The last lines of a doctest program and of our own runners.
DOCTEST = re.compile(
    r"test cases:\s*\d+\s*\|\s*(\d+) passed\s*\|\s*(\d+) failed\s*\|\s*(\d+) skipped")
SUMMARY = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) (?:skipped|missed)$", re.MULTILINE)
# A case that was not built did not run, which is not a skip.
NOT_BUILT = re.compile(r"^skipped: (\d+) × .*not built", re.MULTILINE)
VERDICTS = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}
STAGE_VERDICTS = {"0": "passed", "77": "skipped"}
LAST_LINES = 40
FAILED_CHECK = re.compile(r"^(?:FAIL|not ok|failed:|[\w.]*(?:Error|Expired):).*", re.MULTILINE)
MOST_FAILED_CHECKS = 8
LINE_WIDTH = 300


def count(verdict, text):
    """As many cases as the text reports, or one; a bad verdict counts whatever the text says."""
    reports = DOCTEST.findall(text) or SUMMARY.findall(text)
    if not reports:
        return Counter({verdict: 1})
    counts = Counter(dict(zip(("passed", "failed", "skipped"), map(int, reports[-1]))))
    not_built = sum(int(number) for number in NOT_BUILT.findall(text))
    counts["skipped"] -= not_built
    counts["failed"] += not_built
    if verdict == "failed" and not counts["failed"]:
        counts["failed"] = 1  # crashed or timed out
    return counts


def meson_tests(path):
    lines = path.read_text().splitlines() if path.exists() else []
    records = [json.loads(line) for line in lines if line.strip()]
    if not records:
        yield "meson", Counter({"failed": 1}), ""
    for record in records:
        verdict = VERDICTS.get(record["result"], "failed")
        text = record.get("stdout", "")
        yield record["name"].split(" / ")[-1], count(verdict, text), text


def stages(folder):
    for path in sorted(folder.glob("stage-*.txt")):
        status = path.with_suffix(".status")
        ended = status.read_text().strip() if status.exists() else "never"
        text = path.read_text(errors="replace")
        counts = count(STAGE_VERDICTS.get(ended, "failed"), text)
        yield path.stem.removeprefix("stage-"), counts, text


def first_tries(folder):
    for path in sorted(folder.glob("first-try-*.txt")):
        yield path.stem.removeprefix("first-try-"), path.read_text(errors="replace")


def main():
    total = Counter()
    results = [*meson_tests(Path(sys.argv[1])), *stages(Path(sys.argv[2]))]
    for name, counts, text in results:
        if counts["failed"]:
            print(f"== {name} failed; the end of what it said:")
            print("\n".join(text.splitlines()[-LAST_LINES:]))
    for name, counts, text in results:
        if counts["failed"]:
            for line in FAILED_CHECK.findall(text)[:MOST_FAILED_CHECKS]:
                print(f"{name}: {line[:LINE_WIDTH]}")
    for name, text in first_tries(Path(sys.argv[2])):
        print(f"{name}: ran a second time, because at first:")
        print("\n".join(line[:LINE_WIDTH] for line in FAILED_CHECK.findall(text)))
    for name, counts, _ in results:
        total.update(counts)
        if counts["failed"] or counts["skipped"]:
            print(f"{name}: {counts['passed']} passed, {counts['failed']} failed,"
                  f" {counts['skipped']} skipped")
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 1 if total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
