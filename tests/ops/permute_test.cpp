// Rows by index and by id: what embeddings and experts do.
#include "weft/ops/permute.h"
#include "tests/ops/fixture.h"
#include "weft/ops/embedding.h"

namespace weft {
namespace {

using Permute = Ops;

TEST_F(Permute, chooses_the_greatest_in_descending_order) {
  const Tensor x = holding({2, 5}, {0.1, 0.5, 0.5, -1, 0.9, 2, 2, 2, 2, 2});
  const ops::TopK out = ops::top_k(x, 3);
  EXPECT_EQ(difference(numbers(out.values), std::vector<double>{0.9, 0.5, 0.5, 2, 2, 2}, f32_near), "");
  EXPECT_EQ(numbers(out.indices), (std::vector<double>{4, 1, 2, 0, 1, 2}));
}

TEST_F(Permute, gathers_rows_and_zeros_for_none) {
  const Tensor x = holding({3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(numbers(ops::gather_rows(x, integers({4}, {2, -1, 0, 2}))),
            (std::vector<double>{5, 6, 0, 0, 1, 2, 5, 6}));
}

TEST_F(Permute, adds_rows_where_they_came_from_times_their_weight) {
  const Tensor out = holding({2, 2}, {10, 20, 30, 40});
  const Tensor x = holding({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor index = integers({4}, {1, 0, -1, 1});
  ops::scatter_add_rows_into(out, x, index);
  EXPECT_EQ(numbers(out), (std::vector<double>{13, 24, 38, 50}));
  ops::scatter_add_rows_into(out, x, index, holding({4}, {2, 1, 1, -1}));
  EXPECT_EQ(numbers(out), (std::vector<double>{16, 28, 33, 46}));
}

TEST_F(Permute, has_a_gather_whose_derivative_is_the_scatter) {
  const Tensor x = random({4, 3});
  const Tensor index = integers({6}, {3, 0, 3, -1, 2, 3});
  const Tensor dy = random({6, 3});
  const Tensor dx = zeros({4, 3});
  ops::scatter_add_rows_into(dx, dy, index);
  EXPECT_EQ(
      difference(numbers(dx), slopes(x, [&] { return probed(dy, ops::gather_rows(x, index)); }), slope_near),
      "");
}

TEST_F(Permute, looks_words_up_in_a_table_and_adds_their_gradients) {
  const Tensor table = random({5, 3});
  const Tensor ids = integers({2, 3}, {4, 0, 4, 1, 4, 0});
  EXPECT_EQ(ops::gather(table, ids).shape(), (Shape{2, 3, 3}));
  const Tensor dy = random({2, 3, 3});
  const Tensor dtable = zeros({5, 3});
  ops::scatter_add_into(dtable, dy, ids);
  const auto f = [&] { return probed(dy, ops::gather(table, ids)); };
  EXPECT_EQ(difference(numbers(dtable), slopes(table, f), slope_near), "");
}

TEST_F(Permute, holds_a_part_of_a_table_and_leaves_the_rest_to_others) {
  const Tensor table = random({6, 2});
  const Tensor ids = integers({4}, {5, 0, 3, 2});
  const Tensor whole = ops::gather(table, ids);
  const std::vector<double> low = numbers(ops::gather(table.slice(0, 0, 3), ids, 0));
  const std::vector<double> high = numbers(ops::gather(table.slice(0, 3, 3), ids, 3));
  const std::vector<double> all = numbers(whole);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(low[i] + high[i], all[i]);
  const Tensor dtable = zeros({3, 2});
  ops::scatter_add_into(dtable, holding({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), ids, 3);
  EXPECT_EQ(numbers(dtable), (std::vector<double>{5, 6, 0, 0, 1, 2}));
}

TEST_F(Permute, says_what_does_not_fit) {
  const Tensor x = random({3, 2});
  EXPECT_EQ(refused([&] { (void)ops::top_k(x, 3); }), "top_k: the 3 greatest of 2 elements");
  EXPECT_EQ(refused([&] { (void)ops::gather_rows(x, integers({1}, {3})); }),
            "gather_rows: index 3 at 0, but there are 3 rows");
  EXPECT_EQ(refused([&] {
              ops::scatter_add_rows_into(zeros({2, 2}), x, integers({3}, {0, 1, 2}));
            }),
            "scatter_add_rows: index 2 at 2, but there are 2 rows");
  EXPECT_EQ(refused([&] {
              ops::scatter_add_rows_into(zeros({2, 3}), x, integers({3}, {0, 1, 1}));
            }),
            "scatter_add_rows: out [2, 3] has other rows than x [3, 2]");
  EXPECT_EQ(refused([&] {
              ops::scatter_add_rows_into(x, x, integers({2}, {0, 1}));
            }),
            "scatter_add_rows: index is [2], not [3]");
  EXPECT_EQ(refused([&] { (void)ops::gather(x, zeros({2}, Dtype::i64)); }), "gather: ids is i64, not i32");
  EXPECT_EQ(refused([&] { (void)ops::gather(x, integers({1}, {0}), -1); }),
            "gather: the table starts at row -1");
  EXPECT_EQ(refused([&] {
              ops::scatter_add_into(zeros({3, 2}, Dtype::bf16), x, integers({3}, {0, 1, 2}));
            }),
            "scatter_add: dtable is bf16, not f32");
  EXPECT_EQ(refused([&] {
              ops::scatter_add_into(zeros({3, 2}), x, integers({2}, {0, 1}));
            }),
            "scatter_add: rows is [3, 2], not [2, 2]");
}

}  // namespace
}  // namespace weft
