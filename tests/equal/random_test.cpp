// Layouts that nobody thought of, drawn at random, each against one rank; and planted mistakes, all seen.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "tests/equal/lottery.h"
#include "tests/support/sanitized.h"
#include "weft/base/format.h"
#include "weft/model/kinds.h"
#include "weft/model/layer_parts.h"

using namespace weft;
using namespace weft::testing;

namespace {

/// WEFT_LAYOUTS=500 draws more of them.
int cases() {
  const char* asked = std::getenv("WEFT_LAYOUTS");
  return asked != nullptr ? std::atoi(asked) : 24 / every(6);
}

/// Of experts that not every rank holds whole.
void see_experts(std::set<std::string>& seen, const Drawn& drawn) {
  const auto& [model, cut] = drawn;
  const ParallelConfig& p = cut.parallel;
  if (p.etp > 1) seen.insert("experts that ranks share");
  if (p.overlap_experts)
    seen.insert(p.pp > 1 ? "forwards beside backwards over stages" : "forwards beside backwards");
  if (p.delay_weight_grads) seen.insert("weight gradients that wait");
  if (p.ep == 1) return;
  seen.insert(cut.exact ? "exact experts" : "experts");
  if (p.cp > 1) seen.insert("experts of cut samples");
  if (p.pp > 1) seen.insert("experts of several stages");
  if (model.latent.on) seen.insert("experts behind latents");
  if (model.ahead.depths > 0) seen.insert("experts of further tokens");
  if (model.experts.router.capacity) seen.insert("experts with little room");
  if (model.experts.router.filled) seen.insert("experts that are filled up");
  if (model.experts.router.sinkhorn()) seen.insert(cut.exact ? "exact sinkhorn" : "sinkhorn");
  if (model.experts.router.jitter > 0 && p.cp * p.tp > 1) seen.insert("noise of cut samples");
  if (model.experts.latent > 0)
    seen.insert(cut.exact ? "exact experts on few channels" : "experts on few channels");
  if (model.experts.residual) seen.insert("experts beside an MLP");
  if (model.experts.router.precision == RouterPrecision::f64) seen.insert("experts chosen in doubles");
  if (model.experts.router.score == RouterScore::sqrt_softplus) seen.insert("roots of softplus");
  if (model.experts.router.capacity_evaluating) seen.insert("more room to evaluate");
  const auto& losses = model.experts.router.balancing;
  if (losses.size() == 1) seen.insert(std::string(words(losses[0])[std::size_t(losses[0])]) + " alone");
}

/// What stands beside attention and MLPs that are cut.
void see_norms(std::set<std::string>& seen, const ModelConfig& model) {
  if (model.norm_places != NormPlaces::before)
    seen.insert(model.norm_places == NormPlaces::around ? "norms around" : "norms behind");
  if (model.residual_in_f32) seen.insert("residuals in f32");
  if (model.parallel_sublayers != ParallelSublayers::none)
    seen.insert(text(words(model.parallel_sublayers)[std::size_t(model.parallel_sublayers)], " of two"));
  if (model.rotary.window_base) seen.insert("windows that turn otherwise");
  if (model.qk_norm_plain) seen.insert("norms without gains");
  if (model.qk_norm_whole) seen.insert("norms of all heads");
  if (model.qk_norm_each) seen.insert("norms of each head");
  if (model.qk_norm_turned && model.positions == Positions::rotary) seen.insert("norms behind turning");
  if (!model.norm_gain) seen.insert("bare norms");
  if (model.qkv_limit > 0) seen.insert("limits");
  if (model.experts.weigh_input) seen.insert("weighed rows");
  if (model.scores.cap > 0) seen.insert("caps");
  if (model.scores.chunk > 0) seen.insert("chunks");
  if (model.scores.growth_every > 0) seen.insert("queries that grow");
  if (model.embedding_norm) seen.insert("norms of embeddings");
  if (model.positions == Positions::alibi) seen.insert("scores that fall");
}

/// How its family is cut.
void see_family(std::set<std::string>& seen, const Drawn& drawn) {
  const auto& [model, cut] = drawn;
  const ParallelConfig& p = cut.parallel;
  seen.insert(cut.exact ? "exact " + model.kind : model.kind);
  if (p.cp > 1) seen.insert(model.kind + " of cut samples");
  if (p.tp > 1) seen.insert(p.sequence ? model.kind + " of a cut sequence" : model.kind + " of cut heads");
  if (p.pp > 1) seen.insert(model.kind + " of several stages");
}

/// What some layout of four hundred has.
std::set<std::string> everything() {
  const auto all = split(
      "ring,gather,heads,shared keys,bf16,f16,overflow,bf16 gradients,exact,exact shared keys,"
      "three cuts,further tokens,further tokens of cut samples,latents,"
      "latents of a cut sequence,latents of cut samples,exact latents of cut samples,experts,"
      "experts that ranks share,experts of cut samples,experts of several stages,"
      "experts behind latents,experts of further tokens,experts with little room,"
      "experts that are filled up,exact experts,"
      "sinkhorn,exact sinkhorn,noise of cut samples,experts on few channels,"
      "exact experts on few channels,experts beside an MLP,experts chosen in doubles,"
      "roots of softplus,forwards beside backwards,forwards beside backwards over stages,weight gradients "
      "that wait,more room to evaluate,none alone,aux_loss alone,seq_aux_loss alone,"
      "global_aux_loss alone,sinkhorn alone,zero 1,zero 2,zero 3,zero 1 of a cut model,"
      "zero 2 of a cut model,zero 3 of a cut model,state spaces,exact state spaces,"
      "norms around,norms behind,windows that turn otherwise,norms without gains,norms of all heads,norms "
      "of each head,norms behind turning,bare norms,limits,weighed "
      "rows,residuals in f32,caps,chunks,queries that grow,norms of embeddings,scores that fall,documents of "
      "cut samples,exact documents of cut "
      "samples,own-norms of two,one-norm of two",
      ',');
  return {all.begin(), all.end()};
}

Cut one_rank(const Cut& cut) {
  return {.parallel = {.dp = 1},
          .micro_batch = 8,
          .steps = cut.steps,
          .per_token = cut.per_token,
          .parted = cut.parted,
          .loss_scale = cut.loss_scale};
}

/// What came of a layout and of one rank: "" where they trained alike, to the bit in exact mode, else but for
/// rounding.
struct Answer {
  std::string difference;
  bool moved_by_any_rounding = false;  // they parted by more than most, but no more than one rank from itself
};

/// At which steps scaled gradients of f16 overflow, one rounding may decide (number 5744).
bool overflow_elsewhere(const Curve& a, const Curve& b) {
  const auto alike = [](double x, double y) { return std::isfinite(x) == std::isfinite(y); };
  return !std::ranges::equal(a.norms, b.norms, alike);
}

Answer compared(ModelConfig model, Cut cut, const Cut& alone) {
  const Curve many = train(model, cut), one = train(model, alone);
  const Rounding rounding = rounding_of(model, cut);
  const std::string usual = difference(many, one, rounding);
  if (usual.empty() || cut.exact) return {usual};
  const std::string unusual = difference(many, one, rounding, moved_by_rounding(model, cut, alone));
  const bool tipped = model.precision == Precision::f16 && overflow_elsewhere(many, one);
  if (!unusual.empty() && !tipped) return {unusual + ", and one rank moves less by rounding alone"};
  // What moves so far hides mistakes: f32's rounding moves it least.
  const bool least = model.precision == Precision::f32 && !cut.reduce_in_bf16;
  model.precision = Precision::f32;
  cut.reduce_in_bf16 = false;
  return {least ? "" : compared(model, cut, alone).difference, true};
}

Answer against_one_rank(const Drawn& drawn) {
  Cut alone = one_rank(drawn.cut);
  alone.exact = drawn.cut.exact;
  // Balancing losses and the room of experts are a microbatch's.
  if (drawn.model.experts.count > 0) alone.micro_batch = drawn.cut.micro_batch;
  if (alone.exact) alone.micro_batch = 1;
  return compared(drawn.model, drawn.cut, alone);
}

std::string name_of(const ExpertsConfig& x) {
  if (x.count == 0) return "";
  const RouterConfig& r = x.router;
  std::string losses;
  for (const Balancing loss : r.balancing) losses += text(" ", words(loss)[std::size_t(loss)]);
  return text("experts by ", words(r.score)[std::size_t(r.score)], r.softmax_first ? " first" : "",
              r.precision == RouterPrecision::f64 ? " in doubles" : "", ",", losses, r.z_loss > 0 ? " z" : "",
              r.capacity ? " with little room" : "", r.filled ? " that is filled up" : "",
              r.jitter > 0 ? " with noise" : "", r.by_chance ? " by chance" : "",
              x.latent > 0 ? " on few channels" : "", x.residual ? " beside an MLP" : "", ", ");
}

std::string name_of(const Drawn& drawn) {
  const ModelConfig& m = drawn.model;
  const std::string precision(words(m.precision)[std::size_t(m.precision)]);
  const std::string letters = m.hybrid.on() ? text(" ", m.hybrid.layers, "/", m.hybrid.ahead) : "";
  return text(m.kind, ", ", m.layers + m.decoder_layers, " layers", letters, ", ", m.groups, " groups, ",
              precision, ", ", name_of(m.experts), drawn.cut.exact ? "exact, " : "", name_of(drawn.cut));
}

/// With gradients that travel as bf16, or without.
struct Numbers {
  Precision precision = Precision::f32;
  bool reduce_in_bf16 = false;
};

std::string with_fault(Fault fault, const Numbers& numbers = {}) {
  Cut cut{{.tp = 2, .pp = 2, .dp = numbers.reduce_in_bf16 ? 2 : 1, .sequence = true}, 2, rounds(5)};
  cut.reduce_in_bf16 = numbers.reduce_in_bf16;
  ModelConfig config = shape_of("gpt2", 2);
  config.precision = numbers.precision;
  if (fault == Fault::shared_keys_not_added) config.groups = 1;
  cut.fault = fault;
  return compared(config, cut, one_rank(cut)).difference;
}

}  // namespace

