// A room goes round: it is read, visited, left, and written when another window wants it.
#include "weft/optim/shelf.h"

#include <algorithm>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/tensor/host_memory.h"

namespace weft {

namespace {

/// For a device that only counts: nothing is taken.
class NoMemory final : public HostMemory {
 public:
  bool holds_numbers() const override { return false; }
  StorageRef allocate(std::int64_t bytes, Use use) override {
    return StorageRef(std::make_unique<Storage>(*this, nullptr, bytes, use).release());
  }
};

/// The host's memory where the device has another one.
std::unique_ptr<Device> beside(const Device& computes) {
  if (computes.shares_host_memory()) return nullptr;
  return computes.holds_numbers() ? host_memory() : std::make_unique<NoMemory>();
}

}  // namespace

Shelf::Shelf(Device& computes, Offload how)
    : computes_(computes),
      host_(beside(computes)),
      how_(std::move(how)),
      file_(how_.place, host_ ? *host_ : computes) {
  if (how_.windows_here < 1) fail(Kind::internal, "shelf: ", how_.windows_here, " windows in memory");
  if (!computes.holds_numbers()) return;
  file_.before_copies([this](FileMemory::Copies way) {
    put_away(way == FileMemory::Copies::to_file ? Then::forget : Then::keep);
  });
  reader_ = std::thread([this] { read_windows(); });
  writer_ = std::thread([this] { write_windows(); });
}

// What is on its way would come to memory that is gone.
Shelf::~Shelf() {
  try {
    land();
  } catch (...) {  // the device has failed, and whoever waits for it hears that
  }
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (reader_.joinable()) reader_.join();
  if (writer_.joinable()) writer_.join();
}

void Shelf::add(std::size_t block, const OwnedPart& part) {
  if (!kept_.empty()) fail(Kind::internal, "shelf: a part is added when rooms are made already");
  for (std::int64_t from = 0; from < part.count; from += how_.window) {
    const std::int64_t count = std::min(how_.window, part.count - from);
    windows_.push_back({block, {.at = part.at + from, .kept = part.kept + from, .count = count}});
    longest_ = std::max(longest_, count);
  }
}

void Shelf::put_in_order(const std::function<int(const Window&)>& number) {
  const std::scoped_lock lock(mutex_);
  std::ranges::stable_sort(windows_, {}, number);
  turns_ = false;
}

void Shelf::make_rooms() {
  rooms_.resize(std::min(std::size_t(how_.windows_here), windows_.size()));
  if (host_) desks_.resize(std::min(std::size_t{2}, windows_.size()));
}

std::size_t Shelf::keep(const std::vector<Tensor>& by_block, ReadBy readers) {
  const std::scoped_lock lock(mutex_);
  if (host_ && readers != ReadBy::update)
    fail(Kind::internal, "shelf: layers of ", computes_.name(), " read what lies in a file");
  if (kept_.empty()) make_rooms();
  kept_.push_back({by_block, readers});
  const auto made = std::ranges::find_if(by_block, [](const Tensor& x) { return bool(x); });
  const auto window_on = [&](Device& device) {
    return made == by_block.end() ? Tensor() : empty(device, {longest_}, made->dtype(), Use::optimizer);
  };
  for (Room& room : rooms_) room.tensors.push_back(window_on(host_ ? *host_ : computes_));
  for (std::vector<Tensor>& desk : desks_) desk.push_back(window_on(computes_));
  return kept_.size() - 1;
}

void Shelf::must_have_room() {
  const std::int64_t needed = file_.bytes_to_reserve();
  if (file_.reserve()) return;
  fail(Kind::usage, "{optimizer.offload.directory} ", how_.place.directory.string(), ": ",
       human_bytes(needed), how_.weights ? " of weights and optimizer states" : " of optimizer states",
       " are to lie there, and ", human_bytes(file_.room()),
       " are left: take another disk, or a smaller {optimizer.offload.fraction}");
}

Tensor Shelf::here(std::size_t number, const OwnedPart& part) const {
  const Tensor& window = host_ ? desk()[number] : room_at(current_).tensors[number];
  return window.slice(0, part.kept - windows_[window_at(current_)].part.kept, part.count);
}

template <class Act>
void Shelf::each_visited(const Act& act) {
  if (!computes_.holds_numbers()) return;
  const Window& window = windows_[window_at(current_)];
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    const Tensor& there = kept_[i].by_block[window.block];
    if (there && moves(i, Part::what_is_read))
      act(room_at(current_).tensors[i], desk()[i], window.part.count * size_of(there.dtype()));
  }
}

