// Optimizer states that lie in a file: a window of them comes to memory before it is updated, and goes back
// behind.
#pragma once

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "weft/optim/owned_part.h"
#include "weft/tensor/file_memory.h"
#include "weft/tensor/tensor.h"

namespace weft {

/// How states are put in files, and whether weights are.
struct Offload {
  FileMemory::BackingFile place;
  std::int64_t window = std::int64_t{1} << 20;  // elements that are updated at once
  int windows_here = 3;                         // most that memory has room for
  bool weights = false;
};

/// Windows are walked in order, and the next time from the last to the first. Rooms for a few of them lie in
/// memory, and a window comes to the room of its number: while one is visited, others are read and written,
/// by a thread each. What an update visited last stays where it is until the next one begins with it, and is
/// neither written nor read between. Reading ahead of an update could bring no more than the rooms hold, and
/// that is here. What the kernel keeps of the file is read before it is pushed out, too. Rules must not see
/// the order.
///
/// Where an update is made while layers wait for it (due_update.h), windows are put in the order of layers,
/// and every walk takes that. What it visits is then written at once, unless there is room for all.
///
/// Rooms are the host's memory. Where a device has another one, two desks of a window each lie there: what is
/// visited is copied to one and back, in the device's order, and lands in its room while the next window is
/// visited on the other. States that are in no file are in the host's memory then.
///
/// Whoever copies from or to what lies there makes all that is newer in memory go first. A read or a write
/// that fails ends the walk with its error, on the thread that walks, or the next thing that is asked.
///
/// Threads and not io_uring: a window of four mebibytes keeps a disk busy with one call at a time, every
/// kernel and every container allows pread and pwrite, and there is one path to test.
class Shelf {
 public:
  struct Window {
    std::size_t block = 0;
    OwnedPart part;
  };
  Shelf(Device& computes, Offload how);
  ~Shelf();
  Shelf(const Shelf&) = delete;
  Shelf& operator=(const Shelf&) = delete;

  /// Where tensors that are kept are made.
  FileMemory& file() { return file_; }
  const FileMemory& file() const { return file_; }
  /// An owned part of a block is to be walked, behind those that are. Before anything is kept.
  void add(std::size_t block, const OwnedPart& part);

  /// Every walk from now on takes windows in the order of these numbers. Before the first one.
  void put_in_order(const std::function<int(const Window&)>& number);
  const std::vector<Window>& windows() const { return windows_; }

  /// Who reads what is kept: the update, layers (straight from the file, so it is there when a walk ends), or
  /// both.
  enum class ReadBy : std::uint8_t { update, layers, both };
  /// Tensors of what a rank keeps, one a block, empty where it lies in memory: what is visited is here from
  /// now on. Returns its number.
  std::size_t keep(const std::vector<Tensor>& by_block, ReadBy readers = ReadBy::update);

  /// The first that is kept is looked at, or what layers read is made of it, or all is updated.
  enum class Walk : std::uint8_t { read_first, publish, update };
  void begin(Walk walk);
  /// The next window, which is here when this returns; null behind the last, when layers find what they read.
  const Window* next();
  /// Whether next() would not wait for the disk.
  bool ready() const;
  /// The window that is visited may go; next() says so too.
  void leave();
  /// Until layers find what they read of all windows that were visited.
  void wait_for_layers();
  int rooms() const { return int(rooms_.size()); }
  /// Of the window that is visited.
  Tensor here(std::size_t number, const OwnedPart& part) const;
  /// Fails with Kind::usage unless the disk has room for what is kept, and takes it from other ranks' reach.
  /// Before anything is written: what lies there already would be counted twice.
  void must_have_room();
  /// Bytes that went to the file and came from it.
  struct Moved {
    std::int64_t read = 0, written = 0;
  };
  Moved moved() const;

 private:
  struct Kept {
    std::vector<Tensor> by_block;
    ReadBy readers;
  };
  /// Of one window, and what was done to it.
  struct Room {
    std::size_t window = 0;       // that was read last
    bool whole = false;           // all of it is here
    bool moving = false;          // a thread reads or writes
    bool changed = false;         // the file has it as it was
    bool goes = false;            // another one wants the room
    bool awaited = false;         // layers want to read it
    std::int64_t left = 0;        // in what order it was visited
    std::vector<Tensor> tensors;  // by number
  };
  /// On its way from a desk to its room.
  struct Landing {
    Room* room = nullptr;
    Fence behind;
  };
  enum class Part : std::uint8_t { what_is_read, what_layers_read, all };
  enum class To : std::uint8_t { memory, file };

  std::size_t window_at(std::size_t turn) const { return backwards_ ? windows_.size() - 1 - turn : turn; }
  Room& room_at(std::size_t turn) { return rooms_[window_at(turn) % rooms_.size()]; }
  const Room& room_at(std::size_t turn) const { return rooms_[window_at(turn) % rooms_.size()]; }
  bool moves(std::size_t number, Part part) const;
  void make_rooms();
  const std::vector<Tensor>& desk() const { return desks_[current_ % desks_.size()]; }
  void bring_to_desk();
  Fence send_from_desk();
  void land();
  /// act(tensors of the room and of the desk, bytes of the window) for all that the walk reads.
  template <class Act>
  void each_visited(const Act& act);
  void leave_current();
  void wait_for(std::unique_lock<std::mutex>& lock, const std::function<bool()>& done);
  void wait_for_layers(std::unique_lock<std::mutex>& lock);
  enum class Then : std::uint8_t { keep, forget };
  void put_away(Then then);
  bool may_read() const;
  Room* to_write();
  void read_windows();
  void write_windows();
  bool is_here(std::size_t turn) const {
    return room_at(turn).whole && room_at(turn).window == window_at(turn);
  }
  void copy(Room& room, Part part, To to, std::unique_lock<std::mutex>& lock);
  std::int64_t copied(const Room& room, Part part, To to);

  Device& computes_;
  std::unique_ptr<Device> host_;  // where the device has a memory of its own
  Offload how_;
  FileMemory file_;
  std::vector<Window> windows_;
  std::vector<Kept> kept_;
  std::vector<Room> rooms_;
  std::vector<std::vector<Tensor>> desks_;  // by number; none where rooms serve
  Landing landing_;
  std::int64_t longest_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Walk walk_ = Walk::update;
  std::size_t end_ = 0, current_ = 0, to_read_ = 0;  // turns
  bool turns_ = true;                                // round, after every walk
  bool backwards_ = true;                            // of walks that turn, each second one
  bool visiting_ = false, updated_ = false, stop_ = false;
  std::int64_t visits_ = 0;
  Moved moved_;
  std::exception_ptr error_;
  std::thread reader_, writer_;
};

}  // namespace weft
