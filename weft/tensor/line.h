// How the GPUs of one circle reach each other's memory by themselves, so that no host carries anything.
//
// A line is an order of its own beside its device's: what it is asked for happens in the order of asking,
// later, and meets what the other ends were asked for in the same order. Follow, ask, mark; and hold the
// device at the mark before it touches what came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "weft/tensor/dtype.h"

namespace weft {

class DeviceLine {
 public:
  /// to[count] is made of from; sums, or the largest.
  struct Reduced {
    const void* from;
    void* to;
    std::int64_t count;
    Dtype dtype;
    bool largest = false;
  };
  /// What goes to one end, or comes from it.
  struct Piece {
    std::byte* at;
    std::int64_t bytes;
    int end;
  };

  virtual ~DeviceLine() = default;
  /// What the line is asked for from now on comes behind what the device was asked for up to now.
  virtual void follow_device() = 0;
  /// Behind all that the line was asked for up to now. Each is held at once.
  virtual int mark() = 0;
  /// What the device is asked for from now on comes behind the mark. The host goes on.
  virtual void hold_device(int mark) = 0;

  /// Of `count` elements of every end. The same call gives the same bits every time.
  virtual void all_reduce(const Reduced& what) = 0;
  /// Of this one's `count` elements out of as many parts as there are ends.
  virtual void reduce_scatter(const Reduced& what) = 0;
  virtual void all_gather(void* full, const void* shard, std::int64_t bytes) = 0;
  virtual void broadcast(void* x, std::int64_t bytes, int root) = 0;
  /// All pieces travel together. What two ends name for each other is of one length.
  virtual void exchange(std::span<const Piece> out, std::span<const Piece> in) = 0;
  /// Of parts of floats that lie one behind the other: as a balanced tree in their order (comm/tree_sum.h),
  /// in f32 or, of f64, as they are, rounded once.
  virtual void add_parts(const Reduced& what, int parts) = 0;
};

/// What a GPU has for opening lines.
class DeviceLines {
 public:
  virtual ~DeviceLines() = default;
  /// Why it has nothing; empty where it has.
  virtual std::string missing() const = 0;
  /// Which GPU of its machine it is: two ranks of one GPU cannot have a line.
  virtual std::string place() const = 0;
  /// A name for one line that all its ends are told.
  virtual std::string fresh_name() = 0;
  /// Whether lines reduce the type themselves: others are exchanged and added by add_parts().
  virtual bool reduce(Dtype dtype) const = 0;
  struct End {
    int rank, size;
  };
  /// All ends call it at once, and each waits for the others.
  virtual std::unique_ptr<DeviceLine> open(const std::string& name, End end) = 0;
  /// Whoever waits for the device asks from now on, again and again, and cuts all lines where that fails:
  /// what waits in them for an end that is gone would never come.
  virtual void ask_while_waiting(std::function<void()> check) = 0;
};

}  // namespace weft
