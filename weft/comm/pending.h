// Work under way between ranks.
#pragma once

#include <utility>

#include "weft/base/inline_function.h"

namespace weft {

/// A word takes its turn behind what the tensors' device was asked for before it. After wait() comes what the
/// device is asked for next: that is an order on the device, and the host itself waits only where the host is
/// the device; who wants to read a result asks the device for a copy. Holds the tensors it touches until
/// then. Dropping one waits too, so that no memory is reused under a peer's hands; a failure is then lost, so
/// do wait.
class [[nodiscard]] Pending {
 public:
  using Finish = InlineFunction<480>;

  Pending() = default;
  explicit Pending(Finish finish) : finish_(std::move(finish)) {}
  Pending(Pending&&) noexcept = default;
  Pending& operator=(Pending&& other) noexcept {
    if (this != &other) {
      settle();
      finish_ = std::move(other.finish_);
    }
    return *this;
  }
  ~Pending() { settle(); }

  void wait() {
    Finish finish = std::move(finish_);
    if (finish) finish();
  }
  explicit operator bool() const { return bool(finish_); }

 private:
  void settle() noexcept {
    try {
      wait();
    } catch (...) {  // the communicator is broken: every later word of it fails with the first cause
    }
  }
  Finish finish_;
};

}  // namespace weft
