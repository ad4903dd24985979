// Rank numbers are digits in a mixed base; groups are the numbers that differ in some digits only.
#include "weft/mesh/layout.h"

#include <map>

#include "weft/base/error.h"

namespace weft {

ParallelLayout::ParallelLayout(Degrees d, RankOrder order) : order_(order) {
  degree_.fill(1);
  for (const auto& [axis, degree] :
       {std::pair(Axis::tp, d.tp), {Axis::cp, d.cp}, {Axis::dp, d.dp}, {Axis::pp, d.pp}}) {
    if (degree < 1)
      fail(Kind::usage, "layout: every degree must be at least 1, got tp ", d.tp, ", cp ", d.cp, ", dp ",
           d.dp, ", pp ", d.pp);
    degree_[std::size_t(axis)] = degree;
  }
  experts_ = d.ep != 1 || d.etp != 0;
  if (experts_) cut_for_experts(d);
}

void ParallelLayout::cut_for_experts(const Degrees& d) {
  const int etp = d.etp == 0 ? d.tp : d.etp, cut = d.ep * etp;
  if (d.ep < 1 || etp < 1)
    fail(Kind::usage, "layout: experts' degrees must be at least 1, got ep ", d.ep, ", etp ", etp);
  const int ranks = d.tp * d.cp * d.dp;
  if (ranks % cut != 0)
    fail(Kind::usage, "layout: the ", ranks, " ranks of one pipeline stage (tp ", d.tp, ", cp ", d.cp,
         ", dp ", d.dp, ") cannot be cut into ep ", d.ep, " times etp ", etp,
         ": take degrees whose product divides ", ranks);
  // Both views must have the same pipelines.
  if (order_.back() != Axis::pp && d.pp > 1 && ranks / cut != d.dp)
    fail(Kind::usage, "layout: where stages are not the slowest digit of a rank's number, ep ", d.ep,
         " times etp ", etp, " must be tp times cp, ", d.tp * d.cp,
         ": take such degrees, or the usual order of ranks");
  degree_[std::size_t(Axis::etp)] = etp;
  degree_[std::size_t(Axis::ep)] = d.ep;
  degree_[std::size_t(Axis::edp)] = ranks / cut;
}

int ParallelLayout::world() const {
  return degree(Axis::tp) * degree(Axis::cp) * degree(Axis::dp) * degree(Axis::pp);
}

/// The axis that a view has in the order's place; of degree 1 where it has none.
Axis ParallelLayout::digit(View view, Axis ordered) const {
  if (view == View::dense || ordered == Axis::pp) return ordered;
  if (ordered == Axis::tp) return Axis::etp;
  return ordered == Axis::dp ? Axis::edp : ordered;
}

int ParallelLayout::rank_in(View view, const Coordinate& at) const {
  const Axis none = view == View::dense ? Axis::ep : Axis::cp;
  int rank = 0, stride = 1;
  for (const Axis ordered : order_) {
    if (ordered == none) continue;
    const Axis a = digit(view, ordered);
    rank += at[std::size_t(a)] * stride;
    stride *= degree(a);
  }
  return rank;
}

Coordinate ParallelLayout::at(int rank) const {
  Coordinate at{};
  for (const View view : {View::dense, View::experts}) {
    if (!has(view)) continue;
    const Axis none = view == View::dense ? Axis::ep : Axis::cp;
    int left = rank;
    for (const Axis ordered : order_) {
      if (ordered == none) continue;
      const Axis a = digit(view, ordered);
      at[std::size_t(a)] = left % degree(a);
      left /= degree(a);
    }
  }
  return at;
}

View ParallelLayout::view_of(Axes along) const {
  if ((along - axes_of(View::dense)).empty()) return View::dense;
  if (!(along - axes_of(View::experts)).empty())
    fail(Kind::internal, "layout: ", names(along), " cut the same ranks twice; ask for axes of one view");
  if (!experts_) fail(Kind::internal, "layout: ", names(along), ": nothing was said of experts' degrees");
  return View::experts;
}

int ParallelLayout::first_of_group(int rank, Axes along) const {
  Coordinate first = at(rank);
  for (int a = 0; a < axes; ++a)
    if (along.holds(Axis(a))) first[std::size_t(a)] = 0;
  return rank_in(view_of(along), first);
}

std::vector<std::vector<int>> ParallelLayout::groups(Axes along) const {
  std::map<int, std::vector<int>> by_first;  // a group is known by its first rank: the moving axes at zero
  for (int r = 0; r < world(); ++r) by_first[first_of_group(r, along)].push_back(r);
  std::vector<std::vector<int>> groups;
  for (auto& [first, ranks] : by_first) groups.push_back(std::move(ranks));
  return groups;
}

int ParallelLayout::place(int rank, Axes along) const {
  const View view = view_of(along);
  const Coordinate here = at(rank);
  int place = 0, stride = 1;
  for (const Axis ordered : order_) {
    const Axis a = digit(view, ordered);
    if (!along.holds(a)) continue;
    place += here[std::size_t(a)] * stride;
    stride *= degree(a);
  }
  return place;
}

}  // namespace weft
