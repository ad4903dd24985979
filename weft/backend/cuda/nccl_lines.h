// Lines between GPUs by NCCL: a communicator and a stream each.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/backend/cuda/device.h"
#include "weft/backend/cuda/nccl_library.h"
#include "weft/tensor/line.h"

namespace weft::cuda {

/// NCCL's word for one circle, which is cut once: by who closes it, or from outside where that would wait for
/// ever.
class NcclCircle {
 public:
  NcclCircle(const NcclLibrary& library, const std::string& name, DeviceLines::End end);
  ~NcclCircle();
  NcclCircle(const NcclCircle&) = delete;
  NcclCircle& operator=(const NcclCircle&) = delete;
  /// Fails with Kind::comm where it was cut.
  ncclComm_t get() const;
  const NcclLibrary& library() const { return library_; }
  /// Fails with Kind::comm: "NCCL: what: reason".
  void check(ncclResult_t result, const char* what) const;
  /// What is under way ends, with nothing.
  void cut() noexcept;
  bool was_cut() const { return cut_; }

 private:
  const NcclLibrary& library_;
  ncclComm_t comm_ = nullptr;
  bool cut_ = false;
};

class NcclLine final : public DeviceLine {
 public:
  NcclLine(CudaDevice& device, std::shared_ptr<NcclCircle> circle)
      : device_(device), circle_(std::move(circle)) {}
  ~NcclLine() override;

  void follow_device() override;
  int mark() override;
  void hold_device(int mark) override;
  void all_reduce(const Reduced& what) override;
  void reduce_scatter(const Reduced& what) override;
  void all_gather(void* full, const void* shard, std::int64_t bytes) override;
  void broadcast(void* x, std::int64_t bytes, int root) override;
  void exchange(std::span<const Piece> out, std::span<const Piece> in) override;
  void add_parts(const Reduced& what, int parts) override;

 private:
  const NcclLibrary& nccl() const { return circle_->library(); }
  /// For a call by this thread: it may have chosen no GPU.
  cudaStream_t stream() const;

  CudaDevice& device_;
  std::shared_ptr<NcclCircle> circle_;
  Stream own_;
  Event asked_;
  Events marks_{Event::Knows::whether};
};

class NcclLines final : public DeviceLines {
 public:
  /// `device` outlives it.
  explicit NcclLines(CudaDevice& device);
  ~NcclLines() override;
  NcclLines(const NcclLines&) = delete;
  NcclLines& operator=(const NcclLines&) = delete;

  std::string missing() const override { return library_.missing; }
  std::string place() const override;
  std::string fresh_name() override;
  bool reduce(Dtype dtype) const override;
  std::unique_ptr<DeviceLine> open(const std::string& name, End end) override;
  void ask_while_waiting(std::function<void()> check) override;

 private:
  /// Says what a library of NCCL's found since, or what `check` fails with; all lines are cut then.
  void look_round();

  CudaDevice& device_;
  NcclLibrary library_;
  std::function<void()> check_;
  std::vector<std::weak_ptr<NcclCircle>> circles_;
};

/// What was exchanged is added on `stream`: to[count] of so many parts behind each other.
void launch_add_parts(cudaStream_t stream, const DeviceLine::Reduced& what, int parts);

}  // namespace weft::cuda
