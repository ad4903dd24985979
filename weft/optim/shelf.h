// Optimizer states that lie in a file: a window of them comes to memory before it is updated, and goes back
// behind.
#pragma once

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

/// How states are put in files.
struct Offload {
  FileMemory::Place place;
  std::int64_t window = std::int64_t{1} << 20;  // elements that are updated at once
};

/// Windows are walked in order, and the next time from the last to the first: what was walked last still lies
/// in the kernel's cache of the file, as far as the machine has memory to spare, and one order would push out
/// each window before its turn comes. Rules must not see the order. While one is visited, the next one is
/// read and the one before is written, by a thread each: there is room for three. A read or a write that
/// fails ends the walk with its error, on the thread that walks.
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
  /// An owned part of a block is to be walked, behind those that are.
  void add(std::size_t block, const OwnedPart& part);
  /// Tensors of what a rank keeps, one a block, empty where it lies in memory: what is visited is here from
  /// now on. Returns its number.
  std::size_t keep(const std::vector<Tensor>& by_block);

  enum class Walk : std::uint8_t { read_first, update };  // of the first that is kept, or all
  void begin(Walk walk);
  /// The next window, which is here when this returns; null behind the last, when all is written.
  const Window* next();
  /// Of the window that is visited.
  Tensor here(std::size_t number, const OwnedPart& part) const;
  /// Fails with Kind::usage unless the disk has room for what is kept, and takes it from other ranks' reach.
  /// Before anything is written: what lies there already would be counted twice.
  void must_have_room();

 private:
  static constexpr std::size_t rooms = 3;
  enum class Room : std::uint8_t { empty, reading, full, visited, to_write };
  Tensor staged(std::size_t room, std::size_t number, const OwnedPart& part) const;
  /// The window that is walked as the `turn`th.
  const Window& window(std::size_t turn) const {
    return windows_[backwards_ ? windows_.size() - 1 - turn : turn];
  }
  bool takes_part(std::size_t number) const { return walk_ == Walk::update || number == 0; }
  void leave_current();
  void wait_for(const std::function<bool()>& done);
  void read_windows();
  void write_windows();
  void copy(std::size_t turn, bool to_file);
  void work(std::size_t& cursor, Room from, bool to_file);

  Device& computes_;
  Offload how_;
  FileMemory file_;
  std::vector<Window> windows_;
  std::vector<std::vector<Tensor>> kept_;           // by number and block
  std::array<std::vector<Tensor>, rooms> staging_;  // by number
  std::int64_t longest_ = 0;
  Walk walk_ = Walk::update;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Room, rooms> rooms_{};
  std::size_t end_ = 0, current_ = 0, to_read_ = 0, to_write_ = 0;  // turns
  bool backwards_ = true;                                           // of walks, each second one
  bool visiting_ = false, stop_ = false;
  int busy_ = 0;
  std::exception_ptr error_;
  std::thread reader_, writer_;
};

}  // namespace weft
