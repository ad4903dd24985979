// Names over what a device is asked for, in each other as the calls are.
#pragma once

#include <cstdint>
#include <string_view>

#include "weft/tensor/device.h"

namespace weft {

/// As long as it lives, what its thread asks of the device has this name; nothing where nobody reads names.
class Named {
 public:
  Named(Device& device, std::string_view name, std::int64_t number = -1)
      : device_(device.names_work() ? &device : nullptr) {
    if (device_) device_->begin_name(name, number);
  }
  Named(const Named&) = delete;
  Named& operator=(const Named&) = delete;
  ~Named() {
    if (device_) device_->end_name();
  }

 private:
  Device* device_;
};

}  // namespace weft
