// Random numbers that are addressed, not drawn: a number for (seed, purpose, step, sample, layer) and an
// element; no state to lose.
//
// The generator is Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers, as easy as 1, 2, 3;
// 2011). It turns a counter of 128 bits and a key of 64 bits into 128 random bits. An address is longer than
// a key, so it is folded first, with the same function (lo and hi are the 32-bit halves of a 64-bit number;
// word 0 stands first):
//
//   a = philox({step lo, step hi, sample lo, sample hi}, {seed lo, seed hi})
//   b = philox(a, {layer, purpose})
//   block i = philox({i lo, i hi, b[2], b[3]}, {b[0], b[1]}),   element e = word e % 4 of block e / 4
//
// Two addresses that differ in step or sample only can never give the same b; others meet with a chance of
// 2^-128. Every layout, recomputed pass and resumed run that asks for the same address gets the same bits. A
// saved run depends on this layout: never change it.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace weft {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

/// Ten rounds on plain words, no branch: a loop over counters becomes vector code.
constexpr PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t even = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t odd = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(odd >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(odd),
               static_cast<std::uint32_t>(even >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(even)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// What a number is for. Its value is part of the address: add at the end, never renumber.
enum class Purpose : std::uint32_t {
  init = 0,
  dropout_attention = 1,
  dropout_hidden = 2,
  dropout_embedding = 3,
  data = 4,
  sample_text = 5,
  masking = 6,
  routing = 7,
  fault = 8,
  test = 9,
  layer_drop = 10,
  token_drop = 11,
};

/// Where in a run a number belongs. `sample` is the index in the whole run's order of samples, `layer` the
/// layer's in the whole model. What has no step, sample or layer leaves it at 0. Initial weights use `layer`
/// for the parameter and the element of the whole tensor.
struct Address {
  std::uint64_t seed = 0;
  Purpose purpose = Purpose::init;
  std::uint64_t step = 0;
  std::uint64_t sample = 0;
  std::uint32_t layer = 0;
};

/// [0, 1) in steps of 2^-24: every value is a float.
constexpr float unit_float(std::uint32_t word) {
  return static_cast<float>(static_cast<std::int32_t>(word >> 8)) * 0x1p-24f;
}

/// The words below this are the given share of all words: `word < share(0.1)` holds for a tenth of them. 1 is
/// not to be had: use no draw.
constexpr std::uint32_t share(double probability) {
  const double scaled = probability * 0x1p32;
  return scaled >= 0xFFFFFFFFp0 ? 0xFFFFFFFFu : scaled <= 0 ? 0u : static_cast<std::uint32_t>(scaled);
}

/// The numbers at one address, one for each 64-bit element. Small: copy it into a kernel's registers.
class Draw {
 public:
  constexpr explicit Draw(const Address& at) {
    const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
    const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
    const PhiloxCounter place = {low(at.step), high(at.step), low(at.sample), high(at.sample)};
    const PhiloxCounter folded = philox4x32(philox4x32(place, {low(at.seed), high(at.seed)}),
                                            {at.layer, static_cast<std::uint32_t>(at.purpose)});
    key_ = {folded[0], folded[1]};
    upper_ = {folded[2], folded[3]};
  }

  /// The words of elements 4 i to 4 i + 3.
  constexpr PhiloxCounter block(std::uint64_t i) const {
    return philox4x32(
        {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32), upper_[0], upper_[1]}, key_);
  }
  constexpr std::uint32_t word(std::uint64_t element) const { return block(element >> 2)[element & 3]; }
  constexpr float uniform(std::uint64_t element) const { return unit_float(word(element)); }
  /// Mean 0, deviation 1, at most 6.8 from 0. Elements 2 i and 2 i + 1 are one Box-Muller pair. The bits do
  /// not depend on the processor's or the C library's logarithm.
  float normal(std::uint64_t element) const;

  /// For kernels that call philox4x32 themselves: the counter of block i is {i lo, i hi, upper[0], upper[1]}.
  constexpr PhiloxKey key() const { return key_; }
  constexpr std::array<std::uint32_t, 2> upper() const { return upper_; }

 private:
  PhiloxKey key_{};
  std::array<std::uint32_t, 2> upper_{};
};

/// out[i] = draw.uniform(first + i).
void fill_uniform(const Draw& draw, std::uint64_t first, std::span<float> out);
/// out[i] = draw.normal(first + i).
void fill_normal(const Draw& draw, std::uint64_t first, std::span<float> out);

}  // namespace weft
