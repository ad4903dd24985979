// The words over messages: bytes are moved for us, and we add, so that sums are the trees that threads make.
#include <algorithm>
#include <cstring>
#include <exception>
#include <span>
#include <tuple>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/pulse.h"
#include "weft/comm/checks.h"
#include "weft/comm/circle.h"
#include "weft/comm/exchanges.h"
#include "weft/comm/mail.h"
#include "weft/comm/tree_sum.h"

namespace weft {
namespace {

constexpr int word_tags = 32767;              // every MPI has as many
constexpr std::int64_t small_sum = 16 << 10;  // bytes: up to here one trip is worth more than few bytes

std::byte* bytes_at(const Tensor& x, std::int64_t offset) {
  return static_cast<std::byte*>(x.address()) + offset;
}

void move_bytes(void* to, const void* from, std::int64_t bytes) {
  if (to != from && bytes > 0) std::memmove(to, from, std::size_t(bytes));
}

/// Why words fail on a rank that failed otherwise.
std::exception_ptr gave_up() {
  return std::make_exception_ptr(
      BrokenOff(Kind::comm, "this rank failed, and speaks with nobody any more", Place{}));
}

/// A run of bytes of x that one rank reduces for all.
struct Slice {
  std::int64_t from, bytes;
};
Slice slice_of(const Tensor& x, int rank, int ranks) {
  const std::int64_t n = x.elements(), unit = size_of(x.dtype());
  const std::int64_t first = n * rank / ranks;
  return {first * unit, (n * (rank + 1) / ranks - first) * unit};
}

class MessageCommunicator final : public Communicator {
 public:
  /// `id` is this circle's number, the same on all its ranks.
  MessageCommunicator(std::shared_ptr<Exchanges> exchanges, std::shared_ptr<Mail> mail, std::uint64_t id)
      : exchanges_(std::move(exchanges)),
        mail_(std::move(mail)),
        id_(id),
        rank_(mail_->rank()),
        size_(mail_->size()) {
    if (Pulse* pulse = exchanges_->pulse(); pulse != nullptr && size_ > 1)
      seat_ = pulse->sits_in(id_, rank_, size_);
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const char* carrier() const override { return "messages"; }
  Pulse* pulse() const override { return exchanges_->pulse(); }
  void check() const override { exchanges_->check(*mail_); }

  Pending all_reduce(const Tensor& x, Reduce how) override {
    require_contiguous("all_reduce", x);
    if (size_ == 1 || x.elements() == 0) return {};
    return x.bytes() * size_ <= small_sum ? reduce_here(x, how) : reduce_in_slices(x, how);
  }

  Pending all_gather(const Tensor& full, const Tensor& shard) override {
    require_parts("all_gather", full, shard, size());
    move_bytes(bytes_at(full, rank_ * shard.bytes()), shard.address(), shard.bytes());
    auto exchange = word(Spoken::all_gather);
    exchange->then([this, full, shard](Exchange& e) {
      for_others([&](int r) { e.receive(bytes_at(full, r * shard.bytes()), shard.bytes(), r); });
      for_others([&](int r) { e.send(shard.address(), shard.bytes(), r); });
    });
    return begin(std::move(exchange));
  }

  Pending reduce_scatter(const Tensor& shard, const Tensor& full) override {
    require_parts("reduce_scatter", full, shard, size());
    auto exchange = word(Spoken::reduce_scatter);
    std::byte* parts = exchange->scratch(shard.bytes() * size_);
    const auto part_of = [parts, shard](int r) { return parts + r * shard.bytes(); };
    exchange->then([this, full, shard, part_of](Exchange& e) {
      for_others([&](int r) { e.receive(part_of(r), shard.bytes(), r); });
      for_others([&](int r) { e.send(bytes_at(full, r * shard.bytes()), shard.bytes(), r); });
      move_bytes(part_of(rank_), bytes_at(full, rank_ * shard.bytes()), shard.bytes());
    });
    exchange->then([this, shard, part_of](Exchange&) { add(shard, Reduce::sum, part_of); });
    return begin(std::move(exchange));
  }

  Pending broadcast(const Tensor& x, int root) override {
    require_contiguous("broadcast", x);
    auto exchange = word(Spoken::broadcast);
    exchange->then([this, x, root](Exchange& e) {
      if (rank_ != root) return e.receive(x.address(), x.bytes(), root);
      for_others([&](int r) { e.send(x.address(), x.bytes(), r); });
    });
    return begin(std::move(exchange));
  }

  Pending all_to_all(const Tensor& out, const Tensor& in, std::span<const std::int64_t> in_rows,
                     std::span<const std::int64_t> out_rows) override {
    require_contiguous("all_to_all", out);
    require_contiguous("all_to_all", in);
    std::int64_t row = size_of(in.dtype());
    for (int i = 1; i < in.rank(); ++i) row *= in.dim(i);
    auto exchange = word(Spoken::all_to_all);
    exchange->then([this, out, in, row, going = std::vector(in_rows.begin(), in_rows.end()),
                    coming = std::vector(out_rows.begin(), out_rows.end())](Exchange& e) {
      std::int64_t from = 0, to = 0;
      for (int r = 0; r < size_; ++r) {
        const std::int64_t given = going[std::size_t(r)] * row, taken = coming[std::size_t(r)] * row;
        if (r == rank_)
          move_bytes(bytes_at(out, to), bytes_at(in, from), given);
        else {
          e.receive(bytes_at(out, to), taken, r);
          e.send(bytes_at(in, from), given, r);
        }
        from += given;
        to += taken;
      }
    });
    return begin(std::move(exchange));
  }

  Pending send(const Tensor& x, int to, int tag) override {
    require_contiguous("send", x);
    auto exchange = letter(Spoken::send, to, tag);
    exchange->then([x, to](Exchange& e) { e.send(x.address(), x.bytes(), to); });
    return begin(std::move(exchange));
  }
  Pending recv(const Tensor& x, int from, int tag) override {
    require_contiguous("recv", x);
    auto exchange = letter(Spoken::recv, from, tag);
    exchange->then([x, from](Exchange& e) { e.receive(x.address(), x.bytes(), from); });
    return begin(std::move(exchange));
  }

  void barrier() override {
    auto exchange = word(Spoken::barrier);
    std::byte* parts = exchange->scratch(size_);
    exchange->then([this, parts](Exchange& e) {
      for_others([&](int r) { e.receive(parts + r, 1, r); });
      for_others([&](int r) { e.send(parts + rank_, 1, r); });
    });
    exchanges_->finish(*exchanges_->begin(exchange), *mail_);
  }

  std::unique_ptr<Communicator> split(int color, int key) override {
    const Mail::Kin kin = kin_of(color, key);
    // A number that depends on the circle, on which of its splits this is, and on the color.
    const std::uint64_t id =
        ((id_ * 1000003u + std::uint64_t(++splits_)) * 1000003u) + std::uint64_t(color) + 1u;
    const auto mine = exchanges_->turn();
    return std::make_unique<MessageCommunicator>(exchanges_, mail_->part(kin), id);
  }

 private:
  // Starts with the next rank, so that not all send to the same one first.
  template <class Body>
  void for_others(const Body& body) const {
    for (int i = 1; i < size_; ++i) body((rank_ + i) % size_);
  }
  std::shared_ptr<Exchange> word(Spoken spoken) {
    number_ = (number_ + 1) % word_tags;
    if (Pulse* pulse = exchanges_->pulse()) pulse->spoke(seat_);
    return std::make_shared<Exchange>(
        mail_->batch({.word = name(spoken), .kind = Mail::Kind::word, .tag = number_}),
        Pulse::Wait{.word = spoken, .circle = seat_, .number = words_++});
  }
  std::shared_ptr<Exchange> letter(Spoken spoken, int peer, int tag) const {
    {
      const auto mine = exchanges_->turn();
      mail_->check_tag(tag);
    }
    return std::make_shared<Exchange>(
        mail_->batch({.word = name(spoken), .kind = Mail::Kind::letter, .tag = tag}),
        Pulse::Wait{.word = spoken, .circle = seat_, .peer = peer, .number = tag});
  }
  Pending begin(std::shared_ptr<Exchange> exchange) {
    return Pending([exchanges = exchanges_, mail = mail_, exchange = exchanges_->begin(std::move(exchange))] {
      // The peer may wait for a word that will never be said.
      if (std::uncaught_exceptions() > 0) return exchanges->drop(gave_up());
      exchanges->finish(*exchange, *mail);
    });
  }
  /// Everybody tells everybody its color and key. Then nobody waits for a word of ours any more, and the mail
  /// may block.
  Mail::Kin kin_of(int color, int key) {
    struct Choice {
      int color, key;
    };
    std::vector<Choice> all(static_cast<std::size_t>(size_));
    all[std::size_t(rank_)] = {color, key};
    auto exchange = word(Spoken::split);
    exchange->then([this, &all](Exchange& e) {
      for_others([&](int r) { e.receive(&all[std::size_t(r)], sizeof(Choice), r); });
      for_others([&](int r) { e.send(&all[std::size_t(rank_)], sizeof(Choice), r); });
    });
    exchanges_->finish(*exchanges_->begin(exchange), *mail_);
    Mail::Kin kin{color, key, {}};
    for (int r = 0; r < size_; ++r)
      if (all[std::size_t(r)].color == color) kin.members.push_back(r);
    std::ranges::sort(kin.members, {}, [&](int r) { return std::tuple(all[std::size_t(r)].key, r); });
    return kin;
  }
  template <class PartOf>
  void add(const Tensor& out, Reduce how, const PartOf& part_of) const {
    add_at(out.address(), {out.dtype(), how, out.elements()}, part_of);
  }
  template <class PartOf>
  void add_at(void* out, const Reduction& what, const PartOf& part_of) const {
    std::vector<const void*> parts;
    for (int r = 0; r < size_; ++r) parts.push_back(part_of(r));
    reduce_parts(what, {&out, 1}, parts);
  }

  // Everybody sends everything and adds it all.
  Pending reduce_here(const Tensor& x, Reduce how) {
    auto exchange = word(Spoken::all_reduce);
    std::byte* parts = exchange->scratch(x.bytes() * size_);
    const auto part_of = [parts, x](int r) { return parts + r * x.bytes(); };
    exchange->then([this, x, part_of](Exchange& e) {
      move_bytes(part_of(rank_), x.address(), x.bytes());
      for_others([&](int r) { e.receive(part_of(r), x.bytes(), r); });
      for_others([&](int r) { e.send(part_of(rank_), x.bytes(), r); });
    });
    exchange->then([this, x, how, part_of](Exchange&) { add(x, how, part_of); });
    return begin(std::move(exchange));
  }

  // Every rank adds its slice for all, and sends it to all.
  Pending reduce_in_slices(const Tensor& x, Reduce how) {
    auto exchange = word(Spoken::all_reduce);
    const Slice mine = slice_of(x, rank_, size_);
    std::byte* parts = exchange->scratch(mine.bytes * size_);
    const auto part_of = [parts, mine](int r) { return parts + r * mine.bytes; };
    exchange->then([this, x, mine, part_of](Exchange& e) {
      for_others([&](int r) { e.receive(part_of(r), mine.bytes, r); });
      for_others([&](int r) {
        const Slice slice = slice_of(x, r, size_);
        e.send(bytes_at(x, slice.from), slice.bytes, r);
      });
      move_bytes(part_of(rank_), bytes_at(x, mine.from), mine.bytes);
    });
    exchange->then([this, x, how, mine, part_of](Exchange& e) {
      add_at(bytes_at(x, mine.from), {x.dtype(), how, mine.bytes / size_of(x.dtype())}, part_of);
      for_others([&](int r) {
        const Slice slice = slice_of(x, r, size_);
        e.receive(bytes_at(x, slice.from), slice.bytes, r);
      });
      for_others([&](int r) { e.send(bytes_at(x, mine.from), mine.bytes, r); });
    });
    return begin(std::move(exchange));
  }

  std::shared_ptr<Exchanges> exchanges_;
  std::shared_ptr<Mail> mail_;
  std::uint64_t id_;
  int rank_, size_, number_ = 0, splits_ = 0, seat_ = -1;
  std::int64_t words_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> speak_by(std::unique_ptr<Mail> world, Pulse* pulse) {
  return std::make_unique<MessageCommunicator>(std::make_shared<Exchanges>(pulse), std::move(world), 1);
}

}  // namespace weft
