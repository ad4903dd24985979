// A product of few rows, where reading the second operand is what takes time.
#pragma once

#include "weft/backend/cpu/product/run.h"

namespace weft::product {

/// The plan is one of few rows; workspace: its bytes(), aligned to 64.
void run_few(const Problem& problem, const Loops& loops, const Plan& plan, float* workspace);

}  // namespace weft::product
