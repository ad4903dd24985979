#!/usr/bin/env python3
"""manners.py [ROOT]: what the house asks of every file and no compiler checks. Fails with file, line and the rule."""
import pathlib
import re
import subprocess
import sys

CODE = {".h", ".cpp", ".cu", ".cuh"}
TEXT = {".md", ".txt", ".py", ".sh", ".yaml", ".yml", ".json", ".cmake", ""} | CODE

# (pattern, folders it holds for, what it says); a line with `manners: REASON` behind it is excused. PCRE2 asks for its macro.
RULES = [
    (re.compile(r"(?<![\w.$}/-])/(?:home|root|Users|work|opt/\w+)/\w"), [""], "a path of one machine"),
    (re.compile(r"^\s*#\s*define\s+(?!PCRE2_CODE_UNIT_WIDTH)"), ["weft/", "tests/", "bench/", "fuzz/"], "a macro: use a constant, a template or a function"),
    (re.compile(r"\bthread_local\b"), ["weft/"], "thread_local: a rank is a value, hand it down"),
    (re.compile(r"\b(?:secure_)?getenv\s*\("), ["weft/"], "an environment variable read below cli and launch"),
    (re.compile(r"\bTODO(?!\(#\d+\))"), ["weft/", "tests/", "bench/", "fuzz/", "docs/"], "a TODO without its issue: TODO(#12)"),
    (re.compile(r"\b(?:new\s+[A-Z]\w*\s*[({]|delete\s+\w+\s*;|malloc\s*\()"), ["weft/"], "memory without an owner: use a value or unique_ptr"),
    (re.compile(r"\bsleep_for\s*\("), ["tests/"], "a sleep in a test: wait for the thing itself"),
    (re.compile(r"\bTrainConfig\b"), ["weft/train/"], "a run's whole configuration: take what is needed of it"),
    (re.compile(r"^\s*(?:\(void\)\s*)?rc::check\("), ["tests/"], "a property that cannot fail its test: EXPECT_TRUE(rc::check(…))"),
]
# Who looks at all settings of a run; other files of the loop are told their own (docs/design.md).
MAY_TAKE_ALL_SETTINGS = {f"weft/train/{name}" for name in (
    "alike.h", "alike.cpp", "config.h", "describe.h", "settings.h", "settings.cpp", "trainer.h", "trainer.cpp", "checkpointing.h", "checkpointing.cpp", "resume.h", "resume.cpp",
    "resume_settings.h", "resume_settings.cpp", "save_facts.h", "save_facts.cpp", "validate.h", "validate.cpp", "validate_batch.cpp", "validate_blocks.cpp", "validate_curriculum.cpp",
    "validate_difficulty.cpp", "validate_layout.cpp", "validate_left_out.cpp", "validate_offload.cpp",
    "validate_scores.cpp")}
MAY_READ_ENVIRONMENT = ("weft/cli/", "weft/launch/")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
NAMED_FILE = re.compile(r"`((?:weft|tests|bench|fuzz|docs|tools|cmake|deploy|examples|\.ci)/[\w./-]+\.\w+)`")


def tracked(root):
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True)
    if listed.returncode == 0:
        return [pathlib.Path(line) for line in listed.stdout.splitlines()]
    return [p.relative_to(root) for p in sorted(root.rglob("*")) if p.is_file()]


def without_comment(line, path):
    return line.split("//")[0] if path.suffix in CODE else line


def lines_of(root, path, text):
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(r"manners: \w", line):
            continue
        code = without_comment(line, path)
        for pattern, folders, rule in RULES:
            if not any(path.as_posix().startswith(folder) for folder in folders):
                continue
            if "configuration" in rule and path.as_posix() in MAY_TAKE_ALL_SETTINGS:
                continue
            if "environment" in rule and path.as_posix().startswith(MAY_READ_ENVIRONMENT):
                continue
            if pattern.search(line if "TODO" in rule or "path" in rule else code):
                yield f"{path.as_posix()}:{number}: {rule}"


def guard(path, text):
    if path.suffix in {".h", ".cuh"} and "#pragma once" not in text:
        yield f"{path.as_posix()}:1: a header without #pragma once"


def links(root, path, text):
    for number, line in enumerate(text.splitlines(), 1):
        for target in LINK.findall(line):
            if re.match(r"[a-z]+:", target) or target.startswith("#"):
                continue
            if not (root / path.parent / target.split("#")[0]).exists():
                yield f"{path.as_posix()}:{number}: the link {target} leads nowhere"
        for target in NAMED_FILE.findall(line):
            if not (root / target).exists():
                yield f"{path.as_posix()}:{number}: the file {target} does not exist"


def check(root):
    complaints = []
    for path in tracked(root):
        full = root / path
        if path.suffix not in TEXT or not full.is_file() or full.stat().st_size > 1_000_000 or "golden" in path.parts:
            continue
        try:
            text = full.read_text()
        except UnicodeDecodeError:
            continue
        complaints += lines_of(root, path, text)
        complaints += guard(path, text)
        if path.suffix == ".md":
            complaints += links(root, path, text)
    return complaints


if __name__ == "__main__":
    found = check(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    print("\n".join(found), end="\n" if found else "")
    sys.exit(1 if found else 0)
