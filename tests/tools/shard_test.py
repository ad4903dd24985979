#!/usr/bin/env python3
"""cmake/shard.py runs each test once, names the one that ended the process, and goes on behind it; played by a script with Google Test's words."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from planted import ROOT

FAKE = """#!{python}
import os, sys
names = ["Sums.add", "Sums.DISABLED_slow", "Sums.carry", "Sums.overflow", "Words/Join.empty/0", "Words/Join.empty/1"]
if sys.argv[1] == "--gtest_list_tests":
    print("Running main()\\nSums.\\n  add\\n  DISABLED_slow\\n  carry\\n  overflow\\nWords/Join.\\n  empty/0  # GetParam() = 1\\n  empty/1")
    sys.exit(0)
wanted = sys.argv[-1].split("=", 1)[1].split(":")
status = 0
for name in names:
    if name not in wanted:
        continue
    print("[ RUN      ]", name, flush=True)
    print("seen by", name)
    if name == os.environ.get("CRASHES"):
        os.abort()
    bad = name == os.environ.get("FAILS")
    status |= bad
    print("[  FAILED  ]" if bad else "[       OK ]", name, "(12 ms)", flush=True)
print("leaks found" if "LEAKS" in os.environ else "[  PASSED  ]")
sys.exit(23 if "LEAKS" in os.environ else status)
"""


def shard(number, of, *each, **environment):
    """(status, output, {name: verdict}) of a share of the played tests."""
    with tempfile.TemporaryDirectory() as folder:
        binary = pathlib.Path(folder) / "sums_tests"
        binary.write_text(FAKE.replace("{python}", sys.executable))
        binary.chmod(0o755)
        around = {name: value for name, value in os.environ.items() if name not in ("WEFT_EVERY", "WEFT_TURN")}
        run = subprocess.run([sys.executable, ROOT / "cmake/shard.py", binary, str(number), str(of), *each], stdout=subprocess.PIPE,
                             text=True, env={**around, "WEFT_TIMES": folder, **environment})
        times = (pathlib.Path(folder) / f"sums_tests.{number}").read_text().splitlines()
        return run.returncode, run.stdout, {line.split()[2]: line.split()[1] for line in times}


class Shard(unittest.TestCase):
    def test_every_test_is_in_one_share(self):
        status, said, first = shard(1, 2)
        self.assertEqual((status, said), (0, "shard: 3 tests passed, 0 failed\n"))
        second = shard(2, 2)[2]
        self.assertEqual(list(first), ["sums:Sums.add", "sums:Sums.overflow", "sums:Words/Join.empty/1"])
        self.assertEqual(list(second), ["sums:Sums.carry", "sums:Words/Join.empty/0"])

    def test_says_what_a_failed_test_said_and_no_other(self):
        status, said, found = shard(1, 1, FAILS="Sums.carry")
        self.assertEqual((status, found["sums:Sums.carry"], len(found)), (1, "failed", 5))
        self.assertIn("seen by Sums.carry", said)
        self.assertNotIn("seen by Sums.add", said)
        self.assertTrue(said.endswith("shard: 4 tests passed, 1 failed\n  Sums.carry\n"), said)

    def test_names_the_test_that_ends_the_process_and_runs_those_behind_it(self):
        status, said, found = shard(1, 1, CRASHES="Sums.carry")
        self.assertEqual(status, 1)
        self.assertIn("shard: Sums.carry ended the process with status -6", said)
        self.assertEqual([name for name, verdict in found.items() if verdict == "failed"], ["sums:Sums.carry"])
        self.assertEqual(len(found), 5)

    def test_a_process_that_ends_badly_after_its_last_test_fails(self):
        status, said, found = shard(1, 1, LEAKS="1")
        self.assertEqual((status, len(found)), (1, 5))
        self.assertIn("leaks found", said)
        self.assertIn("shard: status 23 after the last test, Words/Join.empty/1", said)

    def test_of_a_test_with_many_values_some_are_run(self):
        self.assertEqual(list(shard(1, 1, "2")[2])[3:], ["sums:Words/Join.empty/1"])
        self.assertEqual(len(shard(1, 1, "1")[2]), 5)

    def test_of_a_share_every_other_test_is_run_where_that_is_asked_for(self):
        self.assertEqual(list(shard(1, 1, WEFT_EVERY="2")[2]), ["sums:Sums.carry", "sums:Words/Join.empty/0"])
        self.assertEqual(list(shard(2, 2, WEFT_EVERY="2")[2]), ["sums:Sums.carry"])

    def test_takes_the_others_in_their_turn(self):
        turns = [list(shard(1, 1, WEFT_EVERY="2", WEFT_TURN=str(turn))[2]) for turn in range(3)]
        self.assertEqual(turns[0], turns[2])
        self.assertEqual(sorted(turns[0] + turns[1]), sorted(shard(1, 1)[2]))

    def test_a_share_without_tests_passes(self):
        self.assertEqual(shard(6, 6)[:2], (0, "shard: 0 tests passed, 0 failed\n"))


if __name__ == "__main__":
    unittest.main()
