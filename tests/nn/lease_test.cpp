// Layers read weights while they are lent, and at no other time.
#include "weft/nn/lease.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/tiny.h"
#include "weft/ops/elementwise.h"

using namespace weft;
using namespace weft::testing;

namespace {

/// Keeps all weights elsewhere: what nobody was lent is not a number.
class Miser final : public Lender {
 public:
  explicit Miser(Stage& stage) : stage_(stage) {
    stage.each_parameter([this](Parameter& p) {
      const Tensor safe = empty_like(p.value);
      ops::copy_into(safe, p.value);
      safe_.emplace(&p, safe);
    });
    for (const auto& [parameter, safe] : safe_) hide(*parameter);
  }
  void lend(int layer, Way) override {
    if (layer == forgotten) return;
    each_of(layer, [this](Parameter& p) { ops::copy_into(p.value, safe_.at(&p)); });
  }
  void take_back(int layer, Way) noexcept override {
    ++lent;
    each_of(layer, [](Parameter& p) { hide(p); });
  }

  int lent = 0;
  int forgotten = -1;  // a layer that gets nothing

 private:
  void each_of(int layer, const VisitParameter& visit) const {
    stage_.layers[std::size_t(layer)]->each_read(visit);
  }
  static void hide(const Parameter& p) { ops::fill(p.value, std::numeric_limits<double>::quiet_NaN()); }
  Stage& stage_;
  std::map<Parameter*, Tensor> safe_;
};

struct Trained {
  double loss = 0;
  std::map<std::string, std::vector<double>> grads;
  int lent = 0;
};

enum class From { here, miser };

Trained trained(const ModelConfig& config, From from, int forgotten = -1) {
  const auto device = open_device("cpu", {.threads = 1});
  TinyModel model(config, *device);
  std::optional<Miser> miser;
  if (from == From::miser) {
    miser.emplace(model.stage());
    miser->forgotten = forgotten;
    model.stage().lender = &*miser;
  }
  Trained out{model.train(tiny_batch(*device, config, 2)), model.grads()};
  out.lent = miser ? miser->lent : 0;
  return out;
}

std::vector<ModelConfig> models() {
  std::vector<ModelConfig> out{tiny_gpt2(), tiny_llama(), tiny_gpt2(), tiny_llama()};
  out[2].recompute = {.what = Recompute::full, .method = RecomputeMethod::uniform, .layers = 2};
  out[3].recompute = {.what = Recompute::selective, .modules = {RecomputeModule::mlp, RecomputeModule::norm}};
  return out;
}

}  // namespace

TEST(Lease, changes_no_bit_wherever_the_weights_are_kept) {
  for (const ModelConfig& config : models()) {
    const Trained here = trained(config, From::here), away = trained(config, From::miser);
    EXPECT_EQ(away.loss, here.loss);
    EXPECT_EQ(away.grads, here.grads);
    EXPECT_GE(away.lent, 2 * 4) << "embedding, layers, norm and head, forward and backward";
  }
}

TEST(Lease, a_layer_that_was_lent_nothing_is_seen) {
  for (const int layer : {0, 1, 3}) EXPECT_TRUE(std::isnan(trained(tiny_gpt2(), From::miser, layer).loss));
}
