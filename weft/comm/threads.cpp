// The words, spoken over shared memory: nothing is copied that a peer could read where it lies.
#include "weft/comm/threads.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/pulse.h"
#include "weft/comm/checks.h"
#include "weft/comm/circle.h"

namespace weft {
namespace {

constexpr int most_ranks = 1024;

/// Words still under way while an exception passes are dropped, not finished: the peer may wait for a word
/// that this rank will never say.
void give_up_if_unwinding(const Circle& circle) {
  if (std::uncaught_exceptions() > 0) circle.world()->break_off();
}

Spoken spoken(Word word) {
  switch (word) {
    case Word::all_reduce:
      return Spoken::all_reduce;
    case Word::all_gather:
      return Spoken::all_gather;
    case Word::reduce_scatter:
      return Spoken::reduce_scatter;
    case Word::broadcast:
      return Spoken::broadcast;
    default:
      return Spoken::nothing;
  }
}

/// How many rows go to each rank, and come.
struct Lists {
  std::vector<std::int64_t> in, out;
};

/// Those of no word that is under way: taken again, so that a steady step asks the heap for none.
class IdleLists {
 public:
  std::unique_ptr<Lists> take(std::span<const std::int64_t> in, std::span<const std::int64_t> out) {
    if (idle_.empty()) idle_.push_back(std::make_unique<Lists>());
    std::unique_ptr<Lists> lists = std::move(idle_.back());
    idle_.pop_back();
    lists->in.assign(in.begin(), in.end());
    lists->out.assign(out.begin(), out.end());
    return lists;
  }
  void put_back(std::unique_ptr<Lists> lists) { idle_.push_back(std::move(lists)); }

 private:
  std::vector<std::unique_ptr<Lists>> idle_;
};

class ThreadCommunicator final : public Communicator {
 public:
  /// `id` is this circle's number, the same on all its ranks.
  ThreadCommunicator(std::shared_ptr<Circle> circle, int rank, Pulse& pulse, std::uint64_t id)
      : circle_(std::move(circle)), rank_(rank), pulse_(pulse), id_(id) {
    if (size() > 1) seat_ = pulse_.sits_in(id_, rank_, size());
  }
  int rank() const override { return rank_; }
  int size() const override { return circle_->size(); }
  Pulse* pulse() const override { return &pulse_; }
  const char* carrier() const override { return "threads"; }
  void check() const override { circle_->must_be_whole(); }

  void barrier() override { finish(Spoken::barrier, join({.word = Word::barrier}, {})); }

  Pending all_reduce(const Tensor& x, Reduce how) override {
    require_contiguous("all_reduce", x);
    return begin({.word = Word::all_reduce, .dtype = x.dtype(), .how = how, .elements = x.elements()}, x, x);
  }
  Pending all_gather(const Tensor& full, const Tensor& shard) override {
    require_parts("all_gather", full, shard, size());
    return begin({.word = Word::all_gather, .dtype = full.dtype(), .elements = full.elements()}, full, shard);
  }
  Pending reduce_scatter(const Tensor& shard, const Tensor& full) override {
    require_parts("reduce_scatter", full, shard, size());
    return begin({.word = Word::reduce_scatter, .dtype = full.dtype(), .elements = full.elements()}, shard,
                 full);
  }
  Pending broadcast(const Tensor& x, int root) override {
    require_contiguous("broadcast", x);
    return begin({.word = Word::broadcast, .dtype = x.dtype(), .elements = x.elements(), .root = root}, x, x);
  }

  Pending all_to_all(const Tensor& out, const Tensor& in, std::span<const std::int64_t> in_rows,
                     std::span<const std::int64_t> out_rows) override {
    require_contiguous("all_to_all", out);
    require_contiguous("all_to_all", in);
    // The caller's lists need not outlive the call, and others read them until the word is finished.
    auto lists = idle_->take(in_rows, out_rows);
    Offer offer{.out = out.address(), .in = in.address(), .out_rows = lists->out, .in_rows = lists->in};
    offer.row_bytes = size_of(in.dtype());
    for (int i = 1; i < in.rank(); ++i) offer.row_bytes *= in.dim(i);
    const std::int64_t number = join({.word = Word::all_to_all, .dtype = in.dtype()}, offer);
    const Pulse::Wait wait{.word = Spoken::all_to_all, .circle = seat_, .number = number};
    return Pending([circle = circle_, rank = rank_, number, out = out, in = in, pulse = watched(), wait,
                    idle = idle_, lists = std::move(lists)]() mutable {
      give_up_if_unwinding(*circle);
      const Waiting waiting(pulse, wait);
      circle->finish(rank, number);
      idle->put_back(std::move(lists));
    });
  }

