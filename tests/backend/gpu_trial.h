// What tests of the emulated GPU share: arrays on it, and what it finds under several orders.
#pragma once

#include <cuda_runtime.h>
#include <runtime.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/gpu/emulated.h"

namespace weft::testing {

/// Stream-ordered memory of the device.
class Array {
 public:
  explicit Array(std::size_t count, cudaStream_t on = nullptr) : count_(count), stream_(on) {
    cudaMallocAsync(&at_, count * sizeof(float), on);
  }
  explicit Array(const std::vector<float>& from, cudaStream_t on = nullptr) : Array(from.size(), on) {
    cudaMemcpyAsync(at_, from.data(), count_ * sizeof(float), cudaMemcpyHostToDevice, on);
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { cudaFreeAsync(at_, stream_); }
  float* data() const { return static_cast<float*>(at_); }
  std::vector<float> read() const {
    std::vector<float> out(count_);
    cudaMemcpyAsync(out.data(), at_, count_ * sizeof(float), cudaMemcpyDeviceToHost, stream_);
    return out;
  }

 private:
  void* at_ = nullptr;
  std::size_t count_;
  cudaStream_t stream_;
};

/// Numbers that differ.
inline std::vector<float> counted(std::size_t count) {
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = float(i % 97) - 40;
  return out;
}

/// What was found when act ran lazily, eagerly and in two shuffled orders: all sentences of each.
inline std::vector<std::string> found_by(const std::function<void()>& act) {
  std::vector<std::string> out;
  for (const unsigned pace : {0U, 1U, 5U, 6U}) {
    emulated::set_pace(pace);
    act();
    cudaDeviceSynchronize();
    std::string& all = out.emplace_back();
    for (const std::string& finding : emulated::take_reports()) all += finding + "; ";
  }
  return out;
}

}  // namespace weft::testing
