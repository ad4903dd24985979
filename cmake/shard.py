#!/usr/bin/env python3
"""shard.py BINARY NUMBER OF [EACH]: every OF-th test of a Google Test binary, from the NUMBER-th on, in one process; and where EACH is said,
of those that are one test with other values only every EACH-th.

A test that ends the process has failed; the tests behind it run in another process. At the end every test of the share has passed, was
skipped or has failed. Where $WEFT_EVERY is a number, it is every so many-th test of the share, and $WEFT_TURN, another number, says which. Where $WEFT_TIMES names a folder, a file there says of each "seconds passed|failed|skipped name".
"""
import os
import pathlib
import re
import subprocess
import sys

BEGINS = re.compile(r"^\[ RUN      \] (\S+)")
ENDS = re.compile(r"\[ +(OK|FAILED|SKIPPED) +\] (\S+?),? .*\((\d+) ms\)$")
VERDICTS = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}


def names_of(binary):
    """Every test that the binary runs, as Suite.name."""
    listed = subprocess.run([binary, "--gtest_list_tests"], stdout=subprocess.PIPE, text=True, check=True).stdout
    suite, names = "", []
    for line in listed.splitlines():
        line = line.split("  #")[0].rstrip()
        if line.startswith("  "):
            names.append(suite + line.strip())
        elif line.endswith("."):
            suite = line
    return [name for name in names if "DISABLED_" not in name]


def some_of(names, each):
    """Suite.name/value is a test with a value; of each test's values some, of the next test's others."""
    seen, out = {}, []
    for name in names:
        test, _, value = name.rpartition("/")
        if "." not in test:  # the only stroke is one of Values/Suite
            test, value = name, ""
        counted = seen.setdefault(test, [len(seen), 0])
        if not value or (counted[0] + counted[1]) % each == 0:
            out.append(name)
        counted[1] += 1
    return out


def run(binary, names):
    """Runs the tests in one process; {name: (verdict, seconds)} of those that came to an end, and what is to say of it."""
    process = subprocess.Popen([binary, "--gtest_color=no", "--gtest_filter=" + ":".join(names)], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace")
    found, said, now = {}, [], None
    for line in process.stdout:
        said.append(line)
        if begun := BEGINS.match(line):
            now, said = begun[1], [line]
        elif (ended := ENDS.search(line.rstrip())) and ended[2] == now:
            found[now] = (VERDICTS[ended[1]], int(ended[3]) / 1000)
            if ended[1] == "FAILED":
                print("".join(said), flush=True)
            now, said = None, []
    status = process.wait()
    if now:
        found[now] = ("failed", 0)
        print("".join(said) + f"shard: {now} ended the process with status {status}", flush=True)
    elif status != 0 and not any(verdict == "failed" for verdict, _ in found.values()):
        # Leaks are counted when all is over.
        last = [name for name in names if name in found][-1:] or names[:1]
        found[last[0]] = ("failed", 0)
        print("".join(said) + f"shard: status {status} after the last test, {last[0]}", flush=True)
    return found


def main():
    binary, number, of = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    each = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    every, turn = int(os.environ.get("WEFT_EVERY", "1")), int(os.environ.get("WEFT_TURN", "0"))
    mine = some_of(names_of(binary), each)[number - 1 :: of][(number + turn) % every :: every]
    found = {}
    while left := [name for name in mine if name not in found]:
        more = run(binary, left)
        if not more:
            more = {left[0]: ("failed", 0)}
            print(f"shard: {left[0]} was not run", flush=True)
        found.update(more)
    if folder := os.environ.get("WEFT_TIMES"):
        label = pathlib.Path(binary).name
        lines = [f"{seconds:.3f} {verdict} {label.removesuffix('_tests')}:{name}\n" for name, (verdict, seconds) in found.items()]
        (pathlib.Path(folder) / f"{label}.{number}").write_text("".join(lines))
    failed = [name for name, (verdict, _) in found.items() if verdict == "failed"]
    print(f"shard: {len(found) - len(failed)} tests passed, {len(failed)} failed" + "".join(f"\n  {name}" for name in failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
