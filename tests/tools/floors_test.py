#!/usr/bin/env python3
"""floors.py sees an include that climbs, a room that is not in its table, a header away from home, and a circle."""
import unittest

from planted import said, tool

floors = tool("floors")


class Floors(unittest.TestCase):
    def test_lets_a_room_include_what_lies_below_it(self):
        files = {"weft/ops/a.cpp": '#include "weft/ops/a.h"\n#include "weft/tensor/tensor.h"\n#include <vector>\n'}
        self.assertEqual(said(floors.climbs, files), [])

    def test_finds_an_include_that_climbs(self):
        files = {"weft/tensor/a.h": '#pragma once\n  #  include "weft/nn/linear.h"\n', "weft/base/b.cpp": "#include <weft/ops/a.h>\n"}
        self.assertEqual(said(floors.climbs, files), ["weft/base/b.cpp:1: base may not include ops",
                                                      "weft/tensor/a.h:2: tensor may not include nn"])

    def test_finds_a_room_nobody_knows(self):
        self.assertEqual(said(floors.climbs, {"weft/attic/a.h": ""}),
                         ["weft/attic/a.h:1: attic is no room of the house: give it its line in tools/floors.py"])

    def test_keeps_the_headers_of_c_libraries_at_home(self):
        files = {"weft/comm/mpi.cpp": "#include <mpi.h>\n", "weft/comm/mpi.h": "#include <mpi.h>\n",
                 "weft/ops/a.cpp": "#include <dnnl.hpp>\n"}
        self.assertEqual(said(floors.climbs, files),
                         ["weft/comm/mpi.h:1: mpi.h belongs in the .cpp files of weft/comm/",
                          "weft/ops/a.cpp:1: dnnl.hpp belongs in the .cpp files of weft/backend/cpu/onednn/"])

    def test_finds_a_circle_in_its_own_table(self):
        self.assertIsNone(floors.circle())
        floors.MAY_SEE["base"] = ["tensor"]
        try:
            self.assertEqual(floors.circle(), ["base", "tensor", "base"])
        finally:
            floors.MAY_SEE["base"] = []


if __name__ == "__main__":
    unittest.main()
