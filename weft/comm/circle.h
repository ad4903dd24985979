// What the ranks of one circle of threads share: the operations under way, and the mail.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/comm/tree_sum.h"
#include "weft/tensor/tensor.h"

namespace weft {

/// Broken when one rank fails: everybody who waits anywhere in the world is woken and throws.
class ThreadWorld {
 public:
  bool broken() const { return broken_.load(std::memory_order_acquire); }
  void break_off();
  void join(std::weak_ptr<class Circle> circle);

 private:
  std::atomic<bool> broken_{false};
  std::mutex mutex_;
  std::vector<std::weak_ptr<class Circle>> circles_;
};

/// Why a rank stopped that did nothing wrong itself: never the first cause.
class BrokenOff : public Error {
 public:
  using Error::Error;
};

enum class Word : std::uint8_t {
  none,
  barrier,
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  split
};
const char* name(Word word);

/// What every rank says when it joins an operation; all but the pointers must agree.
struct Saying {
  Word word = Word::none;
  Dtype dtype = Dtype::f32;
  Reduce how = Reduce::sum;
  std::int64_t elements = 0;  // of the whole: the same number for every rank
  int root = 0;
  bool agrees_with(const Saying& other) const {
    return word == other.word && dtype == other.dtype && how == other.how && elements == other.elements &&
           root == other.root;
  }
};
/// One rank's memory in an operation.
struct Offer {
  void* out = nullptr;
  const void* in = nullptr;
  std::span<const std::int64_t> out_rows, in_rows;  // all_to_all
  std::int64_t row_bytes = 0;
  int color = 0, key = 0;  // split
};

/// Operations are numbered: every rank joins them in the same order. Joining never blocks for long; finishing
/// does a rank's share of the work as soon as all have joined, and helps its own other operations while it
/// waits, then those who have joined this one and wait elsewhere, so ranks may finish in different orders,
/// and those of several circles too. Waiting sleeps: 64 ranks on two cores do not spin.
class Circle : public std::enable_shared_from_this<Circle> {
 public:
  Circle(std::shared_ptr<ThreadWorld> world, int size);
  int size() const { return size_; }
  const std::shared_ptr<ThreadWorld>& world() const { return world_; }
  /// Fails where a rank has failed.
  void must_be_whole() const {
    if (world_->broken()) give_up();
  }

  /// Returns the operation's number. The offer's spans must live until it is finished.
  std::int64_t join(int rank, const Saying& saying, const Offer& offer);
  /// `seen` receives everybody's offers, where it is asked for.
  void finish(int rank, std::int64_t number, std::vector<Offer>* seen = nullptr);

  /// How far a letter has come, as both sides see it; outlives whichever gives up first.
  enum class Way : std::uint8_t { posted, being_read, taken };
  struct Letter {
    int from = 0, to = 0, tag = 0;
    Tensor x;
    std::shared_ptr<Way> way;
  };
  /// `way` changes under the circle's lock; it is taken when the receiver has its copy.
  void post(const Letter& letter);
  void fetch(const Letter& wanted);
  void wait_taken(const Way& way);

  /// The circle of those that named the same color; all ranks call it in the same split.
  std::shared_ptr<Circle> child(std::int64_t number, int color, int members);
  void wake();

 private:
  struct Operation {
    Saying saying;
    std::vector<Offer> offers;
    std::vector<std::uint8_t> worked;  // by rank: has done its share
    int joined = 0, busy = 0, done = 0, left = 0;
    std::int64_t number = -1;
  };
  static constexpr std::size_t under_way = 64;
  Operation& at(std::int64_t number) { return operations_[std::size_t(number) % under_way]; }
  [[noreturn]] static void give_up();
  void wait(std::unique_lock<std::mutex>& lock);
  void wait_in(std::unique_lock<std::mutex>& lock, const Operation& operation);
  void work(std::unique_lock<std::mutex>& lock, int rank, Operation& operation);
  bool work_on_any(std::unique_lock<std::mutex>& lock, int rank);
  bool work_for_another(std::unique_lock<std::mutex>& lock, Operation& operation);
  void share(int rank, const Operation& operation) const;
  void check(const Operation& operation, int rank, const Saying& saying) const;

  std::shared_ptr<ThreadWorld> world_;
  int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Operation, under_way> operations_;
  std::vector<std::int64_t> next_;  // by rank: the number of its next operation
  std::vector<Letter> mail_;
  struct Child {
    std::int64_t number;
    int color, missing;  // members that have not come for it
    std::shared_ptr<Circle> circle;
  };
  std::vector<Child> children_;
};

}  // namespace weft
