#!/usr/bin/env python3
"""tally.py LOGS [--budget FILE]: what the stages took against their budget, the slowest tests, what those said
that failed, and as the last line how many tests passed and failed.

LOGS holds NAME.log of every stage, NAME.time with its wall, user and system seconds, and times/NAME.* of the tests that shared a
process there; cache has a line a stage of the compiler cache's hits and misses. A stage that took more processor time than .ci/budget allows, or a test
that took longer, makes the status 1, and so do all stages together where the cache was warm in each: elsewhere, what they take is a compiler's.
"""
import argparse
import collections
import pathlib
import re
import sys

# " 12/900 Test  #34: base:Half.rounds ....   Passed    0.01 sec", with "  # GetParam() = gpt" behind the name of one that has a parameter, whose
# words may be in the name, too: "backend:Devices/Products.walk/1-byte object <02>"
RAN = re.compile(r"^\s*\d+/\d+ Test\s+#\d+: (\S.*?)(?:\s+# .*?)? \.*\s*(Passed|\*\*\*\w[\w :-]*?)\s+(\d+\.\d+) sec")
SHARED = re.compile(r":shard_\d+$")
# What ctest prints between tests, and what a test's own words of a failure begin with: a script's name, or googletest's place.
BETWEEN = re.compile(r"^\s+Start\s+\d+: |^\d+% tests passed")
FAILURE = re.compile(r"^\S+\.py: (?!.* s$)|: Failure$|ERROR: |^\w*Error\b|^FAIL: ")
Test = collections.namedtuple("Test", "stage name seconds passed")


def budget_of(path):
    """{stage: processor seconds}, those of all stages under "all", and the seconds a test may take under "a-test"."""
    lines = [line.split("#")[0].split() for line in path.read_text().splitlines()]
    return {line[0]: float(line[1]) for line in lines if line}


def tests_of(logs, stage):
    """Every test that ctest ran in a stage; where tests shared a process, each of them instead of the process."""
    for line in (logs / f"{stage}.log").read_text(errors="replace").splitlines():
        if (ran := RAN.match(line)) and not SHARED.search(ran[1]):
            yield Test(stage, ran[1], float(ran[3]), ran[2] in ("Passed", "***Skipped"))
    for file in sorted((logs / "times").glob(f"{stage}/*")):
        for line in file.read_text().splitlines():
            seconds, verdict, name = line.split(" ", 2)
            yield Test(stage, name, float(seconds), verdict != "failed")


def words_of_failures(logs, stage, most=12):
    """(test, lines) of each test or process that failed: what it said from where it says what failed; its last lines where it does not."""
    name, said = None, []
    for line in [*(logs / f"{stage}.log").read_text(errors="replace").splitlines(), "100% tests passed"]:
        ran = RAN.match(line)
        if (ran or BETWEEN.match(line)) and name:
            first = next((i for i, word in enumerate(said) if FAILURE.search(word)), max(0, len(said) - most))
            yield name, said[first:first + most]
            name = None
        if ran and ran[2] not in ("Passed", "***Skipped"):
            name, said = ran[1], []
        elif name and line.strip():
            said.append(line[:300])


def shares_without_tests(logs, stage):
    """Processes that failed before they could say of each of their tests whether it did."""
    for line in (logs / f"{stage}.log").read_text(errors="replace").splitlines():
        if (ran := RAN.match(line)) and SHARED.search(ran[1]) and ran[2] != "Passed":
            binary, number = ran[1].split(":shard_")
            file = logs / "times" / stage / f"{binary}_tests.{number}"
            if not file.exists() or " failed " not in file.read_text():
                yield Test(stage, ran[1], float(ran[3]), False)


def cache_was_warm(logs):
    """Whether in each stage nine of ten that were compiled came from the compiler cache (a GPU's kernels are few, and take nvcc minutes);
    not where nobody said."""
    file = logs / "cache"
    stages = [[int(word) for word in line.split()[1:]] for line in file.read_text().splitlines()] if file.exists() else []
    return any(hits for hits, _ in stages) and all(9 * misses <= hits for hits, misses in stages)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("logs", type=pathlib.Path)
    parser.add_argument("--budget", type=pathlib.Path, default=pathlib.Path(__file__).with_name("budget"))
    asked = parser.parse_args()
    budget, over, tests, words, whole = budget_of(asked.budget), [], [], [], 0
    print("ci: stage           wall   processor      budget")
    for file in sorted(asked.logs.glob("*.time"), key=lambda f: f.stat().st_mtime):
        wall, user, system = (float(word) for word in file.read_text().split())
        took, allowed, stage = user + system, budget.get(file.stem), file.stem
        whole += took
        print(f"ci: {stage:12} {wall:7.0f} s   {took:7.0f} s   " + (f"{allowed:7.0f} s" if allowed else "      none"))
        if allowed and took > allowed:
            over.append(f"ci: {stage} took {took:.0f} s of processor time, and .ci/budget allows {allowed:.0f} s")
        tests += [*tests_of(asked.logs, stage), *shares_without_tests(asked.logs, stage)]
        words += words_of_failures(asked.logs, stage)
    allowed = budget.get("all", float("inf")) if cache_was_warm(asked.logs) else float("inf")
    print(f"ci: all          {'':7}     {whole:7.0f} s   " + (f"{allowed:7.0f} s" if allowed < float("inf") else "      none"))
    if whole > allowed:
        over.append(f"ci: all stages took {whole:.0f} s of processor time, and with a warm compiler cache .ci/budget allows {allowed:.0f} s")
    print("ci: the slowest tests")
    slowest = sorted(tests, key=lambda test: -test.seconds)
    for test in slowest[:20]:
        print(f"ci: {test.seconds:7.1f} s  {test.stage:10} {test.name}")
    longest = budget.get("a-test", float("inf"))
    over += [f"ci: {test.name} took {test.seconds:.1f} s in {test.stage}, and .ci/budget allows a test {longest:.0f} s"
             for test in slowest if test.seconds > longest]
    print("".join(line + "\n" for line in over), end="")
    failed = [test for test in tests if not test.passed]
    print("".join(f"ci: {test.name} failed in {test.stage}\n" for test in failed), end="")
    for name, said in words[:4]:
        print(f"ci: {name} said\n" + "".join(f"    {line}\n" for line in said), end="")
    print(f"{len(tests) - len(failed)} passed, {len(failed)} failed")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
