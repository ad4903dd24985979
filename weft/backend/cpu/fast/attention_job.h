// What the attention loops of every instruction set are given: plain numbers and addresses, nothing that
// owns.
#pragma once

#include <cstdint>

namespace weft::fast {

enum class Element : std::uint8_t { f32, bf16, f16 };

/// A tensor [s, b, g, r, d] (r is 1 for keys and values), or as wide as a value; steps in elements, the last
/// one is 1.
struct AttentionRows {
  void* at = nullptr;
  std::int64_t s = 0, b = 0, g = 0, r = 0;
  Element type = Element::f32;
};

/// f32 [n, distances]: query i and key j take column zero + i - j.
struct AttentionBias {
  bool wanted = false;
  const float* at = nullptr;
  std::int64_t n = 0, zero = 0;
};

/// Where a bias' gradient is added up, apart for every head and stripe of queries, so that no order depends
/// on who computes what: [n, stripes, row], in which query i of the stripe and key j have column i + sk - 1 -
/// j.
struct AttentionBiasSums {
  bool wanted = false;
  float* at = nullptr;
  std::int64_t row = 0, stripes = 0;
};

/// i32 [b, s], any steps; negative: padding.
struct AttentionSegments {
  const std::int32_t* at = nullptr;
  std::int64_t b = 0, s = 0;
};

/// f32 [b, n, sq], any steps.
struct AttentionSums {
  float* at = nullptr;
  std::int64_t b = 0, n = 0, s = 0;
};

/// The folded address of one sample's random numbers (base/random.h, Draw).
struct AttentionDraw {
  std::uint32_t key[2];
  std::uint32_t upper[2];
};

struct AttentionDropout {
  bool wanted = false;
  const AttentionDraw* draws = nullptr;  // [b]
  std::uint32_t dropped = 0;             // words below this are
  float kept = 1;                        // factor of what is kept
  std::int64_t head0 = 0, query0 = 0, key0 = 0;
};

/// Where a forward task keeps its things, in floats from the start of its workspace.
struct ForwardPlaces {
  std::int64_t q = 0, rows = 0, k = 0, v = 0, scores = 0, turned = 0, factor = 0, scale = 0;
  std::int64_t o = 0, maximum = 0, sum = 0, bias = 0;
  std::int64_t floats = 0;
};

/// The same of a backward task.
struct BackwardPlaces {
  std::int64_t q = 0, dout = 0, q_rows = 0, dout_rows = 0, rows = 0;  // of a tile's queries
  std::int64_t k = 0, v = 0, k_pairs = 0;                             // of a chunk of keys
  std::int64_t scores = 0, dscores = 0, factor = 0, lse = 0, delta = 0, bias = 0;
  std::int64_t p_rows = 0, ds_rows = 0, ds_words = 0, turned = 0;  // scores as bf16
  std::int64_t dq = 0, dk = 0, dv = 0;
  std::int64_t floats = 0;
};

/// Forward reads q, k, v and writes o, lse, and where it has a place greatest scores. Backward reads those
/// and dout, writes dq, dk, dv, and adds to dbias.
struct AttentionJob {
  std::int64_t sq = 0, sk = 0, b = 0, g = 0, r = 0;
  std::int64_t d = 0;        // channels of a query and a key
  std::int64_t d_value = 0;  // of a value, and so of o
  AttentionRows q, k, v, o, dout, dq, dk, dv;
  AttentionSums lse, greatest;
  float scale = 1;
  float cap = 0;  // of scores; 0: none
  bool causal = false;
  std::int64_t diagonal = 0, window = 0;
  AttentionSegments query_segments, key_segments;
  AttentionBias bias;
  AttentionBiasSums dbias;
  AttentionDropout dropout;
  bool accumulate = false;
  std::int64_t step = 0;    // floats from one copied row to the next
  std::int64_t stripe = 0;  // queries of a forward task
  std::int64_t chunk = 0;   // keys that a backward task holds at once
  ForwardPlaces forward;
  BackwardPlaces backward;
};

/// How far the loops cut an axis: no result depends on the number of threads, nor on where a head's queries
/// are cut but for the tiles that add them to dk and dv.
inline constexpr std::int64_t attention_queries = 64;  // of a tile, at most
inline constexpr std::int64_t attention_narrow_queries =
    48;                                                // of a tile, but for products of pairs (native/cut.h)
inline constexpr std::int64_t attention_keys = 96;     // of a tile
inline constexpr std::int64_t attention_stripe = 192;  // of a task that computes dq: whole tiles of either

/// Which gradients a task computes: all in one sweep, or keys' and queries' apart where there are too few
/// heads for the threads (seven products instead of five; the same bits).
enum class AttentionShare : std::uint8_t { all, keys, queries };

/// Where a backward task works. With dbias a task walks over all rows in ascending order.
struct AttentionTask {
  std::int64_t row = 0, rows = 1, group = 0, head = 0, part = 0;
};

// What an instruction set's namespace declares, under the names of AttentionLoops with attention_ before
// them.
/// Queries [from, from + job.stripe) of head `head` of row `row`.
using AttentionForward = void(const AttentionJob&, std::int64_t row, std::int64_t head, std::int64_t from,
                              float* workspace);
/// share all: `part` is not used. keys: key chunk `part`. queries: stripe `part` of head `head` of the group.
using AttentionBackward = void(const AttentionJob&, AttentionShare, const AttentionTask&, float* workspace);
/// into = softmax-weighted mean of into and part, for rows of one head.
using AttentionMerge = void(const AttentionJob& into, const AttentionJob& part, std::int64_t row,
                            std::int64_t head);
/// x = 2^x, for the test of its accuracy.
using AttentionExp2 = void(float* x, std::int64_t count);

/// One instruction set's loops. A task's results do not depend on which thread runs it.
struct AttentionLoops {
  /// Any types; products of f32.
  AttentionForward* forward = nullptr;
  AttentionBackward* backward = nullptr;
  AttentionMerge* merge = nullptr;
  AttentionExp2* exp2 = nullptr;
  /// Where q, k, v and dout are bf16: products of bf16, with p and ds rounded to it. Null where the set has
  /// no instruction for them.
  AttentionForward* forward_pairs = nullptr;
  AttentionBackward* backward_pairs = nullptr;
};

}  // namespace weft::fast
