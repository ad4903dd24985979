// What --inject asks of a rank, done at the beginning of a step.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "weft/train/replica.h"

namespace weft::cli {

/// Of the rank that it is given; nothing where no fault is asked of it.
std::function<void(std::int64_t step, Replica& replica)> faults_of_rank(const std::string& faults, int rank);

}  // namespace weft::cli
