// Rows of a table by id, whole and cut, and their gradient with repeated ids.
#include "tests/backend/conformance.h"

namespace weft::conformance {
namespace {

TEST_P(Conformance, gathers_rows_of_a_table) {
  for (const Dtype dtype : floats)
    for (const std::int64_t first : {0, 10})
      same_however_it_lies([&](Desk& desk) {
        const Tensor table = desk.normal({20, 37}, dtype);
        const Tensor out = desk.blank({50, 37}, dtype);
        desk.lay(Lay::contiguous);
        desk.kernels().gather(out, table, desk.integers({50}, Dtype::i32, 0, 40), first);
        desk.result("out", out, exactly);
      });
}

TEST_P(Conformance, gathers_into_another_type) {
  same([&](Desk& desk) {
    const Tensor out = desk.blank({9, 24}, Dtype::bf16);
    desk.kernels().gather(out, desk.normal({20, 24}), desk.integers({9}, Dtype::i32, 0, 20), 0);
    desk.result("out", out, exactly);
  });
}

TEST_P(Conformance, adds_gradients_to_the_rows_they_came_from) {
  for (const Dtype dtype : floats)
    for (const std::int64_t rows : {4, 20, 300})
      for (const std::int64_t first : {0, 3})
        same_however_it_lies([&](Desk& desk) {
          const Tensor dtable = desk.normal({rows, 37});
          const Tensor dout = desk.normal({200, 37}, dtype);
          desk.lay(Lay::contiguous);
          desk.kernels().scatter_add(dtable, dout, desk.integers({200}, Dtype::i32, 0, rows), first);
          desk.result("dtable", dtable, close(Dtype::f32, 200 / rows + 4));
        });
  same([](Desk& desk) {  // more of them than a GPU's block has threads
    const Tensor dtable = desk.normal({40, 8}), dout = desk.normal({600, 8});
    desk.kernels().scatter_add(dtable, dout, desk.integers({600}, Dtype::i32, 0, 40), 0);
    desk.result("dtable", dtable, close(Dtype::f32, 30));
  });
}

}  // namespace
}  // namespace weft::conformance
