// Fp8Config: products of linear layers in eight bits.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "weft/base/legal.h"
#include "weft/base/on_resume.h"

namespace weft {

enum class Fp8Format : std::uint8_t { none, e4m3, hybrid };
enum class Fp8Recipe : std::uint8_t { delayed, tensorwise, blockwise, mxfp8 };
enum class AmaxChoice : std::uint8_t { most_recent, max };

constexpr std::array<std::string_view, 3> words(Fp8Format) { return {"none", "e4m3", "hybrid"}; }
constexpr std::array<std::string_view, 4> words(Fp8Recipe) {
  return {"delayed", "tensorwise", "blockwise", "mxfp8"};
}
constexpr std::array<std::string_view, 2> words(AmaxChoice) { return {"most_recent", "max"}; }

/// What layers multiply is rounded to eight bits, each tensor with one scale. It is that of the tensor at
/// hand (tensorwise), or follows from what was met in the steps before (delayed). Or each block of a tensor
/// has one of its own: 128 numbers along what is summed, and squares of a weight (blockwise), or 32 (mxfp8).
struct Fp8Config {
  Fp8Format format = Fp8Format::none;
  Fp8Recipe recipe = Fp8Recipe::delayed;
  int margin = 0;
  int history = 1;
  AmaxChoice amax = AmaxChoice::most_recent;
  bool weight_grads = true;
  bool ends_in_bf16 = false;
  int first_layers = 1, last_layers = 1;  // that are not rounded, where ends_in_bf16

  bool on() const { return format != Fp8Format::none; }
  bool delayed() const { return on() && recipe == Fp8Recipe::delayed; }
};

template <class Visitor>
void describe(Visitor& v, Fp8Config& c) {
  v("format", c.format, OnResume::step,
    "operands of linear layers' products in eight bits: e4m3, or gradients as e5m2 (hybrid)");
  v("recipe", c.recipe, OnResume::step,
    "8-bit products: a tensor's scale follows from earlier steps (delayed) or from itself (tensorwise), or "
    "blocks of 128 (blockwise) or 32 (mxfp8) have scales of their own");
  v("margin", c.margin, OnResume::step, "delayed scales are divided by 2 to this power",
    legal::from_to(-64, 64));
  v("history", c.history, OnResume::step, "steps that a delayed scale remembers", legal::from_to(1, 65536));
  v("amax", c.amax, OnResume::step, "a delayed scale follows from the latest step or the greatest of all");
  v("weight_grads", c.weight_grads, OnResume::step, "8-bit products give weights' gradients, too");
  v("ends_in_bf16", c.ends_in_bf16, OnResume::step, "the first and last layers have no 8-bit products");
  v("first_layers", c.first_layers, OnResume::step, "with ends_in_bf16: so many of the first layers",
    legal::size_or_none);
  v("last_layers", c.last_layers, OnResume::step, "with ends_in_bf16: so many of the last layers",
    legal::size_or_none);
}

}  // namespace weft
