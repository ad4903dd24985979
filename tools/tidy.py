#!/usr/bin/env python3
"""tidy.py BUILD [FILE...]: clang-tidy over the .cpp files of weft/ that BUILD compiles (or those named), two or more at a time.

A file is checked again only if it, a header of ours that it includes, .clang-tidy or this script has changed: the hashes of those that
passed lie in BUILD/tidy.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOREIGN = " -fsched-pressure"  # g++ knows it, clang refuses it
INCLUDE = re.compile(r'^\s*#\s*include\s*"((?:weft|tests)/[^"]+)"', re.M)


def reached(path, seen):
    """The file and every header of ours below it."""
    if path in seen or not path.exists():
        return
    seen[path] = path.read_bytes()
    for name in INCLUDE.findall(seen[path].decode(errors="replace")):
        reached(ROOT / name, seen)


def fingerprint(path):
    seen = {}
    reached(path, seen)
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes() + pathlib.Path(__file__).read_bytes())
    for name in sorted(seen):
        digest.update(str(name.relative_to(ROOT)).encode() + seen[name])
    return digest.hexdigest()


def tidy(build, path):
    """What clang-tidy has to say about a file; nothing where it is content."""
    mark = build / "tidy" / (path.relative_to(ROOT).as_posix().replace("/", "-") + ".passed")
    now = fingerprint(path)
    if mark.exists() and mark.read_text() == now:
        return None
    run = subprocess.run(["clang-tidy", "-p", str(build / "tidy"), "--quiet", "--extra-arg=-Wno-unknown-warning-option", str(path)], capture_output=True, text=True)
    if run.returncode == 0:
        mark.write_text(now)
        return ""
    return run.stdout or run.stderr


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    commands = (build / "compile_commands.json").read_text().replace(FOREIGN, "")
    (build / "tidy").mkdir(exist_ok=True)
    (build / "tidy" / "compile_commands.json").write_text(commands)
    compiled = {pathlib.Path(c["file"]) for c in json.loads(commands)}
    wanted = [pathlib.Path(name).resolve() for name in sys.argv[2:]] or sorted(compiled)
    files = [path for path in wanted if path in compiled and path.is_relative_to(ROOT / "weft")]
    start, checked, failed = time.monotonic(), 0, 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, said in zip(files, pool.map(lambda p: tidy(build, p), files)):
            checked += said is not None
            if said:
                failed += 1
                print(said.strip(), flush=True)
    print(f"tidy: {len(files)} files, {checked} checked, {len(files) - checked} unchanged, {failed} with findings, "
          f"{time.monotonic() - start:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
