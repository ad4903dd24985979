#include "weft/comm/direct.h"

#include <algorithm>

#include "weft/comm/checks.h"
#include "weft/comm/solo.h"

namespace weft {
namespace {

/// Where it lies on its GPU: an address that lines are told and the host never reads.
std::byte* place(const Tensor& x) { return x.storage()->data() + x.offset() * size_of(x.dtype()); }

std::int64_t row_bytes(const Tensor& x) { return x.elements() == 0 ? 0 : x.bytes() / x.dim(0); }

/// The end of what `line` was asked for; holds what that reads and writes until then.
Pending ending(DeviceLine& line, const Tensor& out, const Tensor& in) {
  return Pending([&line, mark = line.mark(), out = out, in = in] { line.hold_device(mark); });
}

}  // namespace

std::vector<std::string> DirectCommunicator::names(const char* what, const std::string& mine) {
  const std::string word = text(what, '\n');
  std::vector<std::string> all = tell_all(word + mine);
  for (int rank = 0; rank < size(); ++rank) {
    std::string& told = all[std::size_t(rank)];
    if (!told.starts_with(word))
      fail(Kind::internal, "rank ", this->rank(), " opens a line for ", what, ", and rank ", rank,
           " one for ", told.substr(0, told.find('\n')));
    told.erase(0, word.size());
  }
  return all;
}

DeviceLine& DirectCommunicator::line() {
  if (!line_)
    line_ = lines_.open(names("all", rank() == 0 ? lines_.fresh_name() : "").front(),
                        {.rank = rank(), .size = size()});
  line_->follow_device();
  return *line_;
}

// Each rank names what goes from it to the next one and to the one before. All open theirs in one order, so
// that nobody waits in a circle: who stands first in it waits for nobody who waits.
void DirectCommunicator::open_ways() {
  const int n = size(), neighbours = n > 2 ? 2 : 1, each = neighbours * lanes;
  std::string mine;
  for (int i = 0; i < each; ++i) mine += lines_.fresh_name();
  const std::vector<std::string> all = names("letters", mine);
  ways_.emplace();
  for (int from = 0; from < n; ++from)
    for (int i = 0; i < each; ++i) {
      const int to = (from + (i / lanes == 0 ? 1 : n - 1)) % n;
      if (rank() != from && rank() != to) continue;
      const std::string& named = all[std::size_t(from)];
      const std::size_t length = named.size() / std::size_t(each);
      ways_->push_back({from, to, i % lanes,
                        lines_.open(named.substr(std::size_t(i) * length, length),
                                    {.rank = rank() == from ? 0 : 1, .size = 2})});
    }
}

DeviceLine& DirectCommunicator::way(const char* word, const Ends& ends) {
  if (!ways_) open_ways();
  const auto found = std::ranges::find_if(*ways_, [&](const Way& one) {
    return one.from == ends.from && one.to == ends.to && one.lane == ends.tag % lanes;
  });
  if (found == ways_->end())
    fail(Kind::internal, word, ": rank ", ends.from, " to rank ", ends.to, " of ", size(),
         ": by NCCL only neighbours in a circle send each other letters");
  found->line->follow_device();
  return *found->line;
}

bool DirectCommunicator::exchanges(Dtype dtype, Reduce how, bool trees) {
  const bool ordered = how == Reduce::sum && (dtype == Dtype::f32 || dtype == Dtype::f64);
  return is_half(dtype) || (trees && ordered);
}

bool DirectCommunicator::by_parts(Dtype dtype, Reduce how) const {
  return !lines_.reduce(dtype) || exchanges(dtype, how, adds_as_trees());
}

Pending DirectCommunicator::all_reduce(const Tensor& x, Reduce how) {
  if (is_the_hosts(x)) return inner().all_reduce(x, how);
  require_contiguous("all_reduce", x);
  if (x.elements() == 0) return {};
  if (by_parts(x.dtype(), how)) return all_reduce_by_parts(x, how);
  DeviceLine& line = this->line();
  line.all_reduce({place(x), place(x), x.elements(), x.dtype(), how == Reduce::max});
  return ending(line, x, {});
}

// As much travels as in a ring: everybody's part to whom adds it, and the sums back. The line follows the
// device when that has lent the parts their memory.
Pending DirectCommunicator::all_reduce_by_parts(const Tensor& x, Reduce how) {
  const Shares shares{x.elements(), size()};
  const std::int64_t width = size_of(x.dtype()), mine = shares.count(rank());
  const Tensor parts = empty(device_, {size(), mine}, x.dtype(), Use::communication);
  std::byte* const own = place(x) + shares.first(rank()) * width;
  DeviceLine& line = this->line();
  out_.clear(), in_.clear();
  for (int r = 0; r < size(); ++r) {
    out_.push_back({place(x) + shares.first(r) * width, shares.count(r) * width, r});
    in_.push_back({place(parts) + r * mine * width, mine * width, r});
  }
  line.exchange(out_, in_);
  line.add_parts({place(parts), own, mine, x.dtype(), how == Reduce::max}, size());
  for (int r = 0; r < size(); ++r) {
    const bool me = r == rank();
    in_[std::size_t(r)] = {out_[std::size_t(r)].at, me ? 0 : shares.count(r) * width, r};
    out_[std::size_t(r)] = {own, me ? 0 : mine * width, r};
  }
  line.exchange(out_, in_);
  return ending(line, x, parts);
}

Pending DirectCommunicator::all_gather(const Tensor& full, const Tensor& shard) {
  if (is_the_hosts(full)) return inner().all_gather(full, shard);
  require_parts("all_gather", full, shard, size());
  if (full.elements() == 0) return {};
  DeviceLine& line = this->line();
  line.all_gather(place(full), place(shard), shard.bytes());
  return ending(line, full, shard);
}

Pending DirectCommunicator::reduce_scatter(const Tensor& shard, const Tensor& full) {
  if (is_the_hosts(full)) return inner().reduce_scatter(shard, full);
  require_parts("reduce_scatter", full, shard, size());
  if (full.elements() == 0) return {};
  if (by_parts(full.dtype(), Reduce::sum)) return reduce_scatter_by_parts(shard, full);
  DeviceLine& line = this->line();
  line.reduce_scatter({place(full), place(shard), shard.elements(), full.dtype()});
  return ending(line, shard, full);
}

Pending DirectCommunicator::reduce_scatter_by_parts(const Tensor& shard, const Tensor& full) {
  const std::int64_t count = shard.elements();
  const Tensor parts = empty(device_, {size(), count}, full.dtype(), Use::communication);
  out_.clear(), in_.clear();
  for (int r = 0; r < size(); ++r) {
    out_.push_back({place(full) + r * shard.bytes(), shard.bytes(), r});
    in_.push_back({place(parts) + r * shard.bytes(), shard.bytes(), r});
  }
  DeviceLine& line = this->line();
  line.exchange(out_, in_);
  line.add_parts({place(parts), place(shard), count, full.dtype()}, size());
  return Pending(
      [&line, mark = line.mark(), shard = shard, full = full, parts = parts] { line.hold_device(mark); });
}

Pending DirectCommunicator::all_to_all(const Tensor& out, const Tensor& in,
                                       std::span<const std::int64_t> in_rows,
                                       std::span<const std::int64_t> out_rows) {
  if (is_the_hosts(out)) return inner().all_to_all(out, in, in_rows, out_rows);
  require_contiguous("all_to_all", out);
  require_contiguous("all_to_all", in);
  DeviceLine& line = this->line();
  const std::int64_t row = std::max(row_bytes(in), row_bytes(out));
  out_.clear(), in_.clear();
  std::byte *from = place(in), *to = place(out);
  for (int r = 0; r < size(); ++r) {
    out_.push_back({from, in_rows[std::size_t(r)] * row, r});
    in_.push_back({to, out_rows[std::size_t(r)] * row, r});
    from += out_.back().bytes;
    to += in_.back().bytes;
  }
  line.exchange(out_, in_);
  return ending(line, out, in);
}

Pending DirectCommunicator::broadcast(const Tensor& x, int root) {
  if (is_the_hosts(x)) return inner().broadcast(x, root);
  require_contiguous("broadcast", x);
  if (x.elements() == 0) return {};
  DeviceLine& line = this->line();
  line.broadcast(place(x), x.bytes(), root);
  return ending(line, x, {});
}

// A rank's letter to itself needs no line, and nobody sends one: ways has none.
Pending DirectCommunicator::send(const Tensor& x, int to, int tag) {
  if (is_the_hosts(x)) return inner().send(x, to, tag);
  require_contiguous("send", x);
  DeviceLine& line = way("send", {rank(), to, tag});
  out_.assign(1, {place(x), x.bytes(), 1});
  line.exchange(out_, {});
  return ending(line, x, {});
}

Pending DirectCommunicator::recv(const Tensor& x, int from, int tag) {
  if (is_the_hosts(x)) return inner().recv(x, from, tag);
  require_contiguous("recv", x);
  DeviceLine& line = way("recv", {from, rank(), tag});
  in_.assign(1, {place(x), x.bytes(), 0});
  line.exchange({}, in_);
  return ending(line, x, {});
}

std::unique_ptr<Communicator> DirectCommunicator::split(int color, int key) {
  auto hosts = inner().split(color, key);
  if (hosts->size() == 1) return std::make_unique<SoloCommunicator>();
  return std::make_unique<DirectCommunicator>(std::move(hosts), device_, lines_, sums_);
}

}  // namespace weft
