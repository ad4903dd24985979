// The processor as a device: one for each rank, with its own memory and its own number of threads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/backend/plain_calls.h"
#include "weft/backend/pool.h"
#include "weft/tensor/kernels.h"

namespace weft {

class ProductTrials;
struct WorkTimes;

/// Who computes. Each builds on the one before but for products.
enum class CpuKernels : std::uint8_t {
  reference,  // plain loops in double
  fast,       // our own vector loops, products too
  onednn,     // those, with every product that oneDNN takes left to it
  best,       // whichever product was measured to be faster, by type
};

struct CpuOptions {
  int threads = 0;                // 0: as many as this process may run on
  bool exact = false;             // bits do not depend on how a product is cut
  std::int64_t memory_limit = 0;  // bytes, 0: none but the machine's
  CpuKernels kernels = CpuKernels::best;
  WorkTimes* times = nullptr;  // what each kind of work takes is added here; outlives the device
  std::shared_ptr<ProductTrials> trials = nullptr;  // what is known of its products; null: nothing yet
  PlainCalls* plain_calls = nullptr;  // what falls back on plain loops is counted here; outlives the device
};

/// Every call has finished when it returns.
class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const CpuOptions& options = {});
  ~CpuDevice() override;

  const char* name() const override { return "cpu"; }
  StorageRef allocate(std::int64_t bytes, Use use) override { return pool_.take(bytes, use); }
  void recycle(Storage& storage) noexcept override { pool_.give(storage); }
  Kernels& kernels() override { return *kernels_; }
  Fence copy_from_host(Storage& to, std::int64_t offset, const void* from, std::int64_t bytes) override;
  Fence copy_to_host(void* to, const Storage& from, std::int64_t offset, std::int64_t bytes) override;
  int threads() const override { return threads_; }
  bool exact() const { return exact_; }  // products hold their bits however they are cut
  void forbid_fresh_memory(bool forbidden) override { pool_.forbid_fresh(forbidden); }
  MemoryMeter memory() const override { return pool_.meter(); }
  void forget_peaks() override { pool_.forget_peaks(); }
  std::vector<std::string> notes() const override { return notes_; }
  /// Bytes of the system's memory that the pool uses, held or waiting.
  std::int64_t reserved() const { return pool_.reserved(); }

 private:
  int threads_;
  bool exact_;
  Pool pool_;
  std::vector<std::string> notes_;
  std::unique_ptr<Kernels> kernels_;
};

}  // namespace weft
