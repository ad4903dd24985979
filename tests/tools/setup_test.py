#!/usr/bin/env python3
"""tools/setup installs exactly what is missing, and says what it cannot do; played with commands that only write down what they are asked."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from planted import ROOT

KNOWN = ["env", "bash", "awk", "dirname", "cat"]  # what the script needs of the real system


def setup(*groups, missing=(), user=1000, commands=("dpkg-query", "apt-get", "sudo")):
    """(exit status, output, the apt-get calls) of tools/setup on a machine that lacks `missing`."""
    with tempfile.TemporaryDirectory() as folder:
        bin, calls = pathlib.Path(folder), pathlib.Path(folder) / "calls"
        fakes = {
            "dpkg-query": f'case " {" ".join(missing)} " in *" $4 "*) ;; *) printf installed ;; esac',
            "apt-get": f'echo "$@" >> {calls}',
            "sudo": f'echo "sudo $1" >> {calls}; exec "$@"',
            "id": f"echo {user}",
        }
        for name in KNOWN:
            (bin / name).symlink_to(shutil.which(name))
        for name in (*commands, "id"):
            (bin / name).write_text(f"#!{shutil.which('bash')}\n{fakes[name]}\n")
            (bin / name).chmod(0o755)
        run = subprocess.run([ROOT / "tools/setup", *groups], env={"PATH": str(bin)}, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
        return run.returncode, run.stdout, calls.read_text().splitlines() if calls.exists() else []


class Setup(unittest.TestCase):
    def test_touches_nothing_when_nothing_is_missing(self):
        self.assertEqual(setup("program", "build", "check"), (0, "", []))

    def test_installs_what_is_missing_of_the_groups_asked_for(self):
        status, said, calls = setup("program", "build", missing=["ccache", "libdnnl-dev", "clang-tidy"], user=0)
        self.assertEqual((status, said), (0, "setup: installing 2 packages: libdnnl-dev ccache\n"))
        self.assertEqual(calls, ["update -qq", "install -y -qq --no-install-recommends -o Dpkg::Options::=--force-unsafe-io libdnnl-dev ccache"])

    def test_takes_what_program_and_tests_are_built_of_when_no_group_is_named(self):
        self.assertEqual(setup(missing=["ccache", "libfmt-dev", "clang-tidy"], user=0)[1], "setup: installing 2 packages: libfmt-dev ccache\n")

    def test_installs_nothing_for_the_program_that_only_its_tests_need(self):
        self.assertEqual(setup("program", missing=["ccache", "libgtest-dev", "libbenchmark-dev"], user=0), (0, "", []))

    def test_asks_sudo_where_the_user_is_not_root(self):
        self.assertEqual(setup("check", missing=["clang-tidy"])[2][:2], ["sudo env", "update -qq"])

    def test_says_what_root_should_do_where_there_is_no_sudo(self):
        status, said, calls = setup("check", missing=["clang-tidy"], commands=("dpkg-query", "apt-get"))
        self.assertEqual((status, calls), (1, []))
        self.assertEqual(said, "setup: 1 packages are missing and this user may not install them; as root:\n"
                               "  apt-get install --no-install-recommends clang-tidy\n")

    def test_refuses_a_group_that_does_not_exist(self):
        self.assertEqual(setup("everything"), (2, "setup: there is no group everything in tools/packages.txt\n", []))

    def test_names_the_packages_where_the_system_is_not_debian(self):
        status, said, _ = setup("check", commands=())
        self.assertEqual(status, 0)
        self.assertTrue(said.startswith("setup: this is not Debian, so nothing is installed; weft needs what Debian 12 calls: clang "), said)

    def test_lists_no_package_twice_in_a_group(self):
        lines = (ROOT / "tools/packages.txt").read_text().splitlines()
        names, group = [], ""
        for line in lines:
            if line.startswith("["):
                group = line.split()[0]
            elif line and line[0] != "#":
                names.append((group, line.split()[0]))
        self.assertEqual(len(names), len(set(names)))
        self.assertTrue(all("#" in line for line in lines if line and line[0] != "["), "a package without its reason")


if __name__ == "__main__":
    unittest.main()
