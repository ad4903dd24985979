#!/usr/bin/env python3
"""tidy.py BUILD [FILE...]: clang-tidy over the .cpp files of weft/ that BUILD compiles (or those named), two or more at a time.

Where BUILD compiles a few of them as one (WEFT_JOIN), they are looked at as one, which takes a fourth of the time.

A file is checked again only if it, a header of ours that it includes, the command that compiles it, .clang-tidy, clang-tidy itself or
this script has changed. Those that passed leave a mark in the folder of the compiler cache (or in $XDG_CACHE_HOME/weft where there is
none), so that a fresh clone that finds its objects there finds the marks too. A mark that nobody asked for in sixty days goes.
"""
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What does not matter here, what clang refuses, and headers that g++ compiled, which are of no use to clang.
FOREIGN = re.compile(r" -Werror(?!=)| --param=ggc\S+| -fsched-pressure| -fpch-preprocess| -Winvalid-pch| -include \S+cmake_pch\S*")
INCLUDE = re.compile(r'^\s*#\s*include\s*"((?:weft|tests)/[^"]+)"', re.M)
KEPT_DAYS = 60


def marks_folder():
    """Where marks lie: beside the compiler's results, because they are worth as much and as long."""
    if ccache := shutil.which("ccache"):
        asked = subprocess.run([ccache, "--get-config", "cache_dir"], capture_output=True, text=True)
        if asked.returncode == 0 and asked.stdout.strip():
            return pathlib.Path(asked.stdout.strip()) / "weft-tidy"
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "weft" / "tidy"


class Tidy:
    """clang-tidy over the files of one build, and what it was content with before."""

    def __init__(self, build):
        self.build = build / "tidy"
        self.build.mkdir(exist_ok=True)
        text = FOREIGN.sub("", (build / "compile_commands.json").read_text())
        (self.build / "compile_commands.json").write_text(text)
        self.commands = {pathlib.Path(c["file"]): c["command"].replace(str(ROOT), ".") for c in json.loads(text)}
        self.marks = marks_folder()
        version = subprocess.run(["clang-tidy", "--version"], capture_output=True, text=True, check=True).stdout
        # The processor that it runs on is part of what it says of itself.
        version = re.sub(r"^\s*Host CPU:.*$", "", version, flags=re.M)
        self.common = hashlib.sha256(version.encode() + (ROOT / ".clang-tidy").read_bytes() + pathlib.Path(__file__).read_bytes())
        self.read = {}

    def reached(self, path, seen):
        """The file and every header of ours below it."""
        if path in seen:
            return
        if path not in self.read:
            content = path.read_bytes() if path.exists() else b""
            below = [ROOT / name for name in INCLUDE.findall(content.decode(errors="replace"))]
            self.read[path] = (hashlib.sha256(content).digest(), below)
        seen[path], below = self.read[path]
        for header in below:
            self.reached(header, seen)

    def mark_of(self, path):
        seen = {}
        self.reached(path, seen)
        digest = self.common.copy()
        digest.update(self.commands[path].encode())
        for name in sorted(seen):
            digest.update(name.relative_to(ROOT).as_posix().encode() + b"\0" + seen[name])
        name = digest.hexdigest()
        return self.marks / name[:2] / name

    def check(self, path):
        """What clang-tidy has to say about a file; nothing where it was content before."""
        mark = self.mark_of(path)
        if mark.exists():
            mark.touch()
            return None
        run = subprocess.run(["clang-tidy", "-p", str(self.build), "--quiet", "--extra-arg=-Wno-unknown-warning-option", str(path)],
                             capture_output=True, text=True)
        if run.returncode != 0:
            return run.stdout or run.stderr
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
        return ""

    def forget(self):
        """Removes the marks that nobody asked for in a long time."""
        old = time.time() - KEPT_DAYS * 86400
        for mark in self.marks.glob("??/*"):
            if mark.stat().st_mtime < old:
                mark.unlink(missing_ok=True)


def ours(path, build):
    """A source of weft/, or one that CMake made of some."""
    joined = path.is_relative_to(build / "rooms") and path.read_text().startswith("// Made by cmake.\n")
    return path.is_relative_to(ROOT / "weft") or joined


def once(files, build):
    """The files without those that CMake joined of the same sources for another instruction set: each is looked at for one set, and
    no set's own headers are left out."""
    alike = collections.defaultdict(list)
    for path in files:
        joined = path.is_relative_to(build / "rooms")
        alike[path.read_text() if joined else path].append(path)
    return [group[number % len(group)] for number, group in enumerate(alike.values())]


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    tidy = Tidy(build)
    wanted = [pathlib.Path(name).resolve() for name in sys.argv[2:]] or sorted(tidy.commands)
    files = once([path for path in wanted if path in tidy.commands and ours(path, build)], build)
    start, checked, failed = time.monotonic(), 0, 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for said in pool.map(tidy.check, files):
            checked += said is not None
            if said:
                failed += 1
                print(said.strip(), flush=True)
    tidy.forget()
    print(f"tidy: {len(files)} files, {checked} checked, {len(files) - checked} unchanged, {failed} with findings, "
          f"{time.monotonic() - start:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
