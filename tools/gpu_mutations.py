#!/usr/bin/env python3
"""gpu_mutations.py BUILD [--check] [--from N] [--part K/N] [--write FILE] [WORD...]: plants the faults of tests/backend/gpu_mutations.txt
into the GPU's kernels one after another, compiles what each touches, runs the tests that should find it on the emulated GPU, and tells
which were found and by what. BUILD is a build whose conformance_gpu_tests, comm_gpu_tests and backend_gpu_tests are built and pass. With
words, only faults whose line has one of them. --check looks only whether every fault still fits its source. --part 1/2 and 2/2 try every
second fault each, and may run beside each other. Fails where one was not found.

The tree is not touched: a fault lies in a copy of its source in BUILD/mutants/K, which is found before the tree; only faults of native/gpu.h,
which is read and not compiled, are planted where it lies, and taken out again.
"""
import argparse
import json
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FAULTS = ROOT / "tests/backend/gpu_mutations.txt"
CUDA = "weft/backend/cuda/"
SECONDS = 900  # after which a test is said to hang


class Fault:
    """[FILE > SOURCES] WHAT :: TESTS, then what is replaced ("-") and by what ("+"); SOURCES are those to compile where FILE is a header, and may have a *;
    one of tests/ is named from the root on."""

    def __init__(self, line):
        head = re.fullmatch(r"\[(\S+)(?: > ([^\]]+))?\] (.+) :: (\S+)", line)
        if not head:
            sys.exit(f"gpu_mutations: {line!r} is no fault: [FILE > SOURCES] WHAT :: TESTS")
        self.file, sources, self.what, self.tests = head.groups()
        words = sources.split() if sources else [self.file]
        self.sources = [path for word in words for path in sorted((ROOT if word.startswith("tests/") else ROOT / CUDA).glob(word))]
        self.before, self.after = [], []

    def path(self):
        return ROOT / CUDA / self.file

    def planted(self):
        """The text of the source with this fault in it."""
        text, old, new = self.path().read_text(), "\n".join(self.before), "\n".join(self.after)
        if text.count(old) != 1:
            sys.exit(f"gpu_mutations: {self.file}: {self.what}: what is to be replaced is there {text.count(old)} times")
        return text.replace(old, new)


def faults_of(path):
    faults = []
    for line in path.read_text().splitlines():
        if line.startswith("["):
            faults.append(Fault(line))
        elif line.startswith("-"):
            faults[-1].before.append(line[1:])
        elif line.startswith("+"):
            faults[-1].after.append(line[1:])
    return faults


class Build:
    def __init__(self, folder, part):
        self.folder, self.mutants = folder, folder / "mutants" / str(part)
        self.commands = {entry["file"]: entry["command"] for entry in json.loads((folder / "compile_commands.json").read_text())}

    def link(self, tests):
        """How tests of this path are linked."""
        told = subprocess.run(["ninja", "-C", self.folder, "-t", "commands", tests], capture_output=True, text=True, check=True)
        line = [one for one in told.stdout.splitlines() if f"-o {tests}" in one][-1]
        return shlex.split(re.search(r": && (\S*c\+\+ .*?) && ", line)[1])

    def compile(self, fault):
        """The objects of what the fault touches."""
        overlay = self.mutants / "tree"
        planted = overlay / CUDA / fault.file
        planted.parent.mkdir(parents=True, exist_ok=True)
        for old in planted.parent.glob("*.*"):
            old.unlink()
        planted.write_text(fault.planted())
        objects = []
        for source in fault.sources:
            out = self.mutants / (source.name + ".o")
            command = shlex.split(self.commands[str(source)])
            command = [word for word in command if word != "-Werror"] + ["-w"]
            command[1:1] = ["-I", str(overlay)]
            command[command.index("-o") + 1] = str(out)
            command[command.index("-c") + 1] = str(planted) if source == fault.path() else str(source)
            run = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
            if run.returncode != 0:
                sys.exit(f"gpu_mutations: {fault.what}: does not compile\n{run.stderr}")
            objects.append(str(out))
        return objects

    def binary(self, fault):
        objects = self.compile(fault)
        whose = {"GpuLines": "tests/comm/comm_gpu_tests", "GpuWrappers": "tests/backend/backend_gpu_tests"}
        command = self.link(whose.get(fault.tests.split(".")[0], "tests/backend/conformance_gpu_tests"))
        command[command.index("-o") + 1] = str(self.mutants / "tests")
        command = [word for word in command if not any(word.endswith(f"/{source.name}.o") for source in fault.sources)]
        first = next(i for i, word in enumerate(command) if word.endswith(".a"))
        subprocess.run(command[:first] + objects + command[first:], cwd=self.folder, check=True)
        return self.mutants / "tests"


