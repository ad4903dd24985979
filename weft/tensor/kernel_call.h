// A kernel's call as a value: whoever stands before the kernels of somebody else hands calls on, all alike.
#pragma once

#include <memory>

#include "weft/tensor/meter.h"

namespace weft {

class Kernels;

struct KernelName {
  const char* op;
  Work work;
};

/// Looks at the caller's operands, and so lasts as long as the call does.
class KernelCall {
 public:
  explicit KernelCall(const KernelName& name) : name_(name) {}
  virtual ~KernelCall() = default;
  const char* op() const { return name_.op; }
  Work work() const { return name_.work; }
  virtual void on(Kernels& kernels) const = 0;
  /// For later: holds tensors and options itself. Lists of the host (Groups::offsets) stay the caller's.
  virtual std::unique_ptr<KernelCall> kept() const = 0;

 private:
  KernelName name_;
};

}  // namespace weft
