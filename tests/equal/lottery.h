// Models and layouts that nobody thought of, by number.
#pragma once

#include <optional>
#include <random>
#include <string>

#include "tests/equal/run.h"
#include "tests/support/sanitized.h"
#include "tests/support/tiny.h"
#include "weft/base/error.h"
#include "weft/model/layer_parts.h"
#include "weft/train/validate.h"

namespace weft::testing {

struct Drawn {
  ModelConfig model;
  Cut cut;
};

/// What somebody gets who asks for it, if the rules of the command line let it pass.
inline std::optional<Drawn> allowed(const Drawn& drawn) {
  const ParallelConfig& p = drawn.cut.parallel;
  TrainConfig c;
  c.model = drawn.model;
  c.model.exact = drawn.cut.exact;
  c.parallel = p;
  c.batch.global = 8;
  c.batch.micro = drawn.cut.micro_batch;
  c.batch.per_token_loss = drawn.cut.per_token;
  c.length.iterations = drawn.cut.steps;
  c.rate.peak = 1e-3;
  c.data.mock = true;
  c.run.ranks = p.tp * p.cp * p.pp * p.dp;
  c.scaling.reduce_in_bf16 = drawn.cut.reduce_in_bf16;
  try {
    complete(c, c.run.ranks);
  } catch (const Error& error) {
    if (error.kind() != Kind::usage) throw;
    return {};
  }
  Drawn out = drawn;
  out.cut.parallel = c.parallel;
  return out;
}

class Lottery {
 public:
  explicit Lottery(std::uint32_t seed) : random_(seed), later_(seed), last_(seed) {}

  Drawn draw() {
    for (;;) {
      Drawn any = anything();
      if (any.cut.exact && !allowed(any)) any.cut.exact = false;
      if (any.model.experts.count > 0 && !any.cut.exact) for_choices(any);
      if (const auto found = allowed(any)) return last_of_all(by_turns(*found));
    }
  }

