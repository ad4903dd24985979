// Where the processor is no x86, there is one set of loops.
#include "weft/backend/cpu/fast/attention.h"
#include "weft/backend/cpu/fast/loops.h"

namespace weft::fast {

namespace generic {
extern const Loops loops;
extern const AttentionLoops attention_loops;
}  // namespace generic

const Loops& loops(InstructionSet) { return generic::loops; }

const AttentionLoops& attention_loops(InstructionSet) { return generic::attention_loops; }

}  // namespace weft::fast
