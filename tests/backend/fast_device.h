// A device that computes with the fast kernels of a chosen instruction set, on plain memory.
#pragma once

#include "weft/backend/cpu/fast/kernels.h"
#include "weft/tensor/host_memory.h"

namespace weft::testing {

class FastDevice final : public HostMemory {
 public:
  /// What falls back on plain loops is counted.
  FastDevice(fast::InstructionSet set, int threads, PlainCalls* plain = nullptr) : kernels_(threads, set) {
    kernels_.count_in(plain);
  }
  const char* name() const override { return "fast"; }
  Kernels& kernels() override { return kernels_; }
  int threads() const override { return kernels_.threads(); }

 private:
  FastKernels kernels_;
};

}  // namespace weft::testing
