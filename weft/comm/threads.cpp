// The words, spoken over shared memory: nothing is copied that a peer could read where it lies.
#include "weft/comm/threads.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

#include "weft/base/error.h"
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

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<Circle> circle, int rank) : circle_(std::move(circle)), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return circle_->size(); }

  void barrier() override { circle_->finish(rank_, circle_->join(rank_, {.word = Word::barrier}, {})); }

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
    Offer offer{.out = out.address(), .in = in.address(), .out_rows = out_rows, .in_rows = in_rows};
    offer.row_bytes = size_of(in.dtype());
    for (int i = 1; i < in.rank(); ++i) offer.row_bytes *= in.dim(i);
    // The caller's lists need not outlive the call, so this word is finished before it returns.
    circle_->finish(rank_, circle_->join(rank_, {.word = Word::all_to_all, .dtype = in.dtype()}, offer));
    return {};
  }

  Pending send(const Tensor& x, int to, int tag) override {
    require_contiguous("send", x);
    auto way = std::make_shared<Circle::Way>(Circle::Way::posted);
    circle_->post({.from = rank_, .to = to, .tag = tag, .x = x, .way = way});
    // Held until the sender looks again, as other communicators must: what a rank holds when is then the
    // same in every run.
    return Pending([circle = circle_, way, x = x] {
      give_up_if_unwinding(*circle);
      circle->wait_taken(*way);
    });
  }
  Pending recv(const Tensor& x, int from, int tag) override {
    require_contiguous("recv", x);
    return Pending([circle = circle_, x = x, from, tag, rank = rank_] {
      give_up_if_unwinding(*circle);
      circle->fetch({.from = from, .to = rank, .tag = tag, .x = x});
    });
  }

  std::unique_ptr<Communicator> split(int color, int key) override {
    std::vector<Offer> offers;
    const std::int64_t number = circle_->join(rank_, {.word = Word::split}, {.color = color, .key = key});
    circle_->finish(rank_, number, &offers);
    std::vector<int> kin;
    for (int r = 0; r < size(); ++r)
      if (offers[std::size_t(r)].color == color) kin.push_back(r);
    std::ranges::sort(kin, {}, [&](int r) { return std::tuple(offers[std::size_t(r)].key, r); });
    const auto place = std::ranges::find(kin, rank_) - kin.begin();
    return std::make_unique<ThreadCommunicator>(circle_->child(number, color, int(kin.size())), int(place));
  }

 private:
  Pending begin(const Saying& saying, const Tensor& out, const Tensor& in) {
    const std::int64_t number = circle_->join(rank_, saying, {.out = out.address(), .in = in.address()});
    return Pending([circle = circle_, rank = rank_, number, out = out, in = in] {
      give_up_if_unwinding(*circle);
      circle->finish(rank, number);
    });
  }

  std::shared_ptr<Circle> circle_;
  int rank_;
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

void run_as_threads(int ranks, const std::function<void(Communicator&)>& body) {
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
          ThreadCommunicator speaker(circle, r);
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
