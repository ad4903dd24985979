#!/usr/bin/env python3
"""manners.py sees each thing it forbids, and leaves what is allowed alone."""
import unittest

from planted import said, tool

manners = tool("manners")
HEAD = "// What this file is.\n"


def of(line, path="weft/ops/a.cpp"):
    return said(manners.check, {path: HEAD + line + "\n"})


class Manners(unittest.TestCase):
    def test_finds_each_thing_that_is_forbidden(self):
        for line, rule in [
            ('open("/ho' 'me/me/data");', "a path of one machine"),
            ("#define LOUD 1", "a macro: use a constant, a template or a function"),
            ("thread_local int x;", "thread_local: a rank is a value, hand it down"),
            ('std::getenv("X");', "an environment variable read below cli and launch"),
            ("// TO" "DO later", "a TO" "DO without its issue: TODO(#12)"),
            ("auto* p = new Thing();", "memory without an owner: use a value or unique_ptr"),
            ("delete p;", "memory without an owner: use a value or unique_ptr"),
        ]:
            self.assertEqual(of(line), [f"weft/ops/a.cpp:2: {rule}"], line)
        self.assertEqual(of("void step(const TrainConfig& config);", "weft/train/stepper.cpp"),
                         ["weft/train/stepper.cpp:2: a run's whole configuration: take what is needed of it"])
        self.assertEqual(of("void step(const TrainConfig& config);", "weft/train/trainer.cpp"), [])
        self.assertEqual(of("std::this_thread::sleep" "_for(1s);", "tests/ops/a.cpp"),
                         ["tests/ops/a.cpp:2: a sleep in a test: wait for the thing itself"])
        self.assertEqual(of("  rc::check([] {", "tests/ops/a.cpp"),
                         ["tests/ops/a.cpp:2: a property that cannot fail its test: EXPECT_TRUE(rc::check(…))"])
        self.assertEqual(of("  EXPECT_TRUE(rc::check([] {", "tests/ops/a.cpp"), [])

    def test_leaves_what_is_allowed_alone(self):
        for line in ["// a new Thing() is made", "A() = delete;", "// TO" "DO(#12) later", "#define PCRE2_CODE_UNIT_WIDTH 8",
                     'open("/proc/self/status");', "thread_local int x;  // manners: the library wants it"]:
            self.assertEqual(of(line), [], line)
        self.assertEqual(of('std::getenv("X");', "weft/cli/a.cpp"), [])

    def test_wants_a_guard_and_no_comment_that_only_fills_a_rule(self):
        self.assertEqual(said(manners.check, {"weft/a/b.h": "int x;\n", "weft/a/c.h": "#pragma once\n", "weft/a/b.cpp": "int x;\n"}),
                         ["weft/a/b.h:1: a header without #pragma once"])

    def test_follows_the_links_of_documents(self):
        text = "[a](b.md) [c](gone.md) [w](https://example.org) [h](#here) `weft/a.h` `weft/none.h`\n"
        files = {"docs/a.md": text, "docs/b.md": "", "weft/a.h": "// What it is.\n#pragma once\n"}
        self.assertEqual(said(manners.check, files), ["docs/a.md:1: the link gone.md leads nowhere",
                                                      "docs/a.md:1: the file weft/none.h does not exist"])


if __name__ == "__main__":
    unittest.main()
