// The table of this instruction set's loops.
#include "weft/backend/cpu/fast/loops.h"

#include "weft/backend/cpu/fast/loops/delta.h"

namespace weft::fast::WEFT_ISA {

extern const ElementwiseLoops elementwise;
extern const DropoutLoops dropouts;
extern const ActivationLoops activations;
extern const NormLoops norms;
extern const SoftmaxLoops softmaxes;
extern const LossLoops losses;
extern const SumLoops sums;
extern const RopeLoops ropes;
extern const FilterLoops filters;
constexpr DeltaLoops deltas = {.forward = delta_forward,
                               .backward = delta_backward,
                               .state_forward = state_forward,
                               .state_backward = state_backward,
                               .state_give = state_give};
extern const OptimizerLoops optimizers;
extern const BlockLoops blocks;

extern const Loops loops;
const Loops loops = {elementwise, dropouts, activations, norms,  softmaxes,  losses,
                     sums,        ropes,    filters,     deltas, optimizers, blocks};

}  // namespace weft::fast::WEFT_ISA
