#include "weft/optim/fragments.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <set>

using namespace weft;

namespace {

/// Memory element -> element of the global tensor.
using Places = std::map<std::int64_t, std::int64_t>;

Places places_of(std::span<const Piece> pieces) {
  Places out;
  for (const Piece& piece : pieces) {
    const Shard& box = piece.where;
    const Strides in_box = contiguous_strides(box.local), in_whole = contiguous_strides(box.global);
    for (std::int64_t i = 0; i < box.local.elements(); ++i) {
      std::int64_t place = 0;
      for (int d = 0; d < box.local.rank(); ++d)
        place += (box.offset[d] + i / in_box[d] % box.local[d]) * in_whole[d];
      out[piece.at + i] = place;
    }
  }
  return out;
}

Piece piece(const Shape& whole, const Shape& offset, const Shape& local, std::int64_t at = 0) {
  return {{whole, offset, local}, at};
}

}  // namespace

TEST(Fragments, of_a_matrix_are_at_most_three_boxes) {
  const std::vector<Piece> rows{piece({6, 5}, {2, 0}, {4, 5})};
  const auto found = fragments(rows, 3, 14);
  EXPECT_EQ(found, (std::vector<Piece>{piece({6, 5}, {2, 3}, {1, 2}, 3), piece({6, 5}, {3, 0}, {2, 5}, 5),
                                       piece({6, 5}, {5, 0}, {1, 2}, 15)}));
}

TEST(Fragments, of_the_whole_are_the_pieces_themselves) {
  const std::vector<Piece> halves{piece({8, 3}, {1, 0}, {2, 3}), piece({8, 3}, {5, 0}, {2, 3}, 6)};
  EXPECT_EQ(fragments(halves, 0, 12), halves);
  EXPECT_EQ(fragments(halves, -40, 100), halves);
  EXPECT_TRUE(fragments(halves, 12, 50).empty());
}

TEST(Fragments, of_runs_side_by_side_hold_every_element_once_and_where_it_was) {
  EXPECT_TRUE(rc::check([] {
    const auto dim = [] { return *rc::gen::inRange<std::int64_t>(1, 6); };
    Shape local{dim(), dim(), dim()};
    const Piece first = piece({9, 9, 9}, {dim() - 1, dim() - 1, dim() - 1}, local);
    const Piece second = piece({9, 9, 9}, {dim() + 2, 0, 0}, {dim(), 1, 2}, first.where.local.elements() + 3);
    const std::vector<Piece> pieces{first, second};
    const Places wanted = places_of(pieces);
    Places found;
    std::size_t elements = 0;
    for (std::int64_t from = 0; from < 140;) {
      const std::int64_t count = *rc::gen::inRange<std::int64_t>(1, 40);
      const auto part = fragments(pieces, from, count);
      for (const auto& [at, place] : places_of(part)) {
        RC_ASSERT(at >= from && at < from + count);
        found[at] = place;
        ++elements;
      }
      from += count;
    }
    RC_ASSERT(found == wanted);
    RC_ASSERT(elements == wanted.size());
  }));
}
