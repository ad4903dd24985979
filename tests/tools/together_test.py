#!/usr/bin/env python3
"""cmake/together.py puts sources together only where no name of one's own could mean something else in another."""
import importlib.util
import pathlib
import tempfile
import unittest

from planted import ROOT

spec = importlib.util.spec_from_file_location("together", ROOT / "cmake/together.py")
together = importlib.util.module_from_spec(spec)
spec.loader.exec_module(together)


def grouped(most=12, **sources):
    """The groups of sources by their names; `header` is a header that others may include."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "weft/base").mkdir(parents=True)
        for name, text in sources.items():
            (root / f"weft/base/{name}{'.h' if name == 'header' else '.cpp'}").write_text(text)
        files = [f"weft/base/{name}.cpp" for name in sorted(sources) if name != "header"]
        return [[pathlib.Path(name).stem for name in group] for group in together.groups(together.Tree(root), files, most)]


def own(text):
    return "namespace weft {\nnamespace {\n" + text + "\n}  // namespace\n}\n"


class Together(unittest.TestCase):
    def test_strangers_go_together(self):
        self.assertEqual(grouped(a=own("int one() { return 1; }"), b=own("int two() { return 2; }")), [["a", "b"]])

    def test_two_functions_of_one_name_do_not(self):
        self.assertEqual(grouped(a=own("int one() { return 1; }"), b=own("double one(int x) { return x; }")), [["a"], ["b"]])

    def test_nor_types_constants_and_aliases_of_one_name(self):
        for text in ("struct Case {\n  int x;\n};", "template <class T>\nclass Case;", "enum class Case { one };", "constexpr int Case = 1;",
                     "using Case = int;", "constexpr std::string_view one = \"a, b\", Case = \"c\";", "int one[2], *Case, three;", "[[maybe_unused]] const std::map<int, int> Case{{1, 2}};", "const std::vector<int>& Case(int x) {}"):
            self.assertEqual(grouped(a=own(text), b=own("int Case;")), [["a"], ["b"]], text)

    def test_an_alias_is_ones_own_wherever_it_stands(self):
        self.assertEqual(grouped(a="namespace weft {\nnamespace fs = std::filesystem;\n}", b=own("int fs;")), [["a"], ["b"]])

    def test_a_name_taken_from_elsewhere_is_ones_own_unless_both_take_the_same(self):
        taken = own("using data::Field;")
        self.assertEqual(grouped(a=taken, b=own("using base::Field;")), [["a"], ["b"]])
        self.assertEqual(grouped(a=taken, b=taken), [["a", "b"]])
        reads = '#include "weft/base/header.h"\n'
        self.assertEqual(grouped(header="namespace weft {\nclass Field {};\n}\n", a=taken, b=reads), [["a"], ["b"]])
        another = "namespace weft::data {\nclass Field {};\n}\n"
        self.assertEqual(grouped(header="namespace weft {\nclass Field {};\n}\n", a=another + taken, b=reads), [["a"], ["b"]])

    def test_a_name_of_a_header_that_only_the_other_reads_keeps_them_apart(self):
        header = "#pragma once\nnamespace weft {\nvoid copy(int from, int to);\n}\n"
        reads = '#include "weft/base/header.h"\n'
        self.assertEqual(grouped(header=header, a=own("int copy(int x) { return x; }"), b=reads), [["a"], ["b"]])
        self.assertEqual(grouped(header=header, a=reads + own("int copy(long x) { return x; }"), b=reads), [["a", "b"]])

    def test_what_stands_inside_of_bodies_strings_and_comments_is_nobodys(self):
        self.assertEqual(grouped(a=own('void f() { struct Case { int x; }; say("int Case;"); }  // int Case;'), b=own("int Case;")), [["a", "b"]])

    def test_overloads_in_the_named_namespace_go_together(self):
        self.assertEqual(grouped(a="namespace weft {\nvoid describe(A& x) { x.tell(); }\n}\n", b="namespace weft {\nvoid describe(B& x) { x.tell(); }\n}\n"),
                         [["a", "b"]])

    def test_a_group_ends_where_it_is_large(self):
        sources = {f"s{i}": own(f"int value_{i};") for i in range(13)}
        self.assertEqual([len(group) for group in grouped(**sources)], [12, 1])
        self.assertEqual([len(group) for group in grouped(most=5, **sources)], [5, 5, 3])


if __name__ == "__main__":
    unittest.main()
