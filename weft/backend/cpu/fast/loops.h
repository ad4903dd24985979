// The loops that every instruction set has: what the kernels call, row by row or piece by piece, after they
// have cut the work for the threads. Plain structs and pointers, because this is read by code for every
// instruction set.
#pragma once

#include <cstdint>

#include "weft/backend/cpu/fast/instruction_set.h"

namespace weft::fast {

/// The types that layers compute in.
enum class Type : std::uint8_t { f32, bf16, f16 };

/// Numbers in a row, each operand of its own type.
struct In {
  const void* from;  // may be null where the loop says so
  Type type;
};
/// A row to write. past: the whole result is larger than the caches, so its lines go past them (aligned to
/// 64) and need not be read first.
struct Out {
  void* to;
  Type type;
  bool past;
};

struct ElementwiseLoops {
  void (*copy)(Out out, In in, std::int64_t n);
  void (*add)(Out out, In a, In b, std::int64_t n);
  void (*multiply)(Out out, In a, In b, std::int64_t n);
  /// out += alpha x
  void (*add_scaled)(Out out, In x, float alpha, std::int64_t n);
  /// y = alpha x
  void (*scale)(Out y, In x, float alpha, std::int64_t n);
  float (*dot)(In a, In b, std::int64_t n);
  /// Makes what was written past the caches visible to other threads.
  void (*finish)();
};

/// All loops of one instruction set.
struct Loops {
  const ElementwiseLoops& elementwise;
};
const Loops& loops(InstructionSet set);

}  // namespace weft::fast
