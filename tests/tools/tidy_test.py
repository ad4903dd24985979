#!/usr/bin/env python3
"""tools/tidy.py checks what has changed since it was content, in whichever clone that was; played with a clang-tidy that notes its calls."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from planted import ROOT

FILES = {
    ".clang-tidy": "Checks: all\n",
    "weft/base/sum.cpp": '#include "weft/base/sum.h"\n',
    "weft/base/sum.h": '#include "weft/base/kind.h"\n',
    "weft/base/kind.h": "enum class Kind { small };\n",
    "weft/base/other.cpp": "int other() { return 1; }\n",
}
TIDY = """#!{bash}
[ "$1" = --version ] && {{ cat "{folder}/version"; exit; }}
for file; do :; done
basename "$file" >> "{folder}/calls"
if grep -q wrong "$file"; then echo "$file: a finding"; exit 1; fi
"""


class Workplace:
    """A machine with a compiler cache, on which clones come and go."""

    def __init__(self, folder):
        self.folder, self.bin = pathlib.Path(folder), pathlib.Path(folder) / "bin"
        self.bin.mkdir()
        self.says("clang-tidy 1")
        for name, text in {"clang-tidy": TIDY.format(bash=shutil.which("bash"), folder=folder),
                           "ccache": f'#!{shutil.which("bash")}\n[ "$*" = "--get-config cache_dir" ] && echo {folder}/cache\n'}.items():
            (self.bin / name).write_text(text)
            (self.bin / name).chmod(0o755)

    def says(self, version):
        (self.folder / "version").write_text(version)

    def clone(self, name, flags="-O1", **changed):
        """A clone in which files are changed: their names with _ for what is no letter"""
        clone = self.folder / name
        for path, text in FILES.items():
            (clone / path).parent.mkdir(parents=True, exist_ok=True)
            (clone / path).write_text(changed.get(re.sub(r"\W", "_", path), text))
        (clone / "tools").mkdir()
        shutil.copy(ROOT / "tools/tidy.py", clone / "tools")
        (clone / "build").mkdir()
        commands = [{"directory": f"{clone}/build", "file": f"{clone}/{path}",
                     "command": f"c++ -I{clone} {flags} -fsched-pressure -include {clone}/build/cmake_pch.hxx -c {clone}/{path}"}
                    for path in FILES if path.endswith(".cpp")]
        (clone / "build/compile_commands.json").write_text(json.dumps(commands))
        return clone

    def tidy(self, clone):
        """(status, the files that clang-tidy was asked about, output)"""
        calls = self.folder / "calls"
        calls.unlink(missing_ok=True)
        run = subprocess.run([sys.executable, clone / "tools/tidy.py", clone / "build"], stdout=subprocess.PIPE, text=True,
                             env={**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"})
        return run.returncode, sorted(calls.read_text().split()) if calls.exists() else [], run.stdout


class Tidy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.here = Workplace(folder.name)
        self.assertEqual(self.here.tidy(self.here.clone("first"))[:2], (0, ["other.cpp", "sum.cpp"]))

    def asked(self, *clone, **changed):
        return self.here.tidy(self.here.clone("second", *clone, **changed))[:2]

    def test_what_two_instruction_sets_share_is_checked_once(self):
        clone = self.here.clone("sets")
        commands = json.loads((clone / "build/compile_commands.json").read_text())
        for name in ("fast_wide_1", "fast_narrow_1", "fast_narrow_2"):
            joined = clone / f"build/rooms/{name}.cpp"
            joined.parent.mkdir(exist_ok=True)
            joined.write_text("// Made by cmake.\n" + f'#include "weft/base/loops_{name[-1]}.cpp"\n')
            commands.append({"directory": f"{clone}/build", "file": str(joined), "command": f"c++ -c {joined}"})
        (clone / "build/compile_commands.json").write_text(json.dumps(commands))
        status, asked, _ = self.here.tidy(clone)
        self.assertEqual(status, 0)
        self.assertEqual([name[-5:] for name in asked], ["1.cpp", "2.cpp"])

    def test_a_fresh_clone_is_not_checked_again(self):
        self.assertEqual(self.asked(), (0, []))

    def test_a_file_is_checked_again_when_a_header_below_it_changed(self):
        self.assertEqual(self.asked(weft_base_kind_h="enum class Kind { small, large };\n"), (0, ["sum.cpp"]))

    def test_all_are_checked_again_by_another_clang_tidy(self):
        self.here.says("clang-tidy 2")
        self.assertEqual(self.asked(), (0, ["other.cpp", "sum.cpp"]))

    def test_all_are_checked_again_when_the_rules_changed(self):
        self.assertEqual(self.asked(_clang_tidy="Checks: some\n"), (0, ["other.cpp", "sum.cpp"]))

    def test_all_are_checked_again_when_they_are_compiled_otherwise(self):
        self.assertEqual(self.asked("-O1 -DOTHER"), (0, ["other.cpp", "sum.cpp"]))

    def test_a_finding_fails_each_time(self):
        clone = self.here.clone("second", weft_base_other_cpp="wrong\n")
        for _ in range(2):
            status, asked, said = self.here.tidy(clone)
            self.assertEqual((status, asked), (1, ["other.cpp"]))
            self.assertIn("other.cpp: a finding", said)

    def test_takes_out_of_the_command_what_clang_does_not_know(self):
        written = (self.here.folder / "first/build/tidy/compile_commands.json").read_text()
        self.assertNotIn("cmake_pch", written)
        self.assertNotIn("-fsched-pressure", written)


if __name__ == "__main__":
    unittest.main()
