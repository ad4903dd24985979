#include "weft/tensor/storage.h"

#include "weft/tensor/device.h"

namespace weft {

const char* name(Use use) {
  switch (use) {
    case Use::weights:
      return "weights";
    case Use::gradients:
      return "gradients";
    case Use::optimizer:
      return "optimizer";
    case Use::activations:
      return "activations";
    case Use::workspace:
      return "workspace";
    case Use::communication:
      return "communication";
  }
  return "unknown";
}

void StorageRef::release() {
  if (storage_ && storage_->holders_.fetch_sub(1, std::memory_order_acq_rel) == 1)
    storage_->device().recycle(*storage_);
}

void Fence::wait() const {
  if (device_) device_->wait_for(place_);
}

}  // namespace weft