void Shelf::bring_to_desk() {
  each_visited([](const Tensor& room, const Tensor& desk, std::int64_t bytes) {
    desk.device().copy_from_host(*desk.storage(), 0, room.address(), bytes).wait();
  });
}

// The last of them is behind the others.
Fence Shelf::send_from_desk() {
  Fence back;
  each_visited([&](const Tensor& room, const Tensor& desk, std::int64_t bytes) {
    back = desk.device().copy_to_host(room.address(), *desk.storage(), 0, bytes);
  });
  return back;
}

// Where it fails nobody may take the room for what it was to hold.
void Shelf::land() {
  if (landing_.room == nullptr) return;
  Landing landing = std::exchange(landing_, {});
  std::exception_ptr failed;
  try {
    landing.behind.wait();
  } catch (...) {
    failed = std::current_exception();
  }
  const std::scoped_lock lock(mutex_);
  landing.room->moving = false;
  if (failed) landing.room->whole = landing.room->changed = landing.room->goes = false;
  changed_.notify_all();
  if (failed) std::rethrow_exception(failed);
}

Shelf::Moved Shelf::moved() const {
  const std::scoped_lock lock(mutex_);
  return moved_;
}

// An update that follows an update begins where that one ended, with what is still here. Of a walk that was
// broken off, what was visited last may be half done.
void Shelf::begin(Walk walk) {
  land();
  bool goes_on = false;
  {
    const std::scoped_lock lock(mutex_);
    goes_on = updated_ && walk == Walk::update;
    if (std::exchange(visiting_, false)) room_at(current_).whole = false;
    end_ = 0;
    updated_ = false;
  }
  if (!goes_on && computes_.holds_numbers()) put_away(Then::forget);
  const std::scoped_lock lock(mutex_);
  walk_ = walk;
  backwards_ = turns_ && !backwards_;
  current_ = to_read_ = 0;
  if (rooms_.empty()) make_rooms();  // of a rule that keeps nothing
  end_ = windows_.size();
  changed_.notify_all();
}

void Shelf::wait_for(std::unique_lock<std::mutex>& lock, const std::function<bool()>& done) {
  changed_.wait(lock, [&] { return error_ != nullptr || done(); });
  if (!error_) return;
  end_ = 0;
  std::rethrow_exception(std::exchange(error_, nullptr));
}

const Shelf::Window* Shelf::next() {
  leave();
  // There may be no other room for the next one.
  if (current_ == windows_.size() || rooms_.size() == 1) land();
  std::unique_lock lock(mutex_);
  if (current_ == windows_.size()) {
    wait_for_layers(lock);
    updated_ = walk_ == Walk::update;
    return nullptr;
  }
  if (computes_.holds_numbers()) wait_for(lock, [this] { return to_read_ > current_; });
  visiting_ = true;
  lock.unlock();
  if (host_) bring_to_desk();
  return &windows_[window_at(current_)];
}

bool Shelf::ready() const {
  const std::scoped_lock lock(mutex_);
  return error_ != nullptr || to_read_ > current_ || !computes_.holds_numbers();
}

void Shelf::leave() {
  if (visiting_) leave_current();
}

void Shelf::wait_for_layers() {
  std::unique_lock lock(mutex_);
  wait_for_layers(lock);
}

void Shelf::wait_for_layers(std::unique_lock<std::mutex>& lock) {
  if (!computes_.holds_numbers()) return;
  wait_for(lock, [this] { return std::ranges::none_of(rooms_, [](const Room& r) { return r.awaited; }); });
}

