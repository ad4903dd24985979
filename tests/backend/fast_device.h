// A device that computes with the fast kernels of a chosen instruction set, on plain memory.
#pragma once

#include "weft/backend/cpu/fast/kernels.h"
#include "weft/tensor/host_memory.h"

namespace weft::testing {

class FastDevice final : public HostMemory {
 public:
  FastDevice(fast::InstructionSet set, int threads) : kernels_(threads, set) {}
  const char* name() const override { return "fast"; }
  Kernels& kernels() override { return kernels_; }
  int threads() const override { return kernels_.threads(); }

 private:
  FastKernels kernels_;
};

}  // namespace weft::testing
