// All counts are told to all, so every rank knows the order in which rows arrive, and nothing is asked again.
#include "weft/nn/expert_exchange.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/number.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/permute.h"
#include "weft/tensor/host.h"

namespace weft {
namespace {

/// What the host reads of a device, in the device's memory where that can be.
template <class T>
class HostView {
 public:
  explicit HostView(const Tensor& tensor) : held_(tensor) {
    if (!tensor.device().holds_numbers()) return;
    if (tensor.device().host_visible())
      seen_ = tensor.as<T>();
    else
      seen_ = copy_ = to_host<T>(tensor);
  }
  bool none() const { return seen_.empty(); }
  T operator[](std::int64_t i) const { return seen_[std::size_t(i)]; }

 private:
  Tensor held_;
  std::vector<T> copy_;
  std::span<const T> seen_;
};

/// Numbers that the host makes up one by one.
class Written {
 public:
  Written(Device& device, std::int64_t count) : to_(empty(device, {count}, Dtype::i32)) {
    if (!device.holds_numbers()) return;
    if (device.host_visible())
      seen_ = to_.as<std::int32_t>();
    else
      seen_ = own_ = std::vector<std::int32_t>(std::size_t(count));
  }
  std::span<std::int32_t> numbers() { return seen_; }
  Tensor done() {
    if (!own_.empty()) copy_to<std::int32_t>(to_, own_);
    return to_;
  }

 private:
  Tensor to_;
  std::vector<std::int32_t> own_;
  std::span<std::int32_t> seen_;
};

}  // namespace

/// [rank][expert], of the whole circle.
class Exchange::Counts {
 public:
  Counts(const ExpertRanks& ranks, const Tensor& mine, std::int64_t rows)
      : ranks_(ranks), experts_(mine.dim(0) - 1), rows_(rows), all_(std::in_place, told(ranks, mine)) {}
  /// As many of every rank for every expert.
  Counts(const ExpertRanks& ranks, std::int64_t experts, std::int64_t room)
      : ranks_(ranks), experts_(experts), rows_(room), all_() {}
  std::int64_t experts() const { return experts_; }
  std::int64_t of(int rank, std::int64_t expert) const { return of(rank, expert, 1); }
  std::int64_t of(int rank, std::int64_t from, std::int64_t count) const {
    return before(rank, from + count) - before(rank, from);
  }

