#!/usr/bin/env python3
"""includes.py sees a type that a source names and no header of its own declares."""
import unittest

from planted import said, tool

includes = tool("includes")
TENSOR = {"weft/tensor/tensor.h": "#pragma once\nclass Tensor {\n  struct Part {};\n};\n",
          "weft/tensor/list.h": '#pragma once\n#include "weft/tensor/tensor.h"\nusing List = int;\n'}


class Includes(unittest.TestCase):
    def of(self, text, name="weft/ops/a.cpp"):
        return said(includes.unseen, {**TENSOR, name: text})

    def test_finds_a_type_that_lives_on_a_neighbour(self):
        self.assertEqual(self.of("// Tensor\nvoid f(const Tensor& t);\nTensor g();\n"),
                         ["weft/ops/a.cpp:2: names Tensor and does not include what declares it, as weft/tensor/tensor.h does"])

    def test_takes_what_is_included_by_a_header(self):
        self.assertEqual(self.of('#include "weft/tensor/list.h"\nvoid f(const Tensor&, List);\n'), [])

    def test_takes_what_is_declared_here(self):
        self.assertEqual(self.of("class Tensor;\ntemplate <typename List> void f(Tensor&, List);\n"), [])

    def test_leaves_members_strings_and_other_rooms_alone(self):
        self.assertEqual(self.of('using Mine = other::Kind;\nauto a = b.List; auto c = "Tensor"; Part p;\n'), [])
        self.assertEqual(self.of("Tensor t;\n", "weft/base/a.cpp"), [])


if __name__ == "__main__":
    unittest.main()