// The objective is a mean over microbatches, so that its bits hold however they are cut: all samples count
// equally many tokens here.
TEST(RandomLayouts, train_as_one_rank_does) {
  int moved_by_any_rounding = 0;
  for (int number = 0; number < cases(); ++number) {
    const Drawn drawn = Lottery(std::uint32_t(number)).draw();
    SCOPED_TRACE(text("number ", number, ": ", name_of(drawn)));
    const Answer answer = against_one_rank(drawn);
    ASSERT_EQ(answer.difference, "");
    moved_by_any_rounding += answer.moved_by_any_rounding ? 1 : 0;
  }
  EXPECT_LE(moved_by_any_rounding, cases() / 100);
}

// Norms of what layers that remember give, which is small: one rank's own gradient in step 4 is 105 or 107
// long by the size of its microbatches.
TEST(RandomLayouts, may_part_where_the_model_takes_hold_of_any_rounding_but_hide_no_mistake) {
  if (sanitized) return;  // sees two steps
  Drawn drawn = Lottery(68).draw();
  drawn.model.norm_epsilon = 1e-6;
  SCOPED_TRACE(name_of(drawn));
  const Answer answer = against_one_rank(drawn);
  EXPECT_EQ(answer.difference, "");
  EXPECT_TRUE(answer.moved_by_any_rounding);
  drawn.cut.fault = Fault::weight_gradient_dropped;
  EXPECT_NE(against_one_rank(drawn).difference, "");
}