 private:
  /// A rank's rows of all experts before this one.
  std::int64_t before(int rank, std::int64_t expert) const {
    if (!all_) return rows_ * expert;
    return all_->none() ? made_up(expert) : (*all_)[rank * (experts_ + 1) + expert];
  }
  /// Every rank's rows, shared out as the loads say.
  std::int64_t made_up(std::int64_t expert) const {
    const std::vector<std::int64_t>& loads = ranks_.loads;
    if (loads.empty()) return rows_ * expert / experts_;
    const auto here = loads.begin() + expert;
    const std::int64_t all = std::accumulate(here, loads.end(), std::int64_t{0});
    const std::int64_t before = std::accumulate(loads.begin(), here, std::int64_t{0});
    return rows_ * before / (before + all);
  }
  static Tensor told(const ExpertRanks& ranks, const Tensor& mine) {
    if (!ranks.exchange()) return mine;
    Tensor all = empty(mine.device(), {ranks.ranks(), mine.dim(0)}, Dtype::i64);
    ranks.circle->all_gather(all, mine.view({1, mine.dim(0)})).wait();
    return all.view({all.elements()});
  }
  const ExpertRanks& ranks_;
  std::int64_t experts_, rows_;
  std::optional<HostView<std::int64_t>> all_;
};

Exchange::Exchange(const ExpertRanks& ranks, const Tensor& offsets, std::int64_t planned) : ranks_(ranks) {
  const Counts all(ranks, offsets, planned);
  take(all);
  if (!ranks.exchange()) return;
  Device& device = offsets.device();
  Written order(device, kept_);
  if (device.holds_numbers()) order_by_rank(all, order.numbers());
  if (!ranks.by_place()) home_ = homes(device, order.numbers());
  order_ = order.done();
}

Exchange Exchange::filled(const ExpertRanks& ranks, std::int64_t experts, std::int64_t room) {
  Exchange out;
  out.ranks_ = ranks;
  out.room_ = room;
  out.take(Counts(ranks, experts, room));
  return out;
}

Exchange Exchange::unseen(const Tensor& offsets, std::int64_t rows) {
  Exchange out;
  out.sent_ = out.kept_ = rows;
  out.groups_.count = int(offsets.dim(0) - 1);
  out.groups_.unseen = offsets;
  return out;
}

void Exchange::take(const Counts& counts) {
  if (ranks_.ranks() > most_expert_ranks)
    fail(Kind::usage, "experts: ", ranks_.ranks(), " ranks exchange tokens, there is room for ",
         most_expert_ranks);
  count(counts);
  group(counts);
}

void Exchange::count(const Counts& counts) {
  const std::int64_t here = exact(counts.experts(), std::int64_t{ranks_.ep});
  const int me = ranks_.rank();
  for (int p = 0; p < ranks_.ep; ++p)
    block_[std::size_t(p) + 1] = block_[std::size_t(p)] + counts.of(me, p * here, here);
  sent_ = block_[std::size_t(ranks_.ep)];
  for (int r = 0; r < ranks_.ranks(); ++r) {
    const auto i = std::size_t(r), p = std::size_t(ranks_.ep_of(r));
    const bool together = ranks_.copy_of(r) == ranks_.copy_of(me);
    to_[i] = block_[p + 1] - block_[p];
    from_[i] = counts.of(r, ranks_.ep_of(me) * here, here);
    received_[i] = together ? to_[i] : 0;
    returned_[i] = together ? from_[i] : 0;
    kept_ += from_[i];
  }
}

void Exchange::group(const Counts& counts) {
  const int sequences = ranks_.sequences(), each = ranks_.ranks() / sequences;
  groups_.count = int(counts.experts() / ranks_.ep);
  sequences_.count = groups_.count * sequences;
  if (sequences_.count > most_experts_here)
    fail(Kind::usage, "experts: ", groups_.count, " experts for ", sequences,
         " sequences on one rank, there is room for ", most_experts_here);
  const std::int64_t first = std::int64_t{ranks_.ep_of(ranks_.rank())} * groups_.count;
  std::size_t at = 0;
  for (int e = 0; e < groups_.count; ++e) {
    for (int s = 0; s < sequences; ++s, ++at) {
      sequences_.at[at + 1] = sequences_.at[at];
      for (int r = s * each; r < (s + 1) * each; ++r) sequences_.at[at + 1] += counts.of(r, first + e);
    }
    groups_.at[std::size_t(e) + 1] = sequences_.at[at];
  }
}

// Rows arrive by rank, then by expert. Experts want them by expert, then by rank; in exact mode by sequence,
// then in the order of its tokens, whoever held them.
void Exchange::arrange(const Tensor& places) {
  if (!ranks_.by_place()) return;
  Device& device = places.device();
  Written order(device, kept_);
  const Tensor arrived = arrived_places(places);
  if (device.holds_numbers()) {
    const HostView<std::int32_t> by_rank(order_);
    const std::span<std::int32_t> numbers = order.numbers();
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = by_rank[std::int64_t(i)];
    order_by_place(arrived, numbers);
  }
  home_ = homes(device, order.numbers());
  order_ = order.done();
}

/// Which rows of an order are those that came, so that they can go back.
Tensor Exchange::homes(Device& device, std::span<const std::int32_t> order) const {
  Written home(device, std::accumulate(returned_.begin(), returned_.end(), std::int64_t{0}));
  if (device.holds_numbers()) find_homes(order, home.numbers());
  return home.done();
}

Tensor Exchange::arrived_places(const Tensor& places) const {
  const Tensor came = empty(places.device(), {kept_, 1}, Dtype::i32);
  const Tensor sent = copies_for_all(places.view({places.dim(0), 1}));
  ranks_.circle->all_to_all(came, sent, all(to_), all(from_)).wait();
  return came.view({kept_});
}

void Exchange::order_by_rank(const Counts& counts, std::span<std::int32_t> order) const {
  ByRank next{};  // the row of each rank that was not placed yet
  for (int r = 1; r < ranks_.ranks(); ++r)
    next[std::size_t(r)] = next[std::size_t(r) - 1] + from_[std::size_t(r) - 1];
  const std::int64_t first = std::int64_t{ranks_.ep_of(ranks_.rank())} * groups_.count;
  std::size_t at = 0;
  for (int e = 0; e < groups_.count; ++e)
    for (int r = 0; r < ranks_.ranks(); ++r)
      for (std::int64_t i = counts.of(r, first + e); i > 0; --i)
        order[at++] = std::int32_t(next[std::size_t(r)]++);
}

void Exchange::order_by_place(const Tensor& arrived, std::span<std::int32_t> order) const {
  const HostView<std::int32_t> place(arrived);
  for (int g = 0; g < sequences_.count; ++g) {
    const auto [from, count] = sequences_.of(g);
    std::ranges::sort(order.subspan(std::size_t(from), std::size_t(count)),
                      [&](std::int32_t a, std::int32_t b) { return place[a] < place[b]; });
  }
}

/// Of ranks that get their rows back from here; others get theirs from their own copy of these experts.
void Exchange::find_homes(std::span<const std::int32_t> order, std::span<std::int32_t> home) const {
  std::int64_t first = 0;
  for (int r = 0; r < ranks_.ranks() && returned_[std::size_t(r)] == 0; ++r) first += from_[std::size_t(r)];
  for (std::size_t i = 0; i < order.size(); ++i)
    if (const std::int64_t at = order[i] - first; at >= 0 && at < std::ssize(home))
      home[std::size_t(at)] = std::int32_t(i);
}

/// The rows for every rank, one rank's behind the other's.
Tensor Exchange::copies_for_all(const Tensor& rows) const {
  if (ranks_.ranks() == ranks_.ep) return rows;
  const std::int64_t each = sent_ * ranks_.etp * ranks_.copies();
  const Tensor out = empty(rows.device(), {each, rows.dim(1)}, rows.dtype());
  std::int64_t at = 0;
  for (int r = 0; r < ranks_.ranks(); ++r) {
    const std::int64_t count = to_[std::size_t(r)];
    ops::copy_into(out.slice(0, at, count), rows.slice(0, block_[std::size_t(ranks_.ep_of(r))], count));
    at += count;
  }
  return out;
}

Travelling Exchange::leave(const Tensor& rows) const {
  if (!ranks_.exchange()) return {rows, {}};
  const Tensor came = empty(rows.device(), {kept_, rows.dim(1)}, rows.dtype());
  return {came, ranks_.circle->all_to_all(came, copies_for_all(rows), all(to_), all(from_))};
}

Tensor Exchange::there(Travelling rows) const {
  rows.pending.wait();
  if (room_ > 0) return turned(rows.came, ranks_.ranks());
  return ranks_.exchange() ? ops::gather_rows(rows.came, order_) : rows.came;
}

/// Rooms of rows, [blocks][..], the other way round: [..][blocks]. Those of ranks become those of experts.
Tensor Exchange::turned(const Tensor& rows, std::int64_t blocks) const {
  const Tensor rooms = rows.view({blocks, rows.dim(0) / (room_ * blocks), room_ * rows.dim(1)});
  return ops::contiguous(rooms.permute({1, 0, 2})).view(rows.shape());
}

/// What goes back, as the ranks want it.
Tensor Exchange::by_rank(const Tensor& rows) const {
  return room_ > 0 ? turned(rows, groups_.count) : ops::gather_rows(rows, home_);
}

namespace {

/// terms [count, n, c], n of each sum -> their sums, as trees, in the first of each
Tensor added(const Tensor& terms, std::int64_t from, std::int64_t end) {
  const Tensor sum = terms.at(1, from);
  if (end - from == 1) return sum;
  const std::int64_t middle = from + (end - from + 1) / 2;
  ops::add_into(sum, added(terms, from, middle), added(terms, middle, end));
  return sum;
}

Tensor parts_added(const Tensor& rows, int parts) {
  if (parts == 1) return rows;
  const std::int64_t width = exact(rows.dim(1), std::int64_t{parts});
  const Tensor sum = rows.slice(1, 0, width);
  for (int i = 1; i < parts; ++i) ops::add_into(sum, sum, rows.slice(1, i * width, width));
  return sum;
}

}  // namespace

Travelling Exchange::leave_back(const Tensor& rows, Dtype dtype, int parts) const {
  if (!ranks_.exchange()) return {rows, {}, dtype, parts};
  const Tensor came = empty(rows.device(), {sent_ * ranks_.etp, rows.dim(1)}, rows.dtype());
  return {came, ranks_.circle->all_to_all(came, by_rank(rows), all(returned_), all(received_)), dtype, parts};
}

Tensor Exchange::back(Travelling rows) const {
  rows.pending.wait();
  const auto& [came, pending, dtype, parts] = rows;
  if (ranks_.etp == 1) return ops::cast(ops::contiguous(parts_added(came, parts)), dtype);
  const Tensor sums = empty(came.device(), {sent_, came.dim(1) / parts}, dtype);
  for (int p = 0; p < ranks_.ep; ++p) {
    const std::int64_t from = block_[std::size_t(p)], count = block_[std::size_t(p) + 1] - from;
    if (count == 0) continue;
    const Tensor terms = came.slice(0, from * ranks_.etp, count * ranks_.etp)
                             .view({ranks_.etp, count, came.dim(1)})
                             .permute({1, 0, 2});
    ops::copy_into(sums.slice(0, from, count), parts_added(added(terms, 0, ranks_.etp), parts));
  }
  return sums;
}

}  // namespace weft