 private:
  // Drawn from other numbers, so that a layout keeps its own.
  Drawn by_turns(Drawn drawn) {
    Drawn other = drawn;
    other.cut.parallel.overlap_experts = later_() % 2 == 0;
    other.cut.parallel.delay_weight_grads = other.cut.parallel.overlap_experts && later_() % 2 == 0;
    RouterConfig& r = other.model.experts.router;
    r.filled = r.capacity && later_() % 2 == 0;
    if (other.model.kind == "gpt") other.model.sink = Sink(later_() % 3);
    other.model.attention_gate = other.model.kind == "gpt" && !other.model.latent.on && later_() % 2 == 0;
    if (other.model.gated && later_() % 2 == 0) other.model.gate_limit = other.model.gate_offset = 0.5;
    if (other.model.kind == "gpt" && later_() % 2 == 0) remember(other.model);
    if (other.model.kind == "gpt" && later_() % 3 == 0) part(other.model);
    Drawn out = allowed(place_norms(other)).value_or(allowed(other).value_or(drawn));
    complete(out.model);
    return out;
  }
  // Drawn from numbers of their own once more.
  Drawn last_of_all(const Drawn& drawn) {
    Drawn out = drawn;
    ModelConfig& m = out.model;
    if (m.kind != "gpt") return out;
    out.cut.parted = last_() % 3 == 0 && !m.delta.on && parts_in_all(m, LayerPart::state) == 0;
    m.embedding_norm = last_() % 3 == 0;
    if (last_() % 3 == 0 && m.positions == Positions::learned) m.positions = Positions::alibi;
    m.alibi.scaled = last_() % 2 == 0;
    draw_details(m, out.cut.exact);
    Drawn found = allowed(out).value_or(drawn);
    complete(found.model);
    return found;
  }
  /// What few models have of norms, biases and limits. Rounding may say whether what is next to a limit
  /// learns.
  void draw_details(ModelConfig& m, bool exact) {
    const bool each = last_() % 3 == 0, turned = last_() % 2 == 0, limited = last_() % 3 == 0;
    m.norm_gain = last_() % 4 != 0;
    m.mlp_bias = last_() % 3 != 0;
    if (m.latent.on || (m.precision != Precision::f32 && m.layers > 2)) return;
    m.qk_norm_each = each && !m.qk_norm_plain && !m.qk_norm_whole;
    if (m.qk_norm_each) m.norm_epsilon = 0.1;  // see above
    m.qk_norm_turned = turned && (m.qk_norm || m.qk_norm_each);
    if (limited && exact && !m.attention_gate) m.qkv_limit = 1;
  }
  /// And what stands beside them in the models that have them elsewhere. Norms make much of the rounding of
  /// what is small: number 68 had norms of 108 and 105 on one rank, by the size of its microbatches alone. So
  /// they count little of it here; of what is deep, see above.
  Drawn place_norms(Drawn drawn) {
    ModelConfig& m = drawn.model;
    if (m.precision != Precision::f32 && m.layers > 2) return drawn;
    if (m.kind == "gpt") m.norm_places = NormPlaces(later_() % 3);
    if (m.norm_places != NormPlaces::before) m.norm_epsilon = 0.1;
    if (later_() % 2 == 0) m.residual_multiplier = 0.7;
    const auto kind = later_() % 3;
    if (m.kind == "gpt" && !m.latent.on && !m.qk_norm) {
      m.qk_norm_plain = kind == 1;
      m.qk_norm_whole = kind == 2 && m.groups % drawn.cut.parallel.tp == 0;
    }
    if (m.kind == "gpt" && m.positions == Positions::rotary && later_() % 2 == 0) {
      m.window = 3;
      m.window_full_every = 2;
      m.rotary.window_base = 50;
    }
    m.experts.weigh_input = m.experts.count > 0 && m.experts.latent == 0 && later_() % 2 == 0;
    place_beside(m);
    m.residual_in_f32 = m.precision != Precision::f32 && later_() % 2 == 0;
    if (m.kind == "gpt") change_scores(m);
    return drawn;
  }
  /// Attention and MLPs side by side, and biases that some such models have, and others have not.
  void place_beside(ModelConfig& m) {
    const auto places = ParallelSublayers(later_() % 3);
    if (m.kind != "gpt" || m.hybrid.on()) return;
    if (m.norm_places == NormPlaces::before && !m.residual_after_norm) m.parallel_sublayers = places;
    m.norm_bias = later_() % 2 == 0;
    m.logits_bias = later_() % 2 == 0;
    m.project_bias = later_() % 2 == 0;
  }
  void change_scores(ModelConfig& m) {
    if (later_() % 3 == 0) m.scores.cap = 0.5;
    if (later_() % 3 == 0) m.output_cap = 1;
    if (later_() % 2 == 0 && m.window == 0 && m.token_drop.layers.empty()) m.scores.chunk = 3;
    if (later_() % 2 == 0 && m.positions != Positions::rotary && !m.latent.on) m.scores.growth_every = 2;
    if (m.scores.growth_every > 0 && later_() % 2 == 0) m.scores.growth_of = QueryGrowth::all;
  }
  /// Some layers do in place of attention. Their keys are normed too: number 17 had norms of 9.7 and 10.3 in
  /// bf16.
  void remember(ModelConfig& model) {
    if (model.precision != Precision::f32 && model.layers > 2) return;
    if (model.activation != Activation::silu || model.layers == 1) return;
    model.delta = shape_of("delta", 2).delta;
    model.delta.layers.clear();
    model.delta.attends_every = 2 + int(later_() % 2);
    complete(model);
  }
  /// Layers are one thing each. Of a model that is so small and deep, see above.
  void part(ModelConfig& model) {
    if (model.precision != Precision::f32 && model.layers > 2) return;
    const bool experts = model.experts.count > 0;
    std::string letters;
    for (int layer = 0; layer < model.layers; ++layer) letters += (experts ? "ME*-" : "MM*-")[later_() % 4];
    if (letters.find_first_of("M*") == std::string::npos ||
        (experts && letters.find('E') == std::string::npos))
      return;
    model.delta = {};
    model.experts.layers.clear();
    model.experts.every = 1;
    model.hybrid.layers = letters;
    model.state = tiny_hybrid("M").state;
    if (model.ahead.depths > 0) model.hybrid.ahead = later_() % 2 == 0 ? "M-" : "*";
    complete(model);
  }
  int one_of(std::initializer_list<int> list) { return list.begin()[random_() % list.size()]; }
  bool coin() { return random_() % 2 == 0; }