TEST(RandomLayouts, have_something_of_everything) {
  std::set<std::string> seen;
  for (std::uint32_t number = 0; number < 400; ++number) {
    const auto [model, cut] = Lottery(number).draw();
    const ParallelConfig& p = cut.parallel;
    if (p.cp > 1) seen.insert(std::string(words(p.context)[std::size_t(p.context)]));
    if (model.groups < p.tp) seen.insert("shared keys");
    if (model.ahead.depths > 0 && p.pp > 1)
      seen.insert(p.cp > 1 ? "further tokens of cut samples" : "further tokens");
    if (model.latent.on && p.tp > 1) seen.insert(p.sequence ? "latents of a cut sequence" : "latents");
    if (model.latent.on && p.cp > 1)
      seen.insert(cut.exact ? "exact latents of cut samples" : "latents of cut samples");
    if (parts_in_all(model, LayerPart::state) > 0 && p.tp * p.cp * p.pp > 1)
      seen.insert(cut.exact ? "exact state spaces" : "state spaces");
    if (p.tp * p.cp > 1) see_norms(seen, model);
    if (cut.parted && p.cp > 1)
      seen.insert(cut.exact ? "exact documents of cut samples" : "documents of cut samples");
    if (model.precision == Precision::bf16) seen.insert("bf16");
    if (model.precision == Precision::f16) seen.insert(cut.loss_scale > 0x1p14 ? "overflow" : "f16");
    if (cut.reduce_in_bf16) seen.insert("bf16 gradients");
    if (cut.exact && p.tp * p.dp > 1) seen.insert(model.groups < p.tp ? "exact shared keys" : "exact");
    if (p.tp > 1 && p.cp > 1 && p.pp > 1) seen.insert("three cuts");
    if (model.experts.count > 0) see_experts(seen, {model, cut});
    if (p.zero > 0) seen.insert(text("zero ", p.zero, p.tp > 1 && p.pp > 1 ? " of a cut model" : ""));
  }
  EXPECT_EQ(seen, everything());
}

TEST(RandomLayouts, have_something_of_every_family) {
  std::set<std::string> seen, wanted;
  for (std::uint32_t number = 0; number < 400; ++number) see_family(seen, Lottery(number).draw());
  for (const ModelKind& kind : model_kinds()) {
    const std::string name(kind.name);
    wanted.insert("exact " + name);
    for (const char* cut :
         {"", " of cut heads", " of a cut sequence", " of cut samples", " of several stages"})
      wanted.insert(name + cut);
  }
  EXPECT_EQ(seen, wanted);
}

// bf16's own rounding hides the smaller ones: half of the layouts are drawn in f32.
TEST(PlantedFaults, are_all_seen_and_none_where_none_is) {
  const Fault faults[] = {Fault::tied_copies_not_added, Fault::norm_counts_copies,
                          Fault::norm_counts_ranks,     Fault::weight_gradient_dropped,
                          Fault::shared_keys_not_added, Fault::sequence_parts_not_added};
  const std::vector<Numbers> all{{}, {Precision::f16}, {Precision::f32, true}, {Precision::f16, true}};
  for (const Numbers& numbers : some_of(all, 4)) {
    SCOPED_TRACE(text(words(numbers.precision)[std::size_t(numbers.precision)], ", ",
                      numbers.reduce_in_bf16 ? "bf16 gradients" : ""));
    EXPECT_EQ(with_fault(Fault::none, numbers), "");
    for (const Fault fault : faults) EXPECT_NE(with_fault(fault, numbers), "") << "fault " << int(fault);
  }
}
