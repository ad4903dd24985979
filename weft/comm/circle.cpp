// One lock a circle; the work itself happens outside it.
#include "weft/comm/circle.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "weft/base/error.h"

namespace weft {
namespace {

/// Rank r's part of n things shared by `ranks`.
std::int64_t share_begin(std::int64_t n, int r, int ranks) { return n * r / ranks; }

void copy(void* to, const void* from, std::int64_t bytes) {
  if (to != from && bytes > 0) std::memmove(to, from, std::size_t(bytes));
}

template <class T>
T* moved(T* pointer, std::int64_t bytes) {
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  return static_cast<Byte*>(pointer) + bytes;
}

std::string say(const Saying& s) { return text(name(s.word), " of ", s.elements, " ", name(s.dtype)); }

}  // namespace

const char* name(Word word) {
  switch (word) {
    case Word::none:
      return "nothing";
    case Word::barrier:
      return "barrier";
    case Word::all_reduce:
      return "all_reduce";
    case Word::all_gather:
      return "all_gather";
    case Word::reduce_scatter:
      return "reduce_scatter";
    case Word::all_to_all:
      return "all_to_all";
    case Word::broadcast:
      return "broadcast";
    case Word::split:
      return "split";
  }
  return "unknown";
}

void ThreadWorld::break_off() {
  broken_.store(true, std::memory_order_release);
  // Woken from a copy: a circle that splits holds its own lock while it joins this list.
  std::vector<std::weak_ptr<Circle>> all;
  {
    std::lock_guard lock(mutex_);
    all = circles_;
  }
  for (const auto& weak : all)
    if (const auto circle = weak.lock()) circle->wake();
}

void ThreadWorld::join(std::weak_ptr<Circle> circle) {
  std::lock_guard lock(mutex_);
  circles_.push_back(std::move(circle));
}

Circle::Circle(std::shared_ptr<ThreadWorld> world, int size)
    : world_(std::move(world)), size_(size), next_(std::size_t(size), 0) {
  for (Operation& operation : operations_) {
    operation.offers.resize(std::size_t(size));
    operation.worked.resize(std::size_t(size));
  }
}

void Circle::wake() {
  std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void Circle::give_up() {
  throw BrokenOff(Kind::comm, "another rank failed, so this one stopped waiting for it", Place{});
}

// Asked once, before sleeping: whoever wakes comes here again. Breaking off wakes under the lock, so no call
// is lost.
void Circle::wait(std::unique_lock<std::mutex>& lock) {
  if (world_->broken()) give_up();
  changed_.wait(lock);
}

// A rank that gives up takes its memory with it, so it stays until nobody reads that any more.
void Circle::wait_in(std::unique_lock<std::mutex>& lock, const Operation& operation) {
  if (world_->broken()) {
    changed_.wait(lock, [&] { return operation.busy == 0; });
    give_up();
  }
  changed_.wait(lock);
}

void Circle::check(const Operation& operation, int rank, const Saying& saying) const {
  if (operation.saying.agrees_with(saying)) return;
  fail(Kind::comm, "rank ", rank, " joins ", say(saying), " where others join ", say(operation.saying));
}

std::int64_t Circle::join(int rank, const Saying& saying, const Offer& offer) {
  std::unique_lock lock(mutex_);
  const std::int64_t number = next_[std::size_t(rank)]++;
  Operation& operation = at(number);
  while (operation.number != number && operation.number != -1)
    if (!work_on_any(lock, rank)) wait(lock);
  if (operation.number == -1) {
    operation.number = number;
    operation.saying = saying;
    operation.joined = operation.busy = operation.done = operation.left = 0;
    std::ranges::fill(operation.worked, std::uint8_t{0});
  }
  check(operation, rank, saying);
  operation.offers[std::size_t(rank)] = offer;
  if (++operation.joined == size_) changed_.notify_all();
  return number;
}

void Circle::finish(int rank, std::int64_t number, std::vector<Offer>* seen) {
  std::unique_lock lock(mutex_);
  Operation& operation = at(number);
  while (operation.done < size_)
    if (!work_on_any(lock, rank) && !work_for_another(lock, operation)) wait_in(lock, operation);
  if (seen) *seen = operation.offers;
  if (++operation.left < size_) return;
  operation.number = -1;
  changed_.notify_all();
}

bool Circle::work_on_any(std::unique_lock<std::mutex>& lock, int rank) {
  if (world_->broken()) return false;
  for (Operation& operation : operations_) {
    if (operation.number < 0 || operation.joined < size_ || operation.worked[std::size_t(rank)]) continue;
    work(lock, rank, operation);
    return true;
  }
  return false;
}

// One that has joined may wait in another circle first, and for somebody who waits here.
bool Circle::work_for_another(std::unique_lock<std::mutex>& lock, Operation& operation) {
  if (world_->broken() || operation.joined < size_) return false;
  const auto idle = std::ranges::find(operation.worked, std::uint8_t{0});
  if (idle == operation.worked.end()) return false;
  work(lock, int(idle - operation.worked.begin()), operation);
  return true;
}

void Circle::work(std::unique_lock<std::mutex>& lock, int rank, Operation& operation) {
  operation.worked[std::size_t(rank)] = 1;
  ++operation.busy;
  std::exception_ptr failure;
  lock.unlock();
  try {
    share(rank, operation);
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) world_->break_off();
  lock.lock();
  --operation.busy;
  if (++operation.done == size_ || world_->broken()) changed_.notify_all();
  if (!failure) return;
  changed_.wait(lock, [&] { return operation.busy == 0; });
  std::rethrow_exception(failure);
}

// Every rank reduces its slice for all, and copies what is only for itself.
void Circle::share(int rank, const Operation& operation) const {
  const Saying& what = operation.saying;
  const auto& offers = operation.offers;
  const Offer& mine = offers[std::size_t(rank)];
  const std::int64_t unit = size_of(what.dtype);
  const std::int64_t from = share_begin(what.elements, rank, size_);
  const std::int64_t count = share_begin(what.elements, rank + 1, size_) - from;
  if (mine.out == nullptr && mine.in == nullptr) return;  // barrier, split, or a device that holds no numbers
  switch (what.word) {
    case Word::all_reduce:
    case Word::reduce_scatter: {
      std::array<const void*, 1024> parts;
      std::array<void*, 1024> outs;
      for (std::size_t r = 0; r < offers.size(); ++r) {
        parts[r] = moved(offers[r].in, from * unit);
        outs[r] = what.word == Word::all_reduce ? moved(offers[r].out, from * unit) : mine.out;
      }
      const auto targets = what.word == Word::all_reduce ? offers.size() : 1;
      reduce_parts({what.dtype, what.how, count}, {outs.data(), targets}, {parts.data(), offers.size()});
      break;
    }
    case Word::all_gather:
      for (int r = 0; r < size_; ++r)
        copy(moved(mine.out, share_begin(what.elements, r, size_) * unit), offers[std::size_t(r)].in,
             what.elements / size_ * unit);
      break;
    case Word::broadcast:
      copy(mine.out, offers[std::size_t(what.root)].in, what.elements * unit);
      break;
    case Word::all_to_all: {
      void* to = mine.out;
      for (std::size_t r = 0; r < offers.size(); ++r) {
        std::int64_t before = 0;
        for (int k = 0; k < rank; ++k) before += offers[r].in_rows[std::size_t(k)];
        if (offers[r].in_rows[std::size_t(rank)] != mine.out_rows[r])
          fail(Kind::comm, "all_to_all: rank ", rank, " expects ", mine.out_rows[r], " rows from rank ", r,
               ", which sends ", offers[r].in_rows[std::size_t(rank)]);
        copy(to, moved(offers[r].in, before * mine.row_bytes), mine.out_rows[r] * mine.row_bytes);
        to = moved(to, mine.out_rows[r] * mine.row_bytes);
      }
      break;
    }
    default:
      break;
  }
}

void Circle::post(const Letter& letter) {
  std::lock_guard lock(mutex_);
  mail_.push_back(letter);
  changed_.notify_all();
}

void Circle::fetch(const Letter& wanted) {
  std::unique_lock lock(mutex_);
  const auto matches = [&](const Letter& l) {
    return l.from == wanted.from && l.to == wanted.to && l.tag == wanted.tag;
  };
  auto found = std::ranges::find_if(mail_, matches);
  for (; found == mail_.end(); found = std::ranges::find_if(mail_, matches))
    if (!work_on_any(lock, wanted.to)) wait(lock);
  if (found->x.bytes() != wanted.x.bytes() || found->x.dtype() != wanted.x.dtype())
    fail(Kind::comm, "rank ", wanted.to, " expects ", wanted.x.shape(), " of ", wanted.x.dtype(),
         " from rank ", wanted.from, ", which sends ", found->x.shape(), " of ", found->x.dtype());
  Letter letter = std::move(*found);
  mail_.erase(found);
  *letter.way = Way::being_read;
  lock.unlock();
  if (letter.x.address()) copy(wanted.x.address(), letter.x.address(), wanted.x.bytes());
  letter.x = {};  // before the sender goes on, whose device it belongs to
  lock.lock();
  *letter.way = Way::taken;
  changed_.notify_all();
}

// A sender that gives up takes its letter back: nothing of its device stays behind, and nobody reads it.
void Circle::wait_taken(const Way& way) {
  std::unique_lock lock(mutex_);
  while (way != Way::taken) {
    if (world_->broken() && way == Way::posted) {
      std::erase_if(mail_, [&](const Letter& l) { return l.way.get() == &way; });
      give_up();
    }
    changed_.wait(lock);
  }
}

std::shared_ptr<Circle> Circle::child(std::int64_t number, int color, int members) {
  std::lock_guard lock(mutex_);
  auto found =
      std::ranges::find_if(children_, [&](const Child& c) { return c.number == number && c.color == color; });
  if (found == children_.end()) {
    children_.push_back({number, color, members, std::make_shared<Circle>(world_, members)});
    found = children_.end() - 1;
    world_->join(found->circle);
  }
  const auto circle = found->circle;
  if (--found->missing == 0) children_.erase(found);
  return circle;
}

}  // namespace weft
