// The loops that every instruction set has: what the kernels call, row by row or piece by piece, after they
// have cut the work for the threads. Plain structs and pointers, because this is read by code for every
// instruction set.
#pragma once

#include <cstdint>

#include "weft/backend/cpu/fast/delta_job.h"
#include "weft/backend/cpu/fast/instruction_set.h"
#include "weft/tensor/kinds.h"

namespace weft::fast {

/// The types that layers compute in.
enum class Type : std::uint8_t { f32, bf16, f16 };

/// Bytes of an element.
[[gnu::always_inline]] constexpr std::int64_t size_of(Type type) { return type == Type::f32 ? 4 : 2; }

/// Numbers in a row, each operand of its own type.
struct In {
  const void* from;  // may be null where the loop says so
  Type type;
};
/// How a row is walked: with the type of its operands and results settled where all have the same. Numbers
/// that a loop takes as const float* or float* lie in the order of its walk: as they are, but for bf16 as
/// arrange() makes them.
enum class Walk : std::uint8_t { mixed, f32, bf16 };
template <class... Types>
[[gnu::always_inline]] constexpr Walk walk_of(Type first, Types... others) {
  if (first == Type::f16 || (... || (others != first))) return Walk::mixed;
  return first == Type::f32 ? Walk::f32 : Walk::bf16;
}

/// A row to write. past: the whole result is larger than the caches, so its lines go past them (aligned to
/// 64) and need not be read first.
struct Out {
  void* to;
  Type type;
  bool past;
};

struct ElementwiseLoops {
  void (*fill)(Out out, float value, std::int64_t n);
  void (*copy)(Out out, In in, std::int64_t n);
  void (*add)(Out out, In a, In b, std::int64_t n);
  void (*multiply)(Out out, In a, In b, std::int64_t n);
  /// out += alpha x
  void (*add_scaled)(Out out, In x, float alpha, std::int64_t n);
  /// y = alpha x
  void (*scale)(Out y, In x, float alpha, std::int64_t n);
  float (*dot)(In a, In b, std::int64_t n);
  /// A vector in the order of Walk::bf16; and back again, in place.
  void (*arrange)(float* to, const float* from, std::int64_t n);
  void (*restore)(float* x, std::int64_t n);
  /// Makes what was written past the caches visible to other threads.
  void (*finish)();
};

/// The words of a row's elements (base/random.h): element `first` and those after it.
struct DropRow {
  std::uint32_t key[2], upper[2];
  std::uint64_t first;
  std::uint32_t below;  // words below this are dropped; 0 drops none and draws none
  float scale;          // of what is kept
};
/// bias f32, or null.
struct DropoutLoops {
  void (*dropout)(Out y, In x, const DropRow& row, std::int64_t n);
  /// out = residual + dropout(x + bias)
  void (*bias_dropout_add)(Out out, In x, const float* bias, In residual, const DropRow& row, std::int64_t n);
};

/// bias f32, or null.
struct ActivationLoops {
  void (*forward)(Activation, Out y, In x, const float* bias, std::int64_t n);
  void (*backward)(Activation, Out dx, In dy, In x, const float* bias, std::int64_t n);
  /// x and bias hold n of the gate, then n that it lets through; dx likewise.
  void (*gated)(const Gate&, Out y, In x, const float* bias, std::int64_t n);
  void (*gated_backward)(const Gate&, Out dx, In dy, In x, const float* bias, std::int64_t n);
};

struct NormShape {
  NormKind kind;
  float epsilon;
  std::int64_t n;
};
struct NormRow {
  float mean, rstd;
};
/// Rows of one type: the first, and how many bytes lie between one and the next.
struct InRows {
  In first;
  std::int64_t step;
};
struct OutRows {
  Out first;
  std::int64_t step;
};
struct NormRows {
  OutRows y;
  InRows x;
  std::int64_t count;
  float* mean;  // may be null
  float* rstd;
  const NormRow* known = nullptr;  // the statistics of a single wide row
};
/// A wide row whose statistics are known, all of one type, that is still to be written.
struct NormDue {
  Out y;
  In x;
  NormRow stats;
  const float* gain;
  const float* bias;
};
/// residual + dropout(x + bias); bias f32 or null.
struct SumRow {
  Out sum;
  void* copy;  // as long and of the same type: the sum too, for forward() to read
  In x;
  const float* bias;
  In residual;
  DropRow drop;
};
struct NormBackward {
  OutRows dx;
  InRows dy, residual, x;  // residual from null where there is none
  std::int64_t count;
  const float* mean;  // may be null
  const float* rstd;
};
/// Rows of at most so many elements are best given four at a time.
inline constexpr std::int64_t narrow_row = 512;
/// gain f32; bias f32 or null.
struct NormLoops {
  void (*forward)(const NormRows& rows, const float* gain, const float* bias, const NormShape& shape);
  void (*sum)(const SumRow& row, std::int64_t n);
  /// The same for a row of more than narrow_row elements, and the sum's statistics, with the bits of
  /// forward().
  /// Where not null, the row before is written meanwhile.
  NormRow (*sum_wide)(const SumRow& row, const NormDue* before, const NormShape& shape);
  /// dx = (residual +) rstd (g - mean(g) - xhat mean(g xhat)), g = dy gain; dgain += dy xhat, dbias += dy
  /// where not null.
  void (*backward)(const NormBackward& rows, const float* gain, float* dgain, float* dbias,
                   const NormShape& shape);
};

struct SoftmaxLoops {
  /// row: room for n.
  void (*forward)(Out y, In x, float* row, std::int64_t n);
  float (*greatest)(In x, std::int64_t n);
  /// Of exp(x - greatest).
  double (*sum)(In x, float greatest, std::int64_t n);
  /// terms *= -exp(sinks - lse)
  void (*sink_terms)(float* terms, const float* lse, const float* sinks, std::int64_t n);
};

/// What a row of logits becomes: slope exp(logit - greatest), plus extra at the target.
struct LossRow {
  float greatest, slope, extra;
  std::int64_t target;  // -1: not here
};
struct LossLoops {
  void (*backward)(Out logits, const LossRow& row, std::int64_t n);
};

/// A sum as integers times powers of two: value = sum over i of integer[i] * 2^exponent[i].
struct ExactPiece {
  std::int64_t integer[4];
  int exponent[4];
};
inline constexpr std::int64_t exact_piece = 4096;
enum class Term : std::uint8_t { number, square };

struct SumLoops {
  double (*sum)(In x, std::int64_t n);
  /// Of at most exact_piece numbers or squares; false where they are not all finite or too far apart for four
  /// integers. row: room for n.
  bool (*exact)(In x, Term term, std::int64_t n, float* row, ExactPiece& piece);
  /// NaN where there is one.
  float (*greatest_size)(In x, std::int64_t n);
  /// -1 where there is none.
  std::int64_t (*first_nonfinite)(In x, std::int64_t n);
  std::int64_t (*zeros)(In x, std::int64_t n);
};

/// Turns pairs of one head in place. halves: pair i is elements i and i + pairs, and cosines and sines hold a
/// number a pair. Else pair i is elements 2 i and 2 i + 1, cosines hold each number twice, and sines too,
/// with a minus first.
struct RopeLoops {
  void (*halves)(Out x, const float* cosines, const float* sines, std::int64_t pairs);
  void (*neighbours)(Out x, const float* cosines, const float* sines, std::int64_t pairs);
};

/// The rows of one sequence over some steps, n channels each: y = silu(bias + sum over j of weight[j]
/// x[i - taps + 1 + j]), weight f32 [taps, n], bias f32 [n] or null.
struct FilterRows {
  InRows x;
  const float* weight;
  const float* bias;
  std::int64_t weight_step;    // floats from the weights of one tap to those of the next
  std::int64_t taps, count;    // count: steps
  std::int64_t before, after;  // steps that there are on either side
};
/// dx and dy likewise. dweight, rows `weight_step` apart, is added to, and dbias where there is a bias; room:
/// of filter_room(taps, n) floats.
struct FilterSlopes {
  OutRows dx;
  InRows dy;
  float* dweight;
  float* dbias;
  float* room;
};
inline constexpr std::int64_t filter_steps = 4;  // that go at once
constexpr std::int64_t filter_room(std::int64_t taps, std::int64_t n) {
  return (filter_steps + taps - 1) * (n + 16);
}
struct FilterLoops {
  void (*forward)(OutRows y, const FilterRows& rows, std::int64_t n);
  void (*backward)(const FilterSlopes& to, const FilterRows& rows, std::int64_t n);
};

/// The update of n weights; copy.to may be null.
struct AdamRow {
  float* master;
  float* m;
  float* v;
  In grad;
  Out copy;
};
struct AdamStep {
  float beta1, rest1, beta2, rest2;  // rest = 1 - beta
  float step, root, epsilon;         // m <- ..., v <- ..., w -= step m / (sqrt(v) root + epsilon)
  float keep;                        // w *= keep first
  float decay;                       // grad += decay w
  float grad_scale;
};
struct SgdRow {
  float* master;
  float* momentum;  // may be null
  In grad;
  Out copy;
};
struct SgdStep {
  float rate, momentum, decay, grad_scale;
};
/// Moments of any type (tensor/args.h says what they hold).
enum class MomentType : std::uint8_t { f32, bf16, f16, f8e5m2 };
struct Moment {
  std::byte* from;
  MomentType type;
};
struct NarrowRow {
  float* master;
  Moment m, v;
  In grad;
  Out copy;
};
struct LionStep {
  float beta1, rest1, beta2, rest2;
  float rate, keep, grad_scale;
};
/// grad becomes scale1 m / (sqrt(root2 v + inside) + outside) + decay w.
struct DirectionRow {
  const float* master;
  float* m;
  float* v;
  float* grad;
};
struct DirectionStep {
  float beta1, rest1, beta2, rest2;
  float scale1, scale2, inside, outside;
  float decay;       // of the direction
  float grad_decay;  // of the gradient
  float grad_scale;
};
struct OptimizerLoops {
  void (*adam)(const AdamRow& row, const AdamStep& step, std::int64_t n);
  void (*narrow_adam)(const NarrowRow& row, const AdamStep& step, std::uint32_t dice, std::int64_t n);
  void (*sgd)(const SgdRow& row, const SgdStep& step, std::int64_t n);
  void (*lion)(const SgdRow& row, const LionStep& step, std::int64_t n);
  void (*direction)(const DirectionRow& row, const DirectionStep& step, std::int64_t n);
  /// w = keep w - rate x
  void (*descend)(float* master, Out copy, const float* x, float rate, float keep, std::int64_t n);
  /// n is a multiple of 8.
  void (*take_signs)(std::uint8_t* bits, float* x, float size, std::int64_t n);
  void (*add_signs)(float* out, const std::uint8_t* bits, float size, std::int64_t n);
};

/// One block of numbers as a scale, of four bytes, and codes of 8 or 4 bits (tensor/args.h).
struct BlockLoops {
  void (*pack)(std::uint8_t* packed, In x, int bits, std::int64_t n);
  void (*unpack)(Out out, const std::uint8_t* packed, int bits, std::int64_t n);
  void (*add_unpacked)(Out out, const std::uint8_t* packed, int bits, std::int64_t n);
};

/// All loops of one instruction set.
struct Loops {
  const ElementwiseLoops& elementwise;
  const DropoutLoops& dropout;
  const ActivationLoops& activation;
  const NormLoops& norm;
  const SoftmaxLoops& softmax;
  const LossLoops& loss;
  const SumLoops& sums;
  const RopeLoops& rope;
  const FilterLoops& filter;
  const DeltaLoops& delta;
  const OptimizerLoops& optimizer;
  const BlockLoops& blocks;
};
const Loops& loops(InstructionSet set);

}  // namespace weft::fast
