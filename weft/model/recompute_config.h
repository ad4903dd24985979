// RecomputeConfig: what forward forgets and backward computes again.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "weft/base/legal.h"
#include "weft/base/on_resume.h"

namespace weft {

enum class Recompute : std::uint8_t { none, full, selective };
enum class RecomputeMethod : std::uint8_t { uniform, block };
/// What selective recompute may forget inside a block.
enum class RecomputeModule : std::uint8_t {
  core_attention,
  norm,
  mlp,  // shared experts, too
  latent_heads,
  experts,
  shared_experts
};

constexpr std::array<std::string_view, 3> words(Recompute) { return {"none", "full", "selective"}; }
constexpr std::array<std::string_view, 2> words(RecomputeMethod) { return {"uniform", "block"}; }
constexpr std::array<std::string_view, 6> words(RecomputeModule) {
  return {"core_attention", "norm", "mlp", "latent_heads", "experts", "shared_experts"};
}

struct RecomputeConfig {
  Recompute what = Recompute::none;
  RecomputeMethod method =
      RecomputeMethod::uniform;  // full: chunks of `layers`, or the first `layers` of each stage
  int layers = 1;
  std::vector<RecomputeModule> modules;  // selective
  bool cut = false;                      // full: tensor-parallel ranks keep a part each of what all would
};

template <class Visitor>
void describe(Visitor& v, RecomputeConfig& c) {
  v("what", c.what, OnResume::sums, "what is forgotten in forward and computed again in backward");
  v("method", c.method, OnResume::sums, "full: chunks of layers, or the first layers of each stage");
  v("layers", c.layers, OnResume::sums, "layers in a chunk (uniform), or how many of a stage (block)",
    legal::size);
  v("modules", c.modules, OnResume::sums, "selective: which parts of a block");
  v("cut", c.cut, OnResume::free, "full: tensor-parallel ranks keep a part each of the inputs that are kept");
}

}  // namespace weft
