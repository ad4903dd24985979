// Memory of the host as a device: for messages between ranks and for copies that wait to be written.
#pragma once

#include <memory>

#include "weft/tensor/device.h"

namespace weft {

/// It computes nothing. Memory comes from the heap and goes back at once; bad_alloc where there is none.
std::unique_ptr<Device> host_memory();

}  // namespace weft
