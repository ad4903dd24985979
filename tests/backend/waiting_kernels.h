// Kernels of a device that does what it is asked for later, for tests that ask what it refuses.
#pragma once

#include "weft/tensor/kernels.h"

namespace weft::conformance {

/// Waits after each call, so that what is wrong with it is said at once.
class WaitingKernels final : public Kernels {
 public:
  WaitingKernels(Device& device, Kernels& kernels) : device_(device), kernels_(kernels) {}
  const char* name() const override { return kernels_.name(); }

 private:
  void hand_on(const KernelCall& call) override {
    call.on(kernels_);
    device_.synchronize();
  }
  Device& device_;
  Kernels& kernels_;
};

}  // namespace weft::conformance
