// Which kernels a processor device computes with.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/backend/cpu/device.h"

namespace weft {

/// Adds a sentence to notes for every choice that is not the one asked for.
std::unique_ptr<Kernels> choose_kernels(CpuDevice& device, CpuKernels asked, std::vector<std::string>& notes);

}  // namespace weft
