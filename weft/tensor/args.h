// The options of the computations that a backend offers, one struct each; ops check them, backends trust
// them.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "weft/base/random.h"
#include "weft/tensor/kinds.h"
#include "weft/tensor/tensor.h"

namespace weft {

// ---- products ---------------------------------------------------------------------------------------------

enum class Read : std::uint8_t { as_is, transposed };

struct MatmulArgs {
  Read a = Read::as_is;
  Read b = Read::as_is;
  bool accumulate = false;  // out += instead of out =
  Tensor bias = {};         // [n], added to every row; [groups, n] in grouped products
  /// K is cut into this many equal slabs, whose products are added as a balanced tree in f32: what exact mode
  /// asks of contractions that tensor parallelism may cut.
  int slabs = 1;
};

/// A product that an activation follows on its way to memory, or that goes back through one.
struct ActivatedArgs {
  MatmulArgs product;
  Activation f = Activation::gelu;
};

/// Where a product's part of a gradient belongs: on top of what lies there, or in its place.
struct GradPlace {
  Tensor sum;
  bool on_top = true;
};
/// What a linear layer owes, in f32: of its weight, and of its bias, which is always added to.
struct LinearGrads {
  GradPlace dw;
  Tensor db;
};

// ---- eight bits
// ------------------------------------------------------------------------------------------------

/// Sizes of matrices of f8e4m3 and f8e5m2 are multiples of this: what tensor cores read at once.
inline constexpr std::int64_t f8_unit = 16;
/// The largest number of a type of eight bits: what the greatest of a tensor is scaled to.
constexpr float largest_of(Dtype dtype) { return dtype == Dtype::f8e5m2 ? 57344.0F : 448.0F; }

/// What of a matrix of eight bits shares a scale: all of it, or blocks of it, each with a power of two of its
/// own (f8_blocks.h). Lines are so many elements of a row.
enum class F8Blocks : std::uint8_t { whole, lines_of_128, squares_of_128, lines_of_32 };

/// A matrix x [r, c] in eight bits, as it lies and turned; what lies beyond x up to the next unit is zero.
/// Either may be empty.
struct Quantized {
  Tensor codes;   // [r', c']
  Tensor turned;  // [c', r']
  /// By blocks: one over what each was multiplied by. Lines are those of what they stand for: turned codes
  /// are others then.
  Tensor inverses = {}, turned_inverses = {};
};
/// out (+)= a b^T times both inverses (+ bias)
struct ScaledArgs {
  Tensor a_inverse, b_inverse;  // one over what a and b were multiplied by: f32 [1], or of their blocks
  Tensor bias = {};             // [n], added to every row
  bool accumulate = false;      // out += instead of out =
  F8Blocks a_blocks = F8Blocks::whole, b_blocks = F8Blocks::whole;
  bool in_blocks() const { return a_blocks != F8Blocks::whole; }
};
/// What is kept of a tensor's scale, a row of f32: the scale, one over it, and the greatest |x| that was met,
/// now and in the steps before.
struct ScaleRow {
  static constexpr std::int64_t scale = 0, inverse = 1, met = 2;
};
/// scale = largest / greatest / 2^margin, where the greatest is what was met now or, with of_window, the
/// greatest of all that is remembered. Nothing but zeros were met: the scale stays.
struct ScaleArgs {
  Dtype dtype = Dtype::f8e4m3;
  int margin = 0;
  bool of_window = false;
};

/// Groups of consecutive rows: group g of a and out is rows [offsets[g], offsets[g + 1]).
struct Groups {
  std::span<const std::int64_t> offsets = {};  // the host's
  /// i64 [groups + 1]: the same where the device alone knows them (Kernels::multiplies_unseen_groups)
  Tensor unseen = {};
  std::int64_t count() const { return (unseen ? unseen.dim(0) : std::ssize(offsets)) - 1; }
};

// ---- random numbers by address
// ------------------------------------------------------------------------------

/// Where an element stands in the whole job, so that its random number is the same under every layout: the
/// address of its row of the batch (base/random.h), and element = position * width + channel.
struct DropoutArgs {
  float probability = 0;     // of being dropped; kept elements are divided by 1 - probability
  Address at = {};           // its sample is taken from samples
  Tensor samples = {};       // i64 [b], the global sample of every row of the batch
  Tensor positions = {};     // i32 [s], the global position of every step of the sequence
  std::int64_t width = 0;    // channels of the whole tensor
  std::int64_t channel = 0;  // the first one held here
};

/// A block of a matrix that nobody may hold whole: elements are numbered by their place in the whole.
struct RandomBlock {
  Address at = {};
  std::int64_t row = 0, column = 0;  // where the block starts
  std::int64_t columns = 0;          // width of the whole matrix
};

// ---- norms
// --------------------------------------------------------------------------------------------------

struct NormArgs {
  NormKind kind = NormKind::layer;
  float epsilon = 1e-5F;
  bool one_plus_gain = false;  // the 1p form: gain is stored around zero
};
/// bias is empty for RMS norms, and may be for layer norms.
struct NormWeights {
  Tensor gain, bias;  // [h]
};
/// mean is empty for RMS norms.
struct NormStats {
  Tensor mean, rstd;  // f32 [t]
};
/// What backward reads of forward.
struct NormSaved {
  Tensor x;
  NormStats stats;
  Tensor gain;
};
/// dgain and dbias are added to, in f32; either may be empty: nobody asks (and there is no dbias of a norm
/// without a bias). Where dx has more bits than what reads it next, that may ask for it once more in a type
/// of its own.
struct NormGrads {
  Tensor dx, dgain, dbias;
  Tensor rounded = {};  // dx; may be empty
};
/// The end of one half of a block and the start of the next, in one pass over memory.
struct SumNormOut {
  Tensor sum, y;
  NormStats stats;
};
struct SumNormIn {
  Tensor x, bias, residual;  // bias may be empty
  DropoutArgs dropout;
};

// ---- attention
// ------------------------------------------------------------------------------------------------

enum class Mask : std::uint8_t { none, causal };

struct AttentionArgs {
  float scale = 1;
  /// Scaled scores s become cap tanh(s / cap) (0: they stay as they are). Not with a bias.
  float cap = 0;
  Mask mask = Mask::none;
  /// Causal: query i sees key j where j <= i + diagonal. Also what the window counts from.
  std::int64_t diagonal = 0;
  /// Sliding window: query i sees key j only where j > i + diagonal - window (0: no window).
  std::int64_t window = 0;
  /// Query i sees key j only where (query0 + i) / chunk is (key0 + j) / chunk (0: wherever they stand). ops
  /// cuts what kernels are asked for, and these do not look at it.
  std::int64_t chunk = 0;
  /// Query i of row b sees key j only where segments are equal and not negative: documents, and padding,
  /// which sees nothing and is seen by nobody.
  Tensor query_segments = {}, key_segments = {};  // i32 [b, sq], [b, sk]; both or neither
  /// Of relative positions, added to the scaled scores: query i and key j take column i - j + bias0.
  Tensor bias = {};  // f32 [n, distances]
  std::int64_t bias0 = 0;
  /// A score for each head that no key has: one more part of every softmax, whose value is zero. ops merges
  /// it into what kernels make (ops/sinks.h), and these do not look at it.
  Tensor sinks = {};  // [n]
  /// Where it is given, ops raises it to the greatest score of each head, as softmax sees scores: scaled,
  /// capped, with its bias, of pairs that see each other. Kernels do not look at it. One that is no number is
  /// infinite there.
  Tensor greatest = {};  // f32 [n]
  /// Dropout of probabilities. Element = ((head0 + head) << 40 | query position << 20 | key position), of
  /// sample b.
  float dropout = 0;  // of being dropped; a word below share(dropout) is
  Address at = {};
  Tensor samples = {};  // i64 [b]
  std::int64_t head0 = 0, query0 = 0, key0 = 0;
};
/// q [s, b, g, r, d] where query head = group * r + i; k [s, b, g, d], v [s, b, g, d'], as wide as a key or
/// not; any strides but the last, which is 1.
struct Attended {
  Tensor q, k, v;
};
struct AttentionOut {
  Tensor o;    // [sq, b, g, r, d']
  Tensor lse;  // f32 [b, n, sq]; -inf where a query sees nothing (its o is zero)
  /// A query's greatest score, where it is asked for: f32 [b, n, sq]; -inf where it sees nothing, inf where
  /// one of them is no number.
  Tensor greatest = {};
};
/// Shapes of q, k and v; accumulate adds to these. dbias (f32, like bias) is added to where it is given: a
/// sum over the batch, and over queries along a diagonal. So is dsinks (f32, like sinks), by ops: a sum over
/// the batch and over queries.
struct AttentionGrads {
  Tensor dq, dk, dv;
  Tensor dbias = {};
  bool accumulate = false;
  Tensor dsinks = {};
};

// ---- layers that remember
// -------------------------------------------------------------------------------------------

/// Filters see so many steps at most.
inline constexpr std::int64_t most_taps = 8;
struct Filters {
  Tensor weight;     // [g, c, taps]
  Tensor bias = {};  // [g, c]; none: nothing is added
};
/// dx is written, dweight and dbias f32 added to.
struct ConvolveGrads {
  Tensor dx, dweight, dbias = {};
};
/// Queries and keys of the gated delta rule have so many channels at most.
inline constexpr std::int64_t most_delta_channels = 256;
/// A head has a memory S [d, d']; at each step it fades, something is written where k_i points, and read
/// where q_i does:
///
///   S_i = a_i S_(i-1) + k_i u_i^T,   o_i = scale S_i^T q_i
///   a = exp(-e^speed t),   t = softplus(decay + shift)
///
/// The gated delta rule has rates, and writes as much of v_i as the memory did not say already:
///
///   u_i = sigmoid(rate_i) (v_i - a_i S_(i-1)^T k_i)
///
/// A state space (Mamba-2's) has skips instead, and adds:
///
///   u_i = t_i v_i,   o_i = scale S_i^T q_i + skip v_i
struct DeltaIn {
  Tensor q, k;          // [s, b, g, d]; each serves r heads
  Tensor v;             // [s, b, g, r, d']
  Tensor decay;         // [s, b, g, r]
  Tensor rate = {};     // the same; none in a state space
  Tensor speed, shift;  // f32 [g, r]
  Tensor skip = {};     // the same; of a state space
  float scale = 1;
  /// f32 [b, g, r, d, d'], contiguous: S before the first step, in whose place comes S behind the last. None:
  /// it begins with zeros. Backward has none.
  Tensor memory = {};