  Drawn anything() {
    Drawn out;
    ParallelConfig& p = out.cut.parallel;
    out.cut.steps = rounds(5);
    p.tp = one_of({1, 1, 2, 4});
    p.cp = one_of({1, 1, 1, 2, 4});
    p.pp = one_of({1, 1, 2, 2, 3, 4});
    p.dp = one_of({1, 1, 2});
    if (p.tp * p.cp * p.pp * p.dp > 16) p.tp = p.cp = 1;
    p.context = ContextForm(one_of({0, 1, 2}));
    p.sequence = p.tp > 1 && coin();
    p.zero = p.dp * p.cp > 1 ? one_of({0, 1, 2, 3}) : 0;
    if (p.zero > 0 && p.dp * p.cp > 2) p.shard_groups = one_of({1, 1, 2});
    p.reduce_once = p.zero > 1 && coin();
    p.overlap_reduce = p.dp > 1 && coin();
    p.bucket_elements = p.overlap_reduce ? one_of({0, 100, 1000}) : 0;
    out.cut.micro_batch = one_of({1, 1, 2, 8 / p.dp});
    out.cut.per_token = coin();
    out.cut.exact = one_of({0, 0, 1}) == 1;
    out.cut.reduce_in_bf16 = !out.cut.exact && p.dp * p.cp > 1 && one_of({0, 0, 1}) == 1;
    out.cut.loss_scale = one_of({14, 14, 14, 40}) == 14 ? 0x1p14 : 0x1p40;
    pipeline(p, 8 / p.dp / int(out.cut.micro_batch));
    out.model = model(cut_layers(p));
    if (out.model.experts.count > 0) share_experts(out);
    if (!p.layout.empty()) p.layout.insert(p.layout.size() - 1, std::size_t(out.model.ahead.depths), 'm');
    return out;
  }
  ModelConfig model(int layers) {
    constexpr const char* families[] = {"gpt2", "llama", "bert", "latent", "mixture", "t5"};
    const int family = layers > 1 ? one_of({0, 0, 1, 1, 2, 3, 4, 4, 5}) : one_of({0, 1, 2, 3, 4});
    ModelConfig model = shape_of(families[family], layers);
    if (model.experts.count > 0) model = mixture(layers);
    const bool two_stacks = model.kind == "t5";
    const int groups = one_of({1, 2, 4, 4, 4});
    model.groups = two_stacks || model.latent.on ? 4 : groups;
    if (model.latent.on && coin()) model.latent.query_rank = 0;
    if (model.kind == "gpt") model.ahead = {.depths = one_of({0, 0, 1, 2}), .factor = 0.5};
    model.hidden_dropout = model.attention_dropout = coin() ? 0.1 : 0;
    model.qk_norm = !two_stacks && coin();
    model.precision = Precision(one_of({0, 0, 1, 2}));
    // Deep and with norms of heads, a model so small answers rounding with a tenth of its gradient: one
    // rank's norm of such a step was 5.29 in bf16, two ranks' 6.01 and everybody's in f32 4.88; of another
    // one 5.17 in f16, six ranks' 5.53 and everybody's in f32 8.09; of a BERT of three layers 4.03 and 4.23.
    if (model.precision != Precision::f32 && layers > 2) model.qk_norm = false;
    if (coin()) model.recompute = {.what = Recompute::full, .layers = one_of({1, 2})};
    if (model.experts.count > 0 && coin())
      model.recompute = {.what = Recompute::selective, .modules = {RecomputeModule::experts}};
    return model;
  }
  /// Experts behind one of two kinds of attention, in all layers or every other, under some router.
  ModelConfig mixture(int layers) {
    const ExpertsConfig experts = shape_of("mixture", layers).experts;
    ModelConfig model = shape_of(one_of({0, 0, 1}) == 1 ? "latent" : "mixture", layers);
    model.experts = experts;
    model.experts.layers.clear();
    model.experts.every = layers > 1 ? one_of({1, 1, 2}) : 1;
    RouterConfig& r = model.experts.router;
    if (coin()) {
      r.score = RouterScore::softmax;
      r.softmax_first = coin();
      r.expert_bias = false;
      r.groups = r.groups_kept = 0;
    }
    if (r.score == RouterScore::sigmoid && coin()) r.score = RouterScore::sqrt_softplus;
    losses(r);
    if (one_of({0, 0, 1}) == 1) r.capacity = 0.8;
    if (r.capacity && coin()) r.capacity_evaluating = 1.5;
    if (coin()) r.drop = DropPolicy::position;
    if (one_of({0, 0, 1}) == 1) r.precision = RouterPrecision::f64;
    if (one_of({0, 0, 0, 1}) == 1) r.jitter = 0.1;
    if (one_of({0, 0, 0, 0, 1}) == 1) r.by_chance = true;
    if (one_of({0, 0, 0, 1}) == 1) r = {.chosen = r.chosen, .balancing = {Balancing::sinkhorn}};
    beside(model.experts);
    complete(model);
    return model;
  }
  /// One of them, all that look at a microbatch alone, or none.
  void losses(RouterConfig& r) {
    r.z_loss = one_of({0, 1, 2}) * 0.01;
    const int which = one_of({0, 1, 2, 3, 4});
    if (which == 0) return;  // two at once
    r.balancing = {Balancing(which - 1)};
    r.coefficients = {which == 1 ? 0 : 0.05};
  }
  /// What stands beside experts, and what they work on.
  void beside(ExpertsConfig& x) {
    if (coin()) x.shared_gate = false;
    if (one_of({0, 0, 1}) == 1) x.latent = 12;
    if (one_of({0, 0, 1}) == 0) return;
    x.shared_hidden = 0;
    x.shared_gate = false;
    x.residual = coin();
  }
  void share_experts(Drawn& out) {
    // What came before in a step is another rank's where several share the samples.
    auto& losses = out.model.experts.router.balancing;
    if (out.cut.parallel.dp > 1 && losses.front() == Balancing::global_aux_loss)
      losses = {Balancing::aux_loss};
    out.cut.parallel.ep = one_of({1, 2, 2, 4, 8});
    out.cut.parallel.etp = one_of({0, 1, 1, 2});
  }
  // What is rounded otherwise may choose another expert, which is no rounding any more: few steps, in f32.
  static void for_choices(Drawn& out) {
    out.model.precision = Precision::f32;
    out.cut.reduce_in_bf16 = false;
    out.cut.steps = rounds(3);
    // So may it drop another token: number 80 did where the greatest weights stayed, under tp 4 alone, and
    // neither with room for all nor with routers in doubles. Exact mode draws that policy.
    if (out.model.experts.router.capacity) out.model.experts.router.drop = DropPolicy::position;
  }
  void pipeline(ParallelConfig& p, int microbatches) {
    if (p.pp == 1) return;
    const int kind = one_of({0, 1, 2, 3, 4});
    const bool interleaves = microbatches >= p.pp && microbatches % p.pp == 0;
    if (kind == 4 && interleaves) {
      p.virtual_stages = one_of({2, 3});
    } else if (kind == 3) {
      p.schedule = "zb-v";
      p.virtual_stages = 2;
    } else {
      p.schedule = kind == 2 ? "zb-h1" : kind == 1 ? "gpipe" : "1f1b";
    }
  }
  /// Evenly, or a layout of a random number of layers a stage; returns how many there are.
  int cut_layers(ParallelConfig& p) {
    const int stages = p.pp * std::max(p.virtual_stages, 1);
    if (p.pp == 1) return one_of({1, 2, 3});
    if (coin()) return stages;
    int layers = 0;
    p.layout = "E";
    for (int stage = 0; stage < stages; ++stage) {
      const int here = stage + 1 == stages && layers == 0 ? 1 : one_of({0, 1, 2});
      layers += here;
      p.layout += (stage > 0 ? "|" : "") + std::string(std::size_t(here), 't');
    }
    p.layout += "L";
    return layers;
  }

  std::mt19937 random_, later_, last_;
};

}  // namespace weft::testing
