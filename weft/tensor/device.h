// A device is an object, not a number: it owns memory, order and arithmetic for one rank.
//
// It does what it is asked for in the order of asking, and may do it later: a kernel or a copy that was asked
// for sees what was asked for before it, and the host goes on. The host sees what a device did by a fence
// alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/tensor/fence.h"
#include "weft/tensor/instant.h"
#include "weft/tensor/meter.h"
#include "weft/tensor/storage.h"

namespace weft {

class Kernels;

class Device {
 public:
  virtual ~Device() = default;
  /// "cpu", "meta", …: the word for messages.
  virtual const char* name() const = 0;
  /// A block of at least this many bytes, aligned to 64. Fails with Kind::device when memory is exhausted, or
  /// when the steady state was declared and no free block fits.
  virtual StorageRef allocate(std::int64_t bytes, Use use) = 0;
  /// Takes a block back. Called by its last holder, from any thread.
  virtual void recycle(Storage& storage) noexcept = 0;
  virtual Kernels& kernels() = 0;
  /// False on a device that only counts: its tensors have shapes and no numbers.
  virtual bool holds_numbers() const { return true; }
  /// True when the host may read tensors' memory directly.
  virtual bool host_visible() const { return true; }
  /// Whether what lies in the host's memory lies in this one's too, so that nothing travels that is computed
  /// with. Of a device that only counts: of the one that it counts for.
  virtual bool shares_host_memory() const { return host_visible(); }
  /// Copies take their turn. Until the fence `from` must stay as it is; where that is empty it was taken.
  virtual Fence copy_from_host(Storage& to, std::int64_t offset, const void* from, std::int64_t bytes) = 0;
  /// Behind the fence `to` holds the bytes.
  virtual Fence copy_to_host(void* to, const Storage& from, std::int64_t offset, std::int64_t bytes) = 0;
  /// Behind all that was asked for up to now.
  virtual Fence fence() { return {}; }
  void synchronize() { fence().wait(); }
  /// When it will have done what it was asked for up to now.
  virtual Instant instant() { return {}; }
  /// Threads that this rank's arithmetic may use.
  virtual int threads() const { return 1; }
  /// From now on (or no longer) a block that the pool has not got is an error, not a request to the system.
  virtual void forbid_fresh_memory(bool forbidden) = 0;
  /// A snapshot; peaks since the last forget_peaks().
  virtual MemoryMeter memory() const = 0;
  virtual void forget_peaks() = 0;

  /// A profiler that runs beside this process sees what is asked for from now on, until the end.
  virtual void begin_profile() {}
  virtual void end_profile() noexcept {}
  /// Whether what is asked for has names that a profiler shows (named.h).
  void name_work(bool yes) { names_work_ = yes; }
  bool names_work() const { return names_work_; }
  /// What this thread asks for up to end_name() has a name, and a number where that is not negative.
  virtual void begin_name(std::string_view, std::int64_t) {}
  virtual void end_name() noexcept {}

  /// Sentences for the log: what this device does otherwise than was asked, and why.
  virtual std::vector<std::string> notes() const { return {}; }

  WorkMeter& work() { return work_; }

 protected:
  friend class Fence;
  /// Of a fence that this device made: returns when that place has been reached.
  virtual void wait_for(std::uint64_t) {}

 private:
  WorkMeter work_;
  bool names_work_ = false;
};

}  // namespace weft
