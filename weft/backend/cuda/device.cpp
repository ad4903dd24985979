#include "weft/backend/cuda/device.h"

#include <cuda_profiler_api.h>
#include <gpu_notes.h>
#include <nvtx3/nvToolsExt.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "weft/backend/cuda/fixed_order.h"
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/timed.h"
#include "weft/base/error.h"

namespace weft {
namespace {

using cuda::check;

/// Of this thread alone, whose streams, memory and launches are this GPU's from here on.
void choose_gpu(int device) { check(cudaSetDevice(device), "choosing a GPU"); }

/// Chooses the GPU for what follows; its number.
int opened(const CudaOptions& options) {
  int count = 0;
  check(cudaGetDeviceCount(&count), "counting the GPUs");
  if (options.device < 0 || options.device >= count)
    fail(Kind::usage, "device cuda:", options.device, ": this machine has ", count, " of them");
  choose_gpu(options.device);
  return options.device;
}

/// Segments of the GPU's memory. A large one that it has not got is asked for again, as small as will do.
class GpuGround final : public Ground {
 public:
  explicit GpuGround(int device) : device_(device) {}
  Mapping map(std::int64_t bytes) override {
    choose_gpu(device_);
    void* at = nullptr;
    const bool granted = cudaMalloc(&at, std::size_t(bytes)) == cudaSuccess;
    if (!granted) cudaGetLastError();  // which would be told again
    return {granted, static_cast<std::byte*>(at)};
  }
  void unmap(std::byte* data, std::int64_t) noexcept override { cudaFree(data); }

 private:
  int device_;
};

}  // namespace

bool has_warpgroups(int device) {
  return gpu::built_for_warpgroups && cuda::attribute(cudaDevAttrComputeCapabilityMajor, device) == 9;
}

CudaDevice::CudaDevice(const CudaOptions& options)
    : device_(opened(options)),
      units_(cuda::attribute(cudaDevAttrMultiProcessorCount, device_)),
      capability_(cuda::attribute(cudaDevAttrComputeCapabilityMajor, device_)),
      most_shared_(cuda::attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device_)),
      warpgroups_(options.warpgroups && has_warpgroups(device_)),
      exact_(options.exact),
      queue_(options.graphs),
      up_(queue_.now()),
      down_(queue_.now()),
      instants_(std::make_shared<cuda::StreamInstants>(device_)),
      pool_(*this, std::make_unique<GpuGround>(device_), options.memory_limit),
      kernels_(std::make_unique<CudaKernels>(*this)) {
  if (options.times) kernels_ = timed(std::move(kernels_), *this, *options.times);
  if (!exact_) return;
  cuda::must_hold_bits(*this);
  forget_peaks();
}

CudaDevice::~CudaDevice() {
  queue_.finish();
  up_.finish();
  down_.finish();
}

void CudaDevice::choose() const { choose_gpu(device_); }

cuda::Queue& CudaDevice::queue() {
  choose();
  return queue_;
}

cudaStream_t CudaDevice::stream() { return queue().now().get(); }

StorageRef CudaDevice::allocate(std::int64_t bytes, Use use) {
  StorageRef out = pool_.take(bytes, use);
  queue_.note(gpu::Lent{out->data(), bytes});
  return out;
}

void CudaDevice::recycle(Storage& storage) noexcept {
  queue_.note(gpu::TakenBack{storage.data(), storage.bytes()});
  pool_.give(storage);
}

// What is copied has been taken when this returns. Copies come behind what was asked for, which therefore
// must be in the stream, and may make pages, which must be this GPU's.
Fence CudaDevice::copy_from_host(Storage& to, std::int64_t offset, const void* from, std::int64_t bytes) {
  stream();
  if (bytes > 0) up_.copy(to.data() + offset, from, bytes);
  return {};
}

Fence CudaDevice::copy_to_host(void* to, const Storage& from, std::int64_t offset, std::int64_t bytes) {
  stream();
  if (bytes > 0) down_.copy(to, from.data() + offset, bytes, ++asked_);
  return bytes > 0 ? mark(down_.travels()) : fence();
}

Fence CudaDevice::fence() { return mark(queue().now()); }

Instant CudaDevice::instant() { return {instants_, instants_->note(queue().now())}; }

Fence CudaDevice::mark(const cuda::Stream& stream) {
  last_mark_ = (last_mark_ + 1) % marks_.size();
  marks_[last_mark_].reached.record(stream);
  marks_[last_mark_].place = ++asked_;
  return {*this, asked_};
}

void CudaDevice::begin_profile() {
  choose();
  check(cudaProfilerStart(), "showing a profiler what follows");
}

// For destructors, so it says nothing of errors.
void CudaDevice::end_profile() noexcept { cudaProfilerStop(); }

// What is longer is cut: names are short.
void CudaDevice::begin_name(std::string_view name, std::int64_t number) {
  char words[64] = {};
  const int length = int(name.size());
  if (number < 0)
    std::snprintf(words, sizeof words, "%.*s", length, name.data());
  else
    std::snprintf(words, sizeof words, "%.*s %lld", length, name.data(), static_cast<long long>(number));
  nvtxRangePushA(words);
}

void CudaDevice::end_name() noexcept { nvtxRangePop(); }

std::string CudaDevice::place() const {
  char bus[32] = {};
  check(cudaDeviceGetPCIBusId(bus, int(sizeof bus), device_), "asking a GPU for its place");
  return bus;
}

// Work that another rank's GPU has a part in may never end, so somebody is asked now and then. A step waits
// here for milliseconds.
void CudaDevice::wait_for(const cuda::Event& event) const {
  if (!ask_) return event.wait();
  while (!event.reached()) {
    ask_();
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

// Of a place where the stream that computes was marked, copies down before it may still travel.
void CudaDevice::wait_for(std::uint64_t place) {
  const Mark* soonest = nullptr;
  for (const Mark& mark : marks_)
    if (mark.place >= place && (!soonest || mark.place < soonest->place)) soonest = &mark;
  if (soonest) wait_for(soonest->reached);
  down_.hand_over(place);
  faults_.say();
}

}  // namespace weft
