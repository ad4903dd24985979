#!/usr/bin/env python3
"""longest.py sees long files and long functions, and is not misled by what only looks like one."""
import unittest

from planted import ROOT, said, tool

longest = tool("longest")


def function(head, lines):
    return head + " {\n" + "  work();\n" * (lines - 2) + "}\n"


def names(text):
    return [name for name, *_ in longest.functions(text)]


class Longest(unittest.TestCase):
    def test_lets_short_files_and_functions_pass(self):
        self.assertEqual(said(longest.check, {"weft/a.cpp": function("int f(int x)", 60) + "\n" * 340}), [])

    def test_finds_a_file_that_is_too_long(self):
        self.assertEqual(said(longest.check, {"tests/a.cpp": "// a\n" * 401}),
                         ["tests/a.cpp:401: the file has 401 lines, and 400 are allowed"])

    def test_finds_a_function_that_is_too_long(self):
        for head in ["int f(int x)", "Thing::f()", "template <class T>\nauto f(T x) -> T", "TEST(Subject, f)",
                     "void A::f() const noexcept", "A::f() : a_{1}, b_(2)", "int f(std::vector<int> x = {1, 2})",
                     "bool operator()(int f) const", "[[nodiscard]] static int f() noexcept(true)"]:
            text = "namespace weft {\n\n" + function(head, 61) + "}\n"
            complaints = said(longest.check, {"weft/a.cpp": text})
            self.assertEqual(len(complaints), 1, head)
            lines = 61 + head.count("\n")
            self.assertRegex(complaints[0], rf"^weft/a\.cpp:3: \S+ has {lines} lines, and 60 are allowed$", head)

    def test_looks_into_classes_but_does_not_take_them_for_functions(self):
        body = "  int x = 1;\n" * 80
        self.assertEqual(said(longest.check, {"weft/a.h": "class A final : public B<int> {\n" + body + "};\n"}), [])
        self.assertEqual(names("struct A {\n  A() = default;\n  int f() { return 1; }\n  int x_{3};\n};"), ["f"])

    def test_leaves_tables_alone(self):
        rows = '  {"a", 1},\n' * 100
        self.assertEqual(said(longest.check, {"weft/a.cpp": "constexpr Row rows[] = {\n" + rows + "};\n"}), [])
        self.assertEqual(said(longest.check, {"weft/b.cpp": "const std::array<Row, 2> rows{{\n" + rows + "}};\n"}), [])

    def test_is_not_misled_by_comments_strings_and_characters(self):
        text = 'int f() {\n  // }\n  auto a = "}";\n  char c = \'}\';\n  auto r = R"x(}})x";\n  int n = 1\'000;\n  /* } */\n}\nint g() {}\n'
        self.assertEqual([*longest.functions(text)], [("f", 1, 8, 0), ("g", 9, 9, 0)])

    def test_finds_a_function_with_too_many_parameters(self):
        for head in ["void f(int a, int b, int c, int d, int e, int g)", "A::A(int a, int b, int c, int d, int e, int g) : a_{a}",
                     "template <class T, class U>\nauto f(std::map<T, U> a, T b, T c, T d, T e, U g = {1, 2}) -> int",
                     "bool operator()(int a, int b, int c, int d, int e, int g) const",
                     "[[gnu::aligned(8)]] std::function<int(int, int)> f(int a, int b, int c, int d, int e, int g)"]:
            complaints = said(longest.check, {"weft/a.cpp": head + " {\n}\n"})
            self.assertEqual(len(complaints), 1, head)
            self.assertRegex(complaints[0], r"^weft/a\.cpp:1: \S+ takes 6 parameters, and 5 are allowed: name them in a struct$")

    def test_counts_parameters_not_their_commas(self):
        for head in ["void f(std::map<int, std::pair<int, int>> a, std::array<int, 2> b = {1, 2}, int c = g(1, 2, 3, 4))",
                     "template <class A, class B, class C, class D, class E, class F>\nvoid f(A a)", "int f(void)", "int f()",
                     "TEST(Subject, f)", "A::A(int a) : A(a, 1, 2, 3, 4, 5, 6)", "void operator<(int a, int b)"]:
            self.assertEqual(said(longest.check, {"weft/a.cpp": head + " {\n}\n"}), [], head)

    def test_excuses_only_what_is_listed_with_a_reason(self):
        for pattern, (lines, reason) in {**longest.ALLOWED_FILES, **longest.ALLOWED_FUNCTIONS}.items():
            self.assertGreater(len(reason), 10, pattern)
            self.assertGreater(lines, 60, pattern)
            self.assertTrue(any(ROOT.glob(pattern.split(":")[0])), f"{pattern} excuses nothing")
        for pattern, (parameters, reason) in longest.ALLOWED_PARAMETERS.items():
            self.assertGreater(len(reason), 10, pattern)
            self.assertGreater(parameters, 5, pattern)
            self.assertTrue(any(ROOT.glob(pattern.split(":")[0])), f"{pattern} excuses nothing")
        table = {"weft/cli/dialect/a.cpp": function("void f()", 100)}
        self.assertEqual(said(longest.check, table), [])
        self.assertEqual(len(said(longest.check, {"weft/cli/a.cpp": function("void f()", 100)})), 1)


if __name__ == "__main__":
    unittest.main()
