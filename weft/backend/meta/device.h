// A device that holds no numbers: it runs the same code and counts the same bytes.
#pragma once

#include <memory>
#include <optional>

#include "weft/backend/gpus.h"
#include "weft/backend/pool.h"
#include "weft/tensor/kernels.h"

namespace weft {

class ProductTrials;

struct MetaOptions {
  int threads = 0;  // of the device that is counted for: some workspaces grow with them
  bool exact = false;
  std::int64_t memory_limit = 0;  // bytes, 0: none
  std::shared_ptr<ProductTrials> trials = nullptr;
  std::optional<GpuHere> gpu = {};  // that is counted for; else a processor
};

/// Its pool is that of the processor, or GPU, without memory behind it, so that what is held, its peak, and
/// even what is reserved are equal, byte by byte.
class MetaDevice final : public Device {
 public:
  explicit MetaDevice(const MetaOptions& options = {});
  ~MetaDevice() override;

  const char* name() const override { return "meta"; }
  StorageRef allocate(std::int64_t bytes, Use use) override { return pool_.take(bytes, use); }
  void recycle(Storage& storage) noexcept override { pool_.give(storage); }
  Kernels& kernels() override { return *kernels_; }
  bool holds_numbers() const override { return false; }
  bool host_visible() const override { return false; }
  bool shares_host_memory() const override { return !counts_for_gpu_; }
  Fence copy_from_host(Storage&, std::int64_t, const void*, std::int64_t) override { return {}; }
  Fence copy_to_host(void* to, const Storage& from, std::int64_t offset, std::int64_t bytes) override;
  int threads() const override { return threads_; }
  void forbid_fresh_memory(bool forbidden) override { pool_.forbid_fresh(forbidden); }
  MemoryMeter memory() const override { return pool_.meter(); }
  void forget_peaks() override { pool_.forget_peaks(); }
  std::vector<std::string> notes() const override { return notes_; }
  std::int64_t reserved() const { return pool_.reserved(); }

 private:
  std::unique_ptr<Kernels> kernels_for(const MetaOptions& options);

  int threads_;
  bool counts_for_gpu_;
  std::vector<std::string> notes_;
  Pool pool_;
  std::unique_ptr<Kernels> kernels_;
};

}  // namespace weft
