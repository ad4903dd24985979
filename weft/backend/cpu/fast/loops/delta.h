// The loops of the delta rule and of state spaces as each instruction set's namespace holds them.
#pragma once

#include "weft/backend/cpu/fast/delta_job.h"

namespace weft::fast::WEFT_ISA {

void delta_forward(const DeltaJob& job, const DeltaTask& task, float* workspace);
void delta_backward(const DeltaJob& job, const DeltaTask& task, float* workspace);
void state_forward(const DeltaJob& job, const DeltaTask& task, float* workspace);
void state_backward(const DeltaJob& job, const DeltaTask& task, float* workspace);
void state_give(const DeltaJob& job, const DeltaTask& task, const float* dq);

}  // namespace weft::fast::WEFT_ISA