  bool corrects() const { return bool(rate); }
};
/// Those of dspeed, dshift and dskip (f32) are added to, sums over the batch and over steps.
struct DeltaGrads {
  Tensor dq, dk, dv, ddecay, drate, dspeed, dshift, dskip = {};
};

// ---- rotary positions
// -------------------------------------------------------------------------------------------

enum class Pairing : std::uint8_t { halves, neighbours };
enum class Turn : std::uint8_t { forward, backward };

struct RopeArgs {
  Tensor angles = {};     // f32 [positions, rotated / 2, 2]: cosine and sine
  Tensor positions = {};  // i32 [s], or [b, s] where they differ by row
  Pairing pairing = Pairing::halves;
  Turn turn = Turn::forward;
};

// ---- loss over a cut vocabulary
// ------------------------------------------------------------------------------------

/// Columns of the logits that are real words, as global ids [first, first + count); columns beyond are
/// padding and are in no maximum, no sum and get a zero gradient.
struct VocabularyPart {
  std::int64_t first = 0, count = 0;
  std::int64_t whole = 0;  // words in all parts
};
/// What the parts of a vocabulary must agree on. Per token, f32 [t].
struct LossParts {
  Tensor max;     // greatest logit; the caller takes the maximum over parts before the sums
  Tensor sum;     // of exp(logit - max)
  Tensor target;  // logit - max at the target, 0 where it lies in another part
};
struct LossTargets {
  Tensor ids;     // i32 [t]
  Tensor weight;  // f32 [t], the factor of each token's loss in the objective
};

// ---- optimizers
// ---------------------------------------------------------------------------------------------------

struct AdamArgs {
  float rate = 0, beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F, decay = 0;
  float correction1 = 1, correction2 = 1;  // 1 - beta^t
  float grad_scale = 1;                    // clipping and loss scale in one factor
  bool decoupled = true;                   // AdamW; else decay is added to the gradient
  bool epsilon_inside = false;             // of the root
  std::uint32_t dice = 0;  // another number for every update: which way moments of fewer bits are rounded
};
struct LionArgs {
  float rate = 0, beta1 = 0.9F, beta2 = 0.99F, decay = 0, grad_scale = 1;
};
struct DescentArgs {
  float rate = 0;
  float keep = 1;  // of the weights, before: 1 - rate decay
  Tensor by = {};  // f32 [1] or empty: what the rate is multiplied by, where only the device knows
};
/// |a| / |b| is brought into [least, most]; of_zero where a or b is zero.
struct NormRatioArgs {
  double least = 0, most = double(std::numeric_limits<float>::max());
  float of_zero = 1;
};
struct SgdArgs {
  float rate = 0, momentum = 0.9F, decay = 0, grad_scale = 1;
};
/// What a moment of f16 or 8 bits (E5M2) is multiplied with before it is stored, so that what gradients are
/// like lies in the type's range; what is larger yet is stored as the largest. Of the second moment the root
/// is stored. Others hold moments as they are.
constexpr float moment_scale(Dtype dtype) {
  return dtype == Dtype::f16 ? 0x1p13F : dtype == Dtype::f8e5m2 ? 0x1p16F : 1.0F;
}
/// Flat and contiguous. copy is the weight that layers read (bf16, f16), empty where layers read the master
/// itself. Moments are f32, or, for adam only, bf16, f16 or f8e5m2, each of its own: these are rounded up or
/// down by chance (a number's own bits and the dice), as far as it is from either: a small change would be
/// lost by rounding to the nearest, every time.
struct AdamState {
  Tensor master, m, v, copy;
};
struct SgdState {
  Tensor master, momentum, copy;
};

// ---- numbers as small integers
// -------------------------------------------------------------------------------------

/// How many numbers share a scale, and in how many bits each stands: 8 or 4. A block is its scale, an f32,
/// then its codes, of four bits two a byte, the first in the lower half: number = code scale. A scale is a
/// 127th, or a 7th, of the greatest magnitude; codes are rounded to the nearest, ties to even. A block with a
/// number that is not finite comes back as NaN, one whose scale would be below 2^-126 as zeros.
struct BlockCode {
  int bits = 8;
  std::int64_t block = 2048;
  bool accumulate = false;  // where they come back: out += instead of out =
  constexpr int most() const { return (1 << (bits - 1)) - 1; }
};
constexpr std::int64_t packed_bytes(std::int64_t numbers, const BlockCode& how) {
  return (numbers + how.block - 1) / how.block * 4 + (numbers * how.bits + 7) / 8;
}

}  // namespace weft
