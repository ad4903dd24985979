#!/usr/bin/env python3
""".ci/tally.py counts every test once, fails over the budget, and ends with the count."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

from planted import ROOT

CTEST = """      Start   1: base:Half.rounds
 1/4 Test   #1: base:Half.rounds .......................   Passed    0.25 sec
 2/4 Test #112: base:Half.holds_nan ....................***Failed    0.01 sec
 3/4 Test #113: train:killed ...........................***Exception: SegFault  3.00 sec
 4/4 Test #114: comm:mpi ...............................***Not Run   0.00 sec
25% tests passed, 3 tests failed out of 4
"""
SHARDS = """ 1/3 Test   #1: nn:shard_1 .......................   Passed   9.00 sec
 2/3 Test   #2: nn:shard_2 .......................***Failed   9.00 sec
 3/3 Test   #3: nn:shard_3 .......................***Timeout 1800.00 sec
"""

# What a failed test says, as ctest shows it: a script's, after what it says of its cases; a process of googletest's; one without a word of why.
WORDS = """ 1/3 Test   #1: launch:starts ....................***Failed    9.00 sec
a_case: 1.0 s
launch_test.py: the other goes on
1
out

err
        Start   2: nn:shard_1
 2/3 Test   #2: nn:shard_1 .......................***Failed    1.00 sec
[ RUN      ] A.b
a_test.cpp:3: Failure
Expected equality
 3/3 Test   #3: comm:mpi .........................***Failed    1.00 sec
""" + "".join(f"line {i}\n" for i in range(30)) + """
0% tests passed, 3 tests failed out of 3
"""


def tally(budget, cache=None, **stages):
    """(status, lines) for stages of (log, time, {file: what its tests took}), and what the compiler cache did."""
    with tempfile.TemporaryDirectory() as folder:
        logs = pathlib.Path(folder)
        (logs / "allowed").write_text(budget)
        if cache is not None:
            (logs / "cache").write_text(cache)
        for name, (log, time, times) in stages.items():
            (logs / f"{name}.log").write_text(log)
            (logs / f"{name}.time").write_text(time)
            (logs / "times" / name).mkdir(parents=True)
            for file, text in times.items():
                (logs / "times" / name / file).write_text(text)
        run = subprocess.run([sys.executable, ROOT / ".ci/tally.py", logs, "--budget", logs / "allowed"], stdout=subprocess.PIPE, text=True)
        return run.returncode, run.stdout.splitlines()


# Tests that have a parameter, which ctest shows behind the name, or in it.
PARAMETERS = """ 1/3 Test   #1: nn:Models/Counters.agree/gelu  # GetParam() = gelu ......   Passed    0.03 sec
 2/3 Test   #2: backend:Devices/Products.walk/1-byte object <02> ..........   Passed    0.01 sec
 3/3 Test   #3: nn:Models/Counters.agree/a.b  # GetParam() = a.b ........***Failed    0.02 sec
"""


class Tally(unittest.TestCase):
    def test_counts_tests_that_have_parameters(self):
        _, lines = tally("test 100\na-test 300\n", test=(PARAMETERS, "10.0 5.0 1.0", {}))
        self.assertEqual(lines[-1], "2 passed, 1 failed")
        self.assertTrue(any("nn:Models/Counters.agree/a.b" in line for line in lines), lines)

    def test_counts_what_ctest_ran(self):
        status, lines = tally("test 60\n", test=(CTEST, "20.0 30.5 4.5", {}))
        self.assertEqual((status, lines[-1]), (0, "1 passed, 3 failed"))
        self.assertIn("ci: train:killed failed in test", lines)
        self.assertIn("ci: test              20 s        35 s        60 s", lines)

    def test_counts_each_test_of_a_process_and_one_for_a_process_that_says_nothing(self):
        shared = {"nn_tests.1": "0.5 passed nn:A.b\n0.1 skipped nn:A.c\n", "nn_tests.2": "7.0 failed nn:A.d\n0.2 passed nn:A.e\n"}
        status, lines = tally("", addresses=(SHARDS, "1 1 1", shared))
        self.assertEqual((status, lines[-1]), (0, "3 passed, 2 failed"))
        self.assertIn("ci: nn:A.d failed in addresses", lines)
        self.assertIn("ci: nn:shard_3 failed in addresses", lines)

    def test_lists_the_slowest_first(self):
        _, lines = tally("", test=(CTEST, "1 1 1", {}))
        listed = [line.split()[-1] for line in lines[lines.index("ci: the slowest tests") + 1:]][:2]
        self.assertEqual(listed, ["train:killed", "base:Half.rounds"])

    def test_shows_what_a_failed_test_said(self):
        lines = tally("", test=(WORDS, "1 1 1", {"nn_tests.1": "0.5 failed nn:A.b\n"}))[1]
        said = lines[lines.index("ci: launch:starts said"):]
        self.assertEqual(said[:5], ["ci: launch:starts said", "    launch_test.py: the other goes on", "    1", "    out", "    err"])
        self.assertEqual(said[5:8], ["ci: nn:shard_1 said", "    a_test.cpp:3: Failure", "    Expected equality"])
        self.assertEqual(said[8:], ["ci: comm:mpi said", *(f"    line {i}" for i in range(18, 30)), "0 passed, 3 failed"])

    def test_a_stage_over_its_budget_fails(self):
        status, lines = tally("build 10\n", build=("", "6 11 1", {}))
        self.assertEqual((status, lines[-2:]), (1, ["ci: build took 12 s of processor time, and .ci/budget allows 10 s", "0 passed, 0 failed"]))

    def test_all_stages_over_the_budget_fail_where_the_compiler_cache_was_warm(self):
        stages = {"build": ("", "6 9 1", {}), "lint": ("", "6 10 1", {})}
        status, lines = tally("build 12\nlint 12\nall 20\n", "lint 0 0\nbuild 90 10\n", **stages)
        said = "ci: all stages took 21 s of processor time, and with a warm compiler cache .ci/budget allows 20 s"
        self.assertEqual((status, lines[-2:]), (1, [said, "0 passed, 0 failed"]))
        self.assertIn("ci: all                           21 s        20 s", lines)
        self.assertEqual(tally("all 21\n", "lint 0 0\nbuild 90 10\n", **stages)[0], 0)
        for cold in ["build 80 20\n", "build 10 30\n", "build 90 1\ngpu 8 2\n", "build 90 1\ngpu 0 1\n", "lint 0 0\n", "", None]:
            status, lines = tally("all 20\n", cold, **stages)
            self.assertEqual(status, 0, cold)
            self.assertIn("ci: all                           21 s         none", lines)

    def test_a_test_over_its_budget_fails(self):
        status, lines = tally("a-test 2\n", test=(CTEST, "1 1 1", {}))
        self.assertEqual(status, 1)
        self.assertIn("ci: train:killed took 3.0 s in test, and .ci/budget allows a test 2 s", lines)

    def test_the_budget_names_the_stages_that_there_are(self):
        stages = next(line for line in (ROOT / ".ci/run").read_text().splitlines() if line.startswith("stages="))
        named = [line.split()[0] for line in (ROOT / ".ci/budget").read_text().splitlines() if line and line[0] != "#"]
        self.assertEqual([*stages.removeprefix("stages=(").removesuffix(")").split(), "a-test", "all"], named)


if __name__ == "__main__":
    unittest.main()
