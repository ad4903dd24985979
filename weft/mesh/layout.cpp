// Rank numbers are digits in a mixed base; groups are the numbers that differ in some digits only.
#include "weft/mesh/layout.h"

#include <map>

#include "weft/base/error.h"

namespace weft {

ParallelLayout::ParallelLayout(Degrees d, RankOrder order)
    : degree_{d.tp, d.cp, 1, d.dp, d.pp}, order_(order) {
  for (int n : degree_)
    if (n < 1)
      fail(Kind::usage, "layout: every degree must be at least 1, got tp ", d.tp, ", cp ", d.cp, ", dp ",
           d.dp, ", pp ", d.pp);
}

int ParallelLayout::world() const {
  int n = 1;
  for (int d : degree_) n *= d;
  return n;
}

int ParallelLayout::rank(const Coordinate& at) const {
  int rank = 0, stride = 1;
  for (Axis a : order_) {
    rank += at[std::size_t(a)] * stride;
    stride *= degree(a);
  }
  return rank;
}

Coordinate ParallelLayout::at(int rank) const {
  Coordinate at{};
  for (Axis a : order_) {
    at[std::size_t(a)] = rank % degree(a);
    rank /= degree(a);
  }
  return at;
}

ParallelLayout ParallelLayout::experts(int ep, int etp) const {
  const int within = world() / degree(Axis::pp);
  if (ep < 1 || etp < 1 || within % (ep * etp) != 0)
    fail(Kind::usage, "layout: ", within, " ranks of one pipeline stage cannot be cut into ep ", ep,
         " times etp ", etp);
  ParallelLayout view({.tp = etp, .dp = within / (ep * etp), .pp = degree(Axis::pp)}, order_);
  view.degree_[std::size_t(Axis::ep)] = ep;
  return view;
}

std::vector<std::vector<int>> ParallelLayout::groups(Axes along) const {
  std::map<int, std::vector<int>> by_first;  // a group is known by its first rank: the moving axes at zero
  for (int r = 0; r < world(); ++r) {
    Coordinate first = at(r);
    for (std::size_t a = 0; a < axes; ++a)
      if (along.holds(Axis(a))) first[a] = 0;
    by_first[rank(first)].push_back(r);
  }
  std::vector<std::vector<int>> groups;
  for (auto& [first, ranks] : by_first) groups.push_back(std::move(ranks));
  return groups;
}

}  // namespace weft
