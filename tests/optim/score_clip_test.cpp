// Rows that are held down, against plain loops: which rows, by how much, and what layers see of it.
#include "weft/optim/score_clip.h"

#include <gtest/gtest.h>

#include <cmath>

#include "weft/backend/open.h"
#include "weft/tensor/host.h"

using namespace weft;

namespace {

using Of = ScoreRows::Of;

/// Two units of five rows, of layer 1: two rows of queries, a gate, one of a key, a value; two heads a unit.
Parameter matrix() {
  Parameter out = whole_parameter("layers.1.attention.qkv.weight", {10, 3}, {.spread = 1});
  out.scores = ScoreRows{
      .layer = 1, .first_head = 2, .heads = 2, .unit = 5, .parts = {{{0, 2, Of::query}, {3, 1, Of::key}}}};
  return out;
}

class Clipped {
 public:
  explicit Clipped(Dtype dtype, Parameter of = matrix())
      : parameter_(std::move(of)),
        weights_(
            [this](const VisitParameter& visit) {
              visit(other_);
              visit(parameter_);
            },
            *device_, dtype, Weights::For::training) {
    weights_.initialize(5);
    before = masters();
  }
  void clip(const std::vector<float>& greatest, double threshold = 10, double alpha = 0.25) {
    clip_scores(weights_, {.threshold = threshold, .alpha = alpha, .greatest = greatest, .heads = 6});
  }
  std::vector<double> masters() const {
    std::vector<double> out;
    weights_.each_master([&](const Held& held) {
      if (&held.parameter == &parameter_) out = numbers(held.memory.slice(0, held.pieces[0].at, 30));
    });
    return out;
  }
  std::vector<double> values() const { return numbers(parameter_.value); }
  std::vector<double> before;

 private:
  std::unique_ptr<Device> device_ = open_device("cpu", {.threads = 1});
  Parameter other_ = whole_parameter("other", {4, 3}, {.spread = 1}), parameter_;
  Weights weights_;
};

/// Layer 0 has greater ones, which are not asked for; heads 2 and 3 are the first unit's, 4 and 5 the
/// other's.
std::vector<float> scores(float a, float b, float c, float d) {
  return {900, 900, 900, 900, 900, 900, 900, 900, a, b, c, d};
}

}  // namespace

TEST(ScoreClip, shrinks_queries_and_keys_of_a_group_by_its_greatest_head) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    Clipped w(dtype);
    w.clip(scores(4, 160, 10, -3));
    const double eta = 10.0 / 160;
    const double factors[] = {
        std::pow(eta, 0.25), std::pow(eta, 0.25), 1, std::pow(eta, 0.75), 1, 1, 1, 1, 1, 1};
    const std::vector<double> after = w.masters(), seen = w.values();
    for (std::size_t i = 0; i < 30; ++i) {
      EXPECT_NEAR(after[i], w.before[i] * factors[i / 3], 1e-6 * std::abs(w.before[i]));
      EXPECT_NEAR(seen[i], after[i], dtype == Dtype::f32 ? 0 : std::abs(after[i]) / 256);
    }
  }
}

TEST(ScoreClip, leaves_weights_alone_whose_scores_are_below_the_threshold_or_none) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const std::vector<float>& below : {scores(10, 9.9F, -infinity, -infinity), scores(-50, -50, 0, 10)}) {
    Clipped w(Dtype::f32);
    w.clip(below);
    EXPECT_EQ(w.masters(), w.before);
  }
}

TEST(ScoreClip, takes_all_of_it_off_rows_whose_keys_stay) {
  Parameter latent = matrix();
  latent.scores->heads = 1;
  latent.scores->parts = {{{0, 4, Of::query}, {4, 1, Of::alone}}};
  Clipped w(Dtype::f32, latent);
  w.clip(scores(20, 5, 1, 1));
  const std::vector<double> after = w.masters();
  for (std::size_t i = 0; i < 30; ++i) {
    const double factor = i < 12 ? std::pow(0.5, 0.25) : i < 15 ? 0.5 : 1;
    EXPECT_NEAR(after[i], w.before[i] * factor, 1e-6 * std::abs(w.before[i]));
  }
}
