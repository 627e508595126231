"""tools/tally.py and tools/style: what they count and what they find."""

import importlib.machinery
import importlib.util
import json
import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[3] / "tools"


def load(name):
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader(name, str(TOOLS / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


tally = load("tally.py")
style = load("style")

DOCTEST_GOOD = "[doctest] test cases:  58 |  58 passed | 0 failed | 2 skipped\n"


class Tally(unittest.TestCase):
    def triple(self, counts):
        return counts["passed"], counts["failed"], counts["skipped"]

    def test_cases_are_counted_where_the_text_reports_them(self):
        self.assertEqual(self.triple(tally.count("passed", DOCTEST_GOOD)), (58, 0, 2))
        self.assertEqual(self.triple(tally.count("failed", "3 passed, 2 failed, 1 skipped\n")),
                         (3, 2, 1))
        self.assertEqual(self.triple(tally.count("passed", "no summary")), (1, 0, 0))

    def test_a_crash_after_a_good_summary_is_a_failure(self):
        self.assertEqual(self.triple(tally.count("failed", DOCTEST_GOOD)), (58, 1, 2))

    def test_what_was_not_built_has_failed(self):
        text = "skipped: 3 × split: not built: x\n10 passed, 0 failed, 4 skipped\n"
        self.assertEqual(self.triple(tally.count("passed", text)), (10, 3, 1))

    def test_no_log_and_no_status_are_failures(self):
        with tempfile.TemporaryDirectory() as folder:
            [(name, counts, _)] = tally.meson_tests(Path(folder) / "absent.json")
            self.assertEqual((name, counts["failed"]), ("meson", 1))
            (Path(folder) / "stage-cut.txt").write_text("began\n")
            [(name, counts, text)] = tally.stages(Path(folder))
            self.assertEqual((name, counts["failed"], text), ("cut", 1, "began\n"))

    def test_meson_verdicts(self):
        records = [{"name": "gpr:unit / cli", "result": "OK", "stdout": DOCTEST_GOOD},
                   {"name": "slow", "result": "TIMEOUT"}, {"name": "away", "result": "SKIP"}]
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "testlog.json"
            log.write_text("".join(json.dumps(record) + "\n" for record in records))
            counts = {name: self.triple(c) for name, c, _ in tally.meson_tests(log)}
        self.assertEqual(counts, {"cli": (58, 0, 2), "slow": (0, 1, 0), "away": (0, 0, 1)})


class Style(unittest.TestCase):
    def text(self, name, *lines):
        return [what for _, what in style.check_text(name, list(lines))]

    def cpp(self, name, *lines):
        return [what for _, what in style.check_cpp(name, list(lines))]

    def test_clean_text_passes(self):
        self.assertEqual(self.text("mm/a.cc", "int a;", "// why"), [])
        self.assertEqual(self.cpp("mm/a.h", "#pragma once", '#include "base/fd.h"'), [])

    def test_lengths(self):
        self.assertIn("501 lines", self.text("mm/a.cc", *["int a;"] * 501)[0])
        self.assertIn("101 columns", self.text("mm/a.cc", "x" * 101)[0])
        self.assertEqual(self.text("docs/a.md", "x" * 101), [])

    def test_tabs_blanks_and_left_overs(self):
        for line in ("\tint a;", "int a; ", "// TO" + "DO: later"):
            self.assertEqual(len(self.text("mm/a.cc", line)), 1, line)

    def test_folders_include_one_way(self):
        self.assertEqual(self.cpp("mm/a.cc", '#include "monitor/launch/run.h"'),
                         ["mm/ may not include monitor/launch/"])
        self.assertEqual(self.cpp("base/a.cc", '#include "transport/loop.h"'),
                         ["base/ may not include transport/"])
        self.assertEqual(self.cpp("monitor/home/a.cc", '#include "acceptor/worker/worker.h"'),
                         ["monitor/home/ may not include acceptor/worker/"])
        self.assertEqual(self.cpp("monitor/tracee/a.cc", '#include "monitor/node/waits.h"'),
                         ["monitor/tracee/ may not include monitor/node/"])
        self.assertEqual(self.cpp("monitor/node/a.cc", '#include "monitor/tracee/ptrace.h"'), [])
        self.assertEqual(self.cpp("acceptor/box/a.cc", '#include "mm/page.h"'), [])
        self.assertEqual(self.cpp("tests/unit/a.cc", '#include "tools/table.h"'), [])

    def test_folders_of_rooms_hold_no_files(self):
        self.assertEqual(self.cpp("monitor/a.cc", "int a;"),
                         ["belongs in one of the folders of monitor/"])

    def test_raw_files_say_so(self):
        self.assertEqual(len(self.cpp("monitor/home/a.cc", 'asm volatile("nop");')), 1)
        self.assertEqual(self.cpp("monitor/home/a_raw.cc", 'asm volatile("nop");'), [])
        self.assertEqual(self.cpp("tests/guests/a.cc", 'asm volatile("nop");'), [])

    def sizes(self, *lines):
        return [what for _, what in style.check_sizes("mm/a.cc", list(lines))]

    def test_long_functions(self):
        long = ["    if (a) {", "        b();", "    }"] * (style.MOST_FUNCTION_LINES // 3)
        for head in ("Task<void> A::b(int a,", "[[nodiscard]] bool b(int a,"):
            found = self.sizes("namespace gpr {", head, "         int c) {", *long, "}", "}")
            self.assertEqual(len(found), 1, head)
            self.assertIn("function of", found[0])
        self.assertEqual(self.sizes("struct A {", *["    int a = f();"] * 300, "};"), [])
        self.assertEqual(self.sizes("namespace {", *["int f() {", "    return 1;", "}"] * 100, "}"),
                         [])

    def test_classes_of_many_methods(self):
        def methods(count):
            return self.sizes("class A final : public B {", "public:", "    A(int a);",
                              *["    [[nodiscard]] Task<void> b(int a,", "        int c) const;"]
                              * count, "    std::function<void(int)> d_;", "};")
        self.assertEqual(methods(style.MOST_METHODS), [])
        self.assertEqual(methods(style.MOST_METHODS + 1),
                         [f"A has {style.MOST_METHODS + 1} methods, "
                          f"more than {style.MOST_METHODS}"])

    def test_headers_are_guarded(self):
        self.assertEqual(self.cpp("mm/a.h", "int a;"), ["header without #pragma once"])


if __name__ == "__main__":
    unittest.main()