def found_by(binary, tests):
    """What the tests say against a fault, None where they say nothing."""
    command = [str(binary), f"--gtest_filter={tests}", "--gtest_break_on_failure"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"did not end in {SECONDS} s"
    if run.returncode == 0:
        if not re.search(r"\[  PASSED  \] [1-9]", run.stdout):
            sys.exit(f"gpu_mutations: there are no tests {tests}")
        return None
    return told(run.stdout + run.stderr) or f"ended with {run.returncode}"


def told(text):
    """The heart of a failure, short."""
    for pattern in (r"(?:[\w.]+:\d+: )?(?:thread \d+ of block \d+|an operation of stream \d+|several threads) [^;\"]*", r"the block is stuck[^\"]*",
                    r"an access of [^;\"]*", r"\w+ is not aligned[^;\"]*", r"operand \d+ (?:is|was)[^;\"]*", r"cublasLtMatmul: [^;\"]*",
                    r"[^\"\n]* of lines \d+ and \d+", r"device work touches[^;\"]*", r"bank conflicts[^\n]*", r"depends on the number of threads",
                    r"element \d+[^\"\n]*", r"Failure\n(.*\n.*)"):
        hit = re.search(pattern, text)
        if hit:
            return " ".join((hit[1] if hit.groups() else hit[0]).split())[:110]
    return None


def tried(build, fault):
    if not fault.file.startswith("native/"):
        return found_by(build.binary(fault), fault.tests if "." in fault.tests else f"EmulatedGpu/Conformance.{fault.tests}*")
    path, text = fault.path(), fault.path().read_text()
    try:
        path.write_text(fault.planted())
        return found_by(build.folder / "tests/backend/backend_gpu_tests", fault.tests)
    finally:
        path.write_text(text)


def part_of(chosen, part, parts):
    """Faults of native/, which are planted where they lie, are the first part's."""
    lying, others = ([each for each in chosen if each[1].file.startswith("native/") == lies] for lies in (True, False))
    return sorted(others[part - 1::parts] + (lying if part == 1 else []), key=lambda each: each[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--from", dest="first", type=int, default=1)
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("words", nargs="*")
    options = parser.parse_intermixed_args()
    numbered = [(i, fault) for i, fault in enumerate(faults_of(FAULTS), 1) if i >= options.first]
    chosen = [(i, f) for i, f in numbered if not options.words or any(w in f"{f.file} {f.what} {f.tests}" for w in options.words)]
    for _, fault in chosen:
        fault.planted()
    part, parts = map(int, options.part.split("/"))
    chosen = part_of(chosen, part, parts)
    if options.check:
        print(f"gpu_mutations: {len(chosen)} faults fit their sources")
        return 0
    build = Build(options.build.resolve(), part)
    missed = 0
    for i, fault in chosen:
        start = time.monotonic()
        by = tried(build, fault)
        missed += by is None
        line = f"{i} | {fault.file} | {fault.what} | {by or 'NOT FOUND'} | {time.monotonic() - start:.0f} s"
        print(line, flush=True)
        if options.write:
            with options.write.open("a") as out:
                print(line, file=out)
    print(f"gpu_mutations: {len(chosen) - missed} of {len(chosen)} found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
