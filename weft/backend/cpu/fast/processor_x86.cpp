// What an x86 processor says of itself.
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "weft/backend/cpu/fast/instruction_set.h"

namespace weft::fast {
namespace {

/// What the processor answers to a question of cpuid; nothing where it does not know the question.
struct Answer {
  unsigned a = 0, b = 0, c = 0, d = 0;
};
Answer ask(unsigned leaf, unsigned part = 0) {
  Answer found;
  if (__get_cpuid_count(leaf, part, &found.a, &found.b, &found.c, &found.d) == 0) return {};
  return found;
}

// The compilers' own question leaves this one out.
bool has_f16c() { return (ask(1).c & bit_F16C) != 0; }

bool has_avx2() {
  // These also ask whether the operating system saves the wide registers.
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 && has_f16c();
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
}

bool has_avx512_bf16() {
  constexpr unsigned bf16_pairs = 1U << 5;
  return has_avx512() && (ask(7, 1).a & bf16_pairs) != 0;
}

/// Linux keeps room for a thread's tiles only in a process that has asked for it, which is done here; asking
/// again changes nothing.
bool may_use_tiles() {
  constexpr long ask_for_state = 0x1023;  // ARCH_REQ_XCOMP_PERM, which older headers lack
  constexpr long tiles = 18;              // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, ask_for_state, tiles) == 0;
}

bool has_avx512_amx() {
  constexpr unsigned bf16_products = 1U << 22;
  constexpr unsigned tiles = 1U << 24;
  constexpr unsigned both = bf16_products | tiles;
  return has_avx512_bf16() && (ask(7).d & both) == both && may_use_tiles();
}

}  // namespace

bool processor_runs(InstructionSet set) {
  switch (set) {
    case InstructionSet::generic:
      return true;
    case InstructionSet::avx2:
      return has_avx2();
    case InstructionSet::avx512:
      return has_avx512();
    case InstructionSet::avx512_bf16:
      return has_avx512_bf16();
    case InstructionSet::avx512_amx:
      return has_avx512_amx();
  }
  return false;
}

}  // namespace weft::fast
