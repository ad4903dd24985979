// A room goes round: empty, reading, full, visited, to write, empty.
#include "weft/optim/shelf.h"

#include <algorithm>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/format.h"

namespace weft {

Shelf::Shelf(Device& computes, Offload how)
    : computes_(computes), how_(std::move(how)), file_(how_.place, computes) {
  if (!computes.holds_numbers()) return;
  reader_ = std::thread([this] { read_windows(); });
  writer_ = std::thread([this] { write_windows(); });
}

Shelf::~Shelf() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (reader_.joinable()) reader_.join();
  if (writer_.joinable()) writer_.join();
}

void Shelf::add(std::size_t block, const OwnedPart& part) {
  for (std::int64_t from = 0; from < part.count; from += how_.window) {
    const std::int64_t count = std::min(how_.window, part.count - from);
    windows_.push_back({block, {.at = part.at + from, .kept = part.kept + from, .count = count}});
    longest_ = std::max(longest_, count);
  }
}

std::size_t Shelf::keep(const std::vector<Tensor>& by_block) {
  kept_.push_back(by_block);
  const auto made = std::ranges::find_if(by_block, [](const Tensor& x) { return bool(x); });
  for (auto& room : staging_)
    room.push_back(made == by_block.end() ? Tensor()
                                          : empty(computes_, {longest_}, made->dtype(), Use::optimizer));
  return kept_.size() - 1;
}

void Shelf::must_have_room() {
  const std::int64_t needed = file_.bytes_to_reserve();
  if (file_.reserve()) return;
  fail(Kind::usage, "{optimizer.offload.directory} ", how_.place.directory.string(), ": ",
       human_bytes(needed), " of optimizer states are to lie there, and ", human_bytes(file_.room()),
       " are left: take another disk, or a smaller {optimizer.offload.fraction}");
}

Tensor Shelf::staged(std::size_t room, std::size_t number, const OwnedPart& part) const {
  return staging_[room][number].slice(0, part.kept - window(current_).part.kept, part.count);
}

Tensor Shelf::here(std::size_t number, const OwnedPart& part) const {
  return staged(current_ % rooms, number, part);
}

void Shelf::begin(Walk walk) {
  std::unique_lock lock(mutex_);
  end_ = 0;  // of a walk that was broken off nothing goes on
  changed_.wait(lock, [this] { return busy_ == 0; });
  error_ = nullptr;
  rooms_.fill(Room::empty);
  current_ = to_read_ = to_write_ = 0;
  visiting_ = false;
  walk_ = walk;
  backwards_ = !backwards_;
  end_ = windows_.size();
  lock.unlock();
  changed_.notify_all();
}

void Shelf::wait_for(const std::function<bool()>& done) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ != nullptr || done(); });
  if (error_) {
    end_ = 0;
    std::rethrow_exception(std::exchange(error_, nullptr));
  }
}

const Shelf::Window* Shelf::next() {
  if (visiting_) leave_current();
  const bool numbers = computes_.holds_numbers();
  if (current_ == windows_.size()) {
    if (numbers && walk_ == Walk::update) wait_for([this] { return to_write_ == end_; });
    return nullptr;
  }
  if (numbers) wait_for([this] { return rooms_[current_ % rooms] == Room::full; });
  visiting_ = true;
  return &window(current_);
}

void Shelf::leave_current() {
  if (computes_.holds_numbers()) {
    computes_.synchronize();
    const std::scoped_lock lock(mutex_);
    rooms_[current_ % rooms] = walk_ == Walk::update ? Room::to_write : Room::empty;
  }
  changed_.notify_all();
  visiting_ = false;
  ++current_;
}

void Shelf::copy(std::size_t turn, bool to_file) {
  const Window& w = window(turn);
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    const Tensor& there = kept_[i][w.block];
    if (!there || !takes_part(i)) continue;
    const std::int64_t width = size_of(there.dtype());
    const std::int64_t offset = (there.offset() + w.part.kept) * width, bytes = w.part.count * width;
    void* here = staging_[turn % rooms][i].address();
    if (to_file)
      file_.copy_from_host(*there.storage(), offset, here, bytes).wait();
    else
      file_.copy_to_host(here, *there.storage(), offset, bytes).wait();
  }
}

void Shelf::work(std::size_t& cursor, Room from, bool to_file) {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] {
      return stop_ || (cursor < end_ && rooms_[cursor % rooms] == from && error_ == nullptr);
    });
    if (stop_) return;
    rooms_[cursor % rooms] = Room::reading;
    ++busy_;
    const std::size_t turn = cursor;
    lock.unlock();
    std::exception_ptr failed;
    try {
      copy(turn, to_file);
    } catch (...) {
      failed = std::current_exception();
    }
    lock.lock();
    --busy_;
    if (failed) error_ = failed;
    rooms_[turn % rooms] = to_file ? Room::empty : Room::full;
    ++cursor;
    changed_.notify_all();
  }
}

void Shelf::read_windows() { work(to_read_, Room::empty, false); }
void Shelf::write_windows() { work(to_write_, Room::to_write, true); }

}  // namespace weft
