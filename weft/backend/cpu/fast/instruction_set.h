// The instruction sets that our own loops are compiled for, and which of them this processor runs.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace weft::fast {

/// One set of sources (loops/*.cpp) is compiled once for each of these, into a namespace of its name. From
/// the least to the most: a processor that runs one runs those before it.
enum class InstructionSet : std::uint8_t {
  generic,      // any 64-bit processor
  avx2,         // AVX2, FMA, F16C
  avx512,       // AVX-512 F, BW, DQ, VL
  avx512_bf16,  // and products of bf16 pairs
  avx512_amx,   // and tiles of them: AMX
};
inline constexpr std::array<InstructionSet, 5> instruction_sets = {
    InstructionSet::generic, InstructionSet::avx2, InstructionSet::avx512, InstructionSet::avx512_bf16,
    InstructionSet::avx512_amx};

const char* name(InstructionSet set);
/// Whether this build has loops for it: a sanitized one, and the demo's, have those of the processor that
/// they were made on.
bool is_built(InstructionSet set);
/// Whether this processor and its operating system run it.
bool processor_runs(InstructionSet set);
/// Both.
bool runs_here(InstructionSet set);
/// The most that runs here. A program that was built for another kind alone has none, and refuses.
InstructionSet best_here();
/// The same of what runs on some processor and what was built.
InstructionSet best_of(const std::vector<InstructionSet>& run, const std::vector<InstructionSet>& built);
/// All that run here, generic first: what tests walk over.
std::vector<InstructionSet> all_here();

/// The same thing as each namespace made it: `choose(set, {&generic::sums, &avx2::sums, &avx512::sums,
/// &avx512_bf16::sums, &avx512_bf16::sums})`: a set that adds nothing to a thing takes that of the set
/// before.
template <class Made>
const Made& choose(InstructionSet set, const std::array<const Made*, 5>& made) {
  return *made[std::size_t(set)];
}

}  // namespace weft::fast
