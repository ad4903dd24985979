// Which kernels a processor device computes with.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/backend/cpu/device.h"
#include "weft/backend/cpu/product/products.h"
#include "weft/backend/plain_calls.h"

namespace weft {

/// What decides who multiplies; the same for a device that only counts.
struct ProductChoice {
  CpuKernels kernels = CpuKernels::best;
  int threads = 1;
  bool exact = false;
  std::shared_ptr<ProductTrials> trials = nullptr;
  PlainCalls* plain_calls = nullptr;  // what falls back on plain loops is counted here
};
/// Adds a sentence to notes for every engine that is not used although it was asked for.
product::Products choose_products(const ProductChoice& choice, std::vector<std::string>& notes);

std::unique_ptr<Kernels> choose_kernels(const ProductChoice& choice, std::vector<std::string>& notes);

}  // namespace weft
