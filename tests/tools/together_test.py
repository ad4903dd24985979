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


def laid(most=12, rename=False, **sources):
    """[{source: the names that are others there}], by their names; `header` is a header that others may include."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "weft/base").mkdir(parents=True)
        for name, text in sources.items():
            (root / f"weft/base/{name}{'.h' if name == 'header' else '.cpp'}").write_text(text)
        files = [f"weft/base/{name}.cpp" for name in sorted(sources) if name != "header"]
        return [{pathlib.Path(name).stem: names for name, names in group.items()}
                for group in together.groups(together.Tree(root), files, most, rename)]


def grouped(most=12, **sources):
    return [list(group) for group in laid(most, **sources)]


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

    def test_a_name_that_would_hide_what_the_other_finds_further_out_keeps_them_apart(self):
        header = "#pragma once\nnamespace weft {\nvoid copy(int from);\n}\n"
        reads = '#include "weft/base/header.h"\n'
        hides = reads + "namespace weft::cli {\nnamespace {\nint copy(long x) { return x; }\n}\n}\n"
        calls = reads + "namespace weft::cli {\nvoid work() { copy(1); }\n}\n"
        self.assertEqual(grouped(header=header, a=hides, b=calls), [["a"], ["b"]])
        self.assertEqual(grouped(header=header, a=calls, b=hides), [["a"], ["b"]])
        self.assertEqual(grouped(header=header, a=hides, b=calls.replace("copy(1)", "return")), [["a", "b"]])
        inside = reads + own("void work() { copy(1); }")
        self.assertEqual(grouped(header=header, a=reads + own("int copy(long x) { return x; }"), b=inside), [["a"], ["b"]])

    def test_what_stands_inside_of_bodies_strings_and_comments_is_nobodys(self):
        self.assertEqual(grouped(a=own('void f() { struct Case { int x; }; say("int Case;"); }  // int Case;'), b=own("int Case;")), [["a", "b"]])

    def test_overloads_in_the_named_namespace_go_together(self):
        self.assertEqual(grouped(a="namespace weft {\nvoid describe(A& x) { x.tell(); }\n}\n", b="namespace weft {\nvoid describe(B& x) { x.tell(); }\n}\n"),
                         [["a", "b"]])

    def test_a_group_ends_where_it_is_large(self):
        sources = {f"s{i}": own(f"int value_{i};") for i in range(13)}
        self.assertEqual([len(group) for group in grouped(**sources)], [12, 1])
        self.assertEqual([len(group) for group in grouped(most=5, **sources)], [5, 5, 3])

    def test_a_name_of_both_may_be_another_in_one(self):
        one, other = own("int one() { return 1; }"), own("double one(int x) { return x; }")
        self.assertEqual(laid(rename=True, a=one, b=other), [{"a": set(), "b": {"one"}}])
        self.assertEqual(laid(rename=True, a=one, b=other, c=one), [{"a": set(), "b": {"one"}, "c": {"one"}}])

    def test_nor_need_a_name_of_a_header_keep_apart_who_does_not_read_it(self):
        header = "#pragma once\nnamespace weft {\nvoid copy(int from, int to);\n}\n"
        reads, copies = '#include "weft/base/header.h"\n', own("int copy(int x) { return x; }")
        self.assertEqual(laid(rename=True, header=header, a=reads, b=copies), [{"a": set(), "b": {"copy"}}])
        self.assertEqual(laid(rename=True, header=header, a=copies, b=reads), [{"a": {"copy"}, "b": set()}])

    def test_a_name_is_no_other_where_it_may_not_be_ones_own(self):
        one = own("int one;")
        for text in ("int f(X x) { return x.one; }", "int f(X* x) { return x->one; }", "int f() { return data::one; }", "Y f() { return {.one = 1}; }"):
            self.assertEqual(laid(rename=True, a=one, b=own("int one;\n" + text)), [{"a": set()}, {"b": set()}], text)
        self.assertEqual(laid(rename=True, a=one, b="#define two 2\n" + one), [{"a": set()}, {"b": set()}])
        reads = '#include "weft/base/header.h"\n'
        self.assertEqual(laid(rename=True, header="struct Has {\n  int one;\n};\n", a=one, b=reads + one), [{"a": set()}, {"b": set()}])
        self.assertEqual(laid(rename=True, a=own("bool operator<(A a, A b);"), b=own("bool operator<(B a, B b);")), [{"a": set()}, {"b": set()}])


if __name__ == "__main__":
    unittest.main()
