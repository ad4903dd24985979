// The delta rule's loops as each instruction set's namespace holds them.
#pragma once

#include "weft/backend/cpu/fast/delta_job.h"

namespace weft::fast::WEFT_ISA {

void delta_forward(const DeltaJob& job, const DeltaTask& task, float* workspace);
void delta_backward(const DeltaJob& job, const DeltaTask& task, float* workspace);

}  // namespace weft::fast::WEFT_ISA
