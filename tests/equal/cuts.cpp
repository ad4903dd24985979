// Which layouts are compared, what they are called, and how far two curves may part.
#include <algorithm>
#include <cctype>
#include <cmath>

#include "tests/equal/run.h"
#include "tests/support/placed.h"
#include "weft/base/error.h"

namespace weft::testing {

int ranks_of(const Cut& cut) { return cut.parallel.tp * cut.parallel.cp * cut.parallel.pp * cut.parallel.dp; }

std::vector<Cut> usual_cuts() {
  return {{{.tp = 2, .dp = 1}},
          {{.tp = 4, .dp = 1}},
          {{.tp = 2, .dp = 1, .sequence = true}},
          {{.tp = 4, .dp = 1, .sequence = true}},
          {{.dp = 2}},
          {{.dp = 4}, 1},
          {{.tp = 2, .dp = 2, .sequence = true}, 1},
          {{.cp = 2, .dp = 1}},
          {{.cp = 4, .dp = 1}},
          {{.cp = 2, .dp = 1, .context = ContextForm::gather}},
          {{.cp = 2, .dp = 1, .context = ContextForm::heads}},
          {{.cp = 4, .dp = 1, .context = ContextForm::two_levels, .context_levels = {2, 2}}},
          {{.tp = 2, .pp = 2, .cp = 2, .dp = 2, .sequence = true}, 1},
          {{.pp = 2, .dp = 1}},
          {{.pp = 4, .dp = 1}, 1},
          {{.pp = 4, .dp = 1}, 4},
          {{.tp = 2, .pp = 2, .dp = 1}},
          {{.pp = 2, .dp = 2}, 1},
          {{.tp = 2, .pp = 2, .dp = 2, .sequence = true}, 1},
          {{.dp = 2, .zero = 2}},
          {{.dp = 4, .zero = 3}, 1},
          {{.tp = 2, .cp = 2, .dp = 2, .sequence = true, .zero = 3}, 1},
          {{.pp = 2, .dp = 2, .zero = 3, .reduce_once = true}, 1}};
}

Rounding rounding_of(const ModelConfig& config, const Cut& cut) {
  if (cut.exact) return {.loss = 0, .norm = 0};
  Rounding out;
  if (config.precision == Precision::bf16) out = {.loss = 1e-2, .norm = 4e-2};
  if (config.precision == Precision::f16) out = {.loss = 2e-3, .norm = 1e-2};
  if (cut.reduce_in_bf16 || cut.sum_in_bf16) out = {.loss = out.loss + 1e-3, .norm = out.norm + 5e-3};
  return out;
}

namespace {

/// Of numbers that may look alike.
std::string apart(double a, double b) { return text(" are ", a, " and ", b, ", ", a - b, " apart"); }

}  // namespace

std::string difference(const Curve& a, const Curve& b, const Rounding& rounding, const Curve& besides) {
  // Where a step was skipped its norm is no number, for both.
  const auto far = [&](double x, double y, double bound) {
    const bool both_overflow = a.skipped > 0 && !std::isfinite(x) && !std::isfinite(y);
    return !(std::abs(x - y) <= bound) && !both_overflow;
  };
  if (a.losses.size() != b.losses.size()) return "one has more steps than the other";
  if (a.skipped != b.skipped) return text(a.skipped, " and ", b.skipped, " steps were skipped");
  const auto more = [](const std::vector<double>& of, std::size_t i) { return i < of.size() ? of[i] : 0; };
  const std::size_t of_a_step = a.norms.empty() ? 1 : a.losses.size() / a.norms.size();
  for (std::size_t i = 0; i < a.losses.size(); ++i)
    if (far(a.losses[i], b.losses[i], rounding.loss + more(besides.losses, i)))
      return text("losses of step ", i / of_a_step + 1, apart(a.losses[i], b.losses[i]));
  for (std::size_t i = 0; i < a.norms.size(); ++i)
    if (far(a.norms[i], b.norms[i], rounding.norm * b.norms[i] + more(besides.norms, i)))
      return text("gradient norms of step ", i + 1, apart(a.norms[i], b.norms[i]));
  for (std::size_t i = 0; i < a.evaluations.size(); ++i)
    if (far(a.evaluations[i], b.evaluations.at(i), rounding.loss + more(besides.evaluations, i)))
      return text("evaluations", apart(a.evaluations[i], b.evaluations[i]));
  return a.copies_agree && b.copies_agree ? "" : "copies of a weight differ";
}

namespace {

/// Keeps how far a number was at most from what it is undisturbed, it or one before it.
void keep_most(std::vector<double>& most, const std::vector<double>& disturbed,
               const std::vector<double>& undisturbed) {
  most.resize(undisturbed.size());
  for (std::size_t i = 0; i < most.size(); ++i) {
    const double moved = std::abs(disturbed.at(i) - undisturbed[i]);
    if (std::isfinite(moved)) most[i] = std::max(most[i], moved);
    if (i > 0) most[i] = std::max(most[i], most[i - 1]);
  }
}

/// A state space, attention, an MLP and a state space in turn.
std::string letters(int layers) {
  std::string out;
  for (int layer = 0; layer < layers; ++layer) out += "M*-M"[layer % 4];
  return out;
}

}  // namespace

Curve moved_by_rounding(const ModelConfig& config, const Cut& cut, const Cut& alone) {
  const Curve undisturbed = train(config, alone);
  Cut other = alone;
  other.disturbance.share = least_disturbance(config.precision);
  other.sum_in_bf16 = cut.reduce_in_bf16 || cut.sum_in_bf16;
  Curve most;
  for (; other.disturbance.time < 4; ++other.disturbance.time) {
    const Curve disturbed = train(config, other);
    keep_most(most.losses, disturbed.losses, undisturbed.losses);
    keep_most(most.norms, disturbed.norms, undisturbed.norms);
    keep_most(most.evaluations, disturbed.evaluations, undisturbed.evaluations);
  }
  for (std::vector<double>* of : {&most.losses, &most.norms, &most.evaluations})
    for (double& moved : *of) moved *= 2;
  return most;
}

ModelConfig shape_of(const std::string& name, int layers) {
  ModelConfig config = name == "gpt2"      ? tiny_gpt2()
                       : name == "bert"    ? tiny_bert()
                       : name == "t5"      ? tiny_t5()
                       : name == "latent"  ? tiny_latent()
                       : name == "mixture" ? tiny_mixture()
                       : name == "oss"     ? tiny_oss()
                       : name == "weighed" ? tiny_weighed()
                       : name == "gemma"   ? tiny_gemma()
                       : name == "olmo"    ? tiny_olmo()
                       : name == "capped"  ? tiny_capped()
                       : name == "chunks"  ? tiny_chunks()
                       : name == "grown"   ? tiny_grown()
                       : name == "falling" ? tiny_falling()
                       : name == "neox"    ? tiny_neox()
                       : name == "command" ? tiny_command()
                       : name == "plus"    ? tiny_command_plus()
                       : name == "bare"    ? tiny_bare()
                       : name == "turned"  ? tiny_turned()
                       : name == "delta"   ? tiny_delta()
                       : name == "hybrid"  ? tiny_hybrid(letters(layers))
                                           : tiny_llama();
  config.layers = layers;
  if (name == "t5") {
    config.layers = std::max(layers / 2, 1);
    config.decoder_layers = layers - config.layers;
  }
  if (name != "gpt2" && name != "bert" && name != "t5" && name != "latent" && name != "hybrid")
    config.groups = config.heads;  // so that four ranks have a group each
  config.hidden_dropout = config.attention_dropout = 0.1;
  config.experts.layers.clear();
  config.window_layers.clear();
  config.rotary.skip_layers.clear();
  config.delta.layers.clear();
  complete(config);
  return config;
}

std::string name_of(const Cut& cut) {
  const ParallelConfig& p = cut.parallel;
  std::string name;
  const auto say = [&name](const std::string& word) { name += (name.empty() ? "" : "_") + word; };
  const auto degree = [&](const char* axis, int n) {
    if (n > 1) say(axis + std::to_string(n));
  };
  degree("tp", p.tp);
  degree("cp", p.cp);
  if (p.cp > 1 && p.context_layers.empty()) say(std::string(words(p.context)[std::size_t(p.context)]));
  if (p.cp > 1 && !p.context_layers.empty()) say("forms");
  degree("pp", p.pp);
  degree("dp", p.dp);
  degree("ep", p.ep);
  degree("etp", p.etp);
  if (p.sequence) say("sp");
  if (!p.schedule.empty()) say(p.schedule);
  degree("v", p.virtual_stages);
  if (!p.layout.empty()) say(p.layout);
  if (p.zero > 0) say("zero" + std::to_string(p.zero));
  if (p.reduce_once) say("once");
  if (p.overlap_reduce) say("overlap");
  if (p.overlap_experts) say(p.delay_weight_grads ? "beside_delayed" : "beside");
  if (cut.reduce_in_bf16) say("bf16_gradients");
  if (cut.sum_in_bf16) say("bf16_sums");
  say("b" + std::to_string(cut.micro_batch));
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

}  // namespace weft::testing