void Shelf::leave_current() {
  const bool lands = host_ && walk_ == Walk::update;
  const Fence behind = lands ? send_from_desk() : Fence();
  land();  // the one before
  if (!host_) computes_.synchronize();
  const std::scoped_lock lock(mutex_);
  Room& room = room_at(current_);
  if (lands) {
    room.moving = true;
    landing_ = {&room, behind};
  }
  room.left = ++visits_;
  if (walk_ == Walk::update) room.changed = true;
  if (walk_ != Walk::read_first)
    room.awaited = std::ranges::any_of(kept_, [](const Kept& k) { return k.readers != ReadBy::update; });
  const bool stays = turns_ ? current_ + rooms_.size() >= end_ : rooms_.size() >= end_;
  room.goes = room.changed && !stays;
  if (walk_ != Walk::update) room.whole = false;  // of all that is kept, a part
  visiting_ = false;
  ++current_;
  changed_.notify_all();
}

// Whoever copies next finds all in the file.
void Shelf::put_away(Then then) {
  land();
  std::unique_lock lock(mutex_);
  const Room* const visited = visiting_ ? &room_at(current_) : nullptr;
  for (Room& room : rooms_) room.goes = room.goes || (room.changed && &room != visited);
  changed_.notify_all();
  wait_for(lock, [&] {
    return std::ranges::none_of(rooms_, [&](const Room& r) { return r.goes || r.awaited || r.moving; });
  });
  if (then == Then::keep) return;
  for (Room& room : rooms_)
    if (&room != visited) room.whole = false;
  updated_ = false;
}

bool Shelf::moves(std::size_t number, Part part) const {
  const ReadBy readers = kept_[number].readers;
  switch (part) {
    case Part::what_is_read:
      return walk_ == Walk::update ? readers != ReadBy::layers : number == 0;
    case Part::what_layers_read:
      return readers != ReadBy::update;
    case Part::all:
      return true;
  }
  return false;
}

std::int64_t Shelf::copied(const Room& room, Part part, To to) {
  const Window& w = windows_[room.window];
  std::int64_t bytes_of_all = 0;
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    const Tensor& there = kept_[i].by_block[w.block];
    if (!there || !moves(i, part)) continue;
    const std::int64_t width = size_of(there.dtype());
    const std::int64_t offset = (there.offset() + w.part.kept) * width, bytes = w.part.count * width;
    void* here = room.tensors[i].address();
    if (to == To::file)
      file_.write(*there.storage(), offset, here, bytes);
    else
      file_.read(here, *there.storage(), offset, bytes);
    bytes_of_all += bytes;
  }
  return bytes_of_all;
}

/// Lets go of the lock meanwhile.
void Shelf::copy(Room& room, Part part, To to, std::unique_lock<std::mutex>& lock) {
  room.moving = true;
  lock.unlock();
  std::int64_t bytes = 0;
  std::exception_ptr failed;
  try {
    bytes = copied(room, part, to);
  } catch (...) {
    failed = std::current_exception();
  }
  lock.lock();
  (to == To::file ? moved_.written : moved_.read) += bytes;
  room.moving = false;
  if (failed && !error_) error_ = failed;
}

// With the lock, as what follows.
bool Shelf::may_read() const {
  if (to_read_ >= end_ || to_read_ >= current_ + rooms_.size() || error_) return false;
  const Room& room = room_at(to_read_);
  return !room.moving && (is_here(to_read_) || (!room.changed && !room.awaited));
}

/// The one that was left first.
Shelf::Room* Shelf::to_write() {
  Room* first = nullptr;
  if (error_) return first;
  for (Room& room : rooms_) {
    if (room.moving || !(room.goes || room.awaited)) continue;
    if (first == nullptr || room.left < first->left) first = &room;
  }
  return first;
}

void Shelf::read_windows() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || may_read(); });
    if (stop_) return;
    if (!is_here(to_read_)) {
      Room& room = room_at(to_read_);
      room.window = window_at(to_read_);
      copy(room, Part::what_is_read, To::memory, lock);
      room.whole = !error_;
    }
    if (!error_) ++to_read_;
    changed_.notify_all();
  }
}

void Shelf::write_windows() {
  std::unique_lock lock(mutex_);
  for (;;) {
    Room* room = nullptr;
    changed_.wait(lock, [&] { return stop_ || (room = to_write()) != nullptr; });
    if (stop_) return;
    const bool all = room->goes;
    copy(*room, all ? Part::all : Part::what_layers_read, To::file, lock);
    if (!error_) room->awaited = false;
    if (!error_ && all) room->goes = room->changed = false;
    changed_.notify_all();
  }
}

}  // namespace weft