  Pending send(const Tensor& x, int to, int tag) override {
    require_contiguous("send", x);
    auto way = std::make_shared<Circle::Way>(Circle::Way::posted);
    circle_->post({.from = rank_, .to = to, .tag = tag, .x = x, .way = way});
    // Held until the sender looks again, as other communicators must: what a rank holds when is then the
    // same in every run.
    return Pending([circle = circle_, way, x = x, pulse = watched(), wait = letter(Spoken::send, to, tag)] {
      give_up_if_unwinding(*circle);
      const Waiting waiting(pulse, wait);
      circle->wait_taken(*way);
    });
  }
  Pending recv(const Tensor& x, int from, int tag) override {
    require_contiguous("recv", x);
    return Pending([circle = circle_, x = x, from, tag, rank = rank_, pulse = watched(),
                    wait = letter(Spoken::recv, from, tag)] {
      give_up_if_unwinding(*circle);
      const Waiting waiting(pulse, wait);
      circle->fetch({.from = from, .to = rank, .tag = tag, .x = x});
    });
  }

  std::unique_ptr<Communicator> split(int color, int key) override {
    std::vector<Offer> offers;
    const std::int64_t number = join({.word = Word::split}, {.color = color, .key = key});
    finish(Spoken::split, number, &offers);
    std::vector<int> kin;
    for (int r = 0; r < size(); ++r)
      if (offers[std::size_t(r)].color == color) kin.push_back(r);
    std::ranges::sort(kin, {}, [&](int r) { return std::tuple(offers[std::size_t(r)].key, r); });
    const auto place = std::ranges::find(kin, rank_) - kin.begin();
    const std::uint64_t id =
        ((id_ * 1000003u + std::uint64_t(number)) * 1000003u) + std::uint64_t(color) + 1u;
    return std::make_unique<ThreadCommunicator>(circle_->child(number, color, int(kin.size())), int(place),
                                                pulse_, id);
  }

 private:
  std::int64_t join(const Saying& saying, const Offer& offer) {
    const std::int64_t number = circle_->join(rank_, saying, offer);
    pulse_.spoke(seat_);
    return number;
  }
  void finish(Spoken word, std::int64_t number, std::vector<Offer>* seen = nullptr) {
    const Waiting waiting(watched(), {.word = word, .circle = seat_, .number = number});
    circle_->finish(rank_, number, seen);
  }
  Pulse::Wait letter(Spoken word, int peer, int tag) const {
    return {.word = word, .circle = seat_, .peer = peer, .number = tag};
  }
  Pending begin(const Saying& saying, const Tensor& out, const Tensor& in) {
    const std::int64_t number = join(saying, {.out = out.address(), .in = in.address()});
    const Pulse::Wait wait{.word = spoken(saying.word), .circle = seat_, .number = number};
    return Pending([circle = circle_, rank = rank_, number, out = out, in = in, pulse = watched(), wait] {
      give_up_if_unwinding(*circle);
      const Waiting waiting(pulse, wait);
      circle->finish(rank, number);
    });
  }

  /// A pulse says where the thread that trains waits, and not where one does that saves beside it.
  Pulse* watched() const { return std::this_thread::get_id() == trains_ ? &pulse_ : nullptr; }

  std::shared_ptr<Circle> circle_;
  std::shared_ptr<IdleLists> idle_ = std::make_shared<IdleLists>();
  int rank_;
  Pulse& pulse_;
  std::thread::id trains_ = std::this_thread::get_id();
  std::uint64_t id_;
  int seat_ = -1;
};

/// Keeps the first of many failures; that somebody else failed is only told where nobody says why.
class FirstFailure {
 public:
  void note(std::exception_ptr failure, bool is_cause) {
    std::lock_guard lock(mutex_);
    if (!first_ || (is_cause && !has_cause_)) first_ = std::move(failure);
    has_cause_ = has_cause_ || is_cause;
  }
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
  bool has_cause_ = false;
};

}  // namespace

void run_as_threads(int ranks, const std::function<void(Communicator&)>& body, const PulseBoard* board) {
  if (ranks < 1 || ranks > most_ranks)
    fail(Kind::usage, "ranks: ", ranks, " thread ranks were asked for, 1 to ", most_ranks, " are possible");
  const auto world = std::make_shared<ThreadWorld>();
  const auto circle = std::make_shared<Circle>(world, ranks);
  world->join(circle);
  FirstFailure first;
  {
    std::vector<std::jthread> threads;
    for (int r = 0; r < ranks; ++r)
      threads.emplace_back([&, r] {
        try {
          Pulse pulse = board != nullptr ? board->pulse(r) : Pulse();
          ThreadCommunicator speaker(circle, r, pulse, 1);
          body(speaker);
        } catch (const BrokenOff&) {
          first.note(std::current_exception(), false);
        } catch (...) {
          first.note(std::current_exception(), true);
          world->break_off();
        }
      });
  }
  first.rethrow();
}

}  // namespace weft
