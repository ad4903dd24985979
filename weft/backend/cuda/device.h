// A GPU as a device: memory from the house's pool, arithmetic in the order of one stream, and a stream each
// way for what travels beside it (staging.h).
//
// Whatever is asked for happens in the order of asking, later. The host waits where it reads numbers
// (copy_to_host) and in synchronize(), and nowhere else; what went wrong on the way is said there. A block
// that is given back may be lent again at once: who gets it works in the same stream, behind who had it.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "weft/backend/cuda/faults.h"
#include "weft/backend/cuda/instants.h"
#include "weft/backend/cuda/queue.h"
#include "weft/backend/cuda/runtime.h"
#include "weft/backend/cuda/staging.h"
#include "weft/backend/gpus.h"
#include "weft/backend/pool.h"
#include "weft/tensor/kernels.h"

namespace weft {

/// Whether a GPU has warpgroups that multiply, and this build kernels for them.
bool has_warpgroups(int device);

class CudaDevice : public Device {
 public:
  explicit CudaDevice(const CudaOptions& options = {});
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const char* name() const override { return "cuda"; }
  StorageRef allocate(std::int64_t bytes, Use use) override;
  void recycle(Storage& storage) noexcept override;
  Kernels& kernels() override { return *kernels_; }
  bool host_visible() const override { return false; }
  Fence copy_from_host(Storage& to, std::int64_t offset, const void* from, std::int64_t bytes) override;
  Fence copy_to_host(void* to, const Storage& from, std::int64_t offset, std::int64_t bytes) override;
  Fence fence() override;
  Instant instant() override;
  void forbid_fresh_memory(bool forbidden) override { pool_.forbid_fresh(forbidden); }
  MemoryMeter memory() const override { return pool_.meter(); }
  void forget_peaks() override { pool_.forget_peaks(); }

  void begin_profile() override;
  void end_profile() noexcept override;
  void begin_name(std::string_view name, std::int64_t number) override;
  void end_name() noexcept override;

  /// For this thread, which without it would launch on the first GPU.
  void choose() const;
  /// What computes, for a launch by this thread.
  cuda::Queue& queue();
  /// Its stream, with all that was asked for in it.
  cudaStream_t stream();
  cuda::FaultWord* fault_word() const { return faults_.word(); }
  /// Multiprocessors.
  int units() const { return units_; }
  /// The first number of its compute capability.
  int capability() const { return capability_; }
  /// Whether attention, products in groups and those of exact mode go by warpgroups, where they can.
  bool warpgroups() const { return warpgroups_; }
  /// Whether products have a fixed order: bits do not show how rows and columns are shared out.
  bool exact() const { return exact_; }
  /// Bytes of shared memory that a block may have.
  int most_shared() const { return most_shared_; }
  /// Where it sits in its machine, as every process sees it.
  std::string place() const;
  /// From now on waits for fences call it again and again, and end where it fails. Empty: they call nobody.
  void ask_while_waiting(std::function<void()> ask) { ask_ = std::move(ask); }

 private:
  void wait_for(std::uint64_t place) override;
  /// The next place, which is reached when this stream comes to it.
  Fence mark(const cuda::Stream& stream);
  void wait_for(const cuda::Event& event) const;
  /// A place that was recorded. Where one was overwritten, a later one serves.
  struct Mark {
    cuda::Event reached;
    std::uint64_t place = 0;
  };

  int device_, units_, capability_, most_shared_;
  bool warpgroups_, exact_;
  cuda::Queue queue_;
  cuda::GoingUp up_;
  cuda::ComingDown down_;
  cuda::Faults faults_;
  std::uint64_t asked_ = 0;  // the last place of a copy or fence
  std::array<Mark, 16> marks_;
  std::size_t last_mark_ = 0;
  std::shared_ptr<cuda::StreamInstants> instants_;
  std::function<void()> ask_;
  Pool pool_;
  std::unique_ptr<Kernels> kernels_;
};

}  // namespace weft
