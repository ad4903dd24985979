// Families are found by name, and what one lists of its parameters is what it builds.
#include "weft/model/kinds.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/refused.h"
#include "tests/support/tiny.h"

using namespace weft;
using namespace weft::testing;

namespace {

/// Shapes and beginnings by name.
using Listed = std::map<std::string, std::string>;

std::string said(const Shape& shape, const Init& init) {
  return text(shape, " how ", int(init.how), " value ", init.value, " spread ", init.spread);
}

Listed listed(const ModelConfig& config) {
  Listed out;
  const ParameterList list = kind_of(config).parameters(config);
  for (const WholeParameter& p : list.all()) out[p.name] = said(p.shape, p.init);
  return out;
}

Listed built(const ModelConfig& config) {
  const auto device = open_device("meta");
  TinyModel model(config, *device);
  Listed out;
  model.stage().each_parameter(
      [&](Parameter& p) { out[p.name] = said(p.pieces.front().where.global, p.init); });
  return out;
}

}  // namespace

TEST(ModelKinds, are_found_by_name) {
  EXPECT_EQ(kind_named("gpt").name, "gpt");
  EXPECT_EQ(kind_of({}).name, "gpt");
  EXPECT_FALSE(find_kind("mamba"));
  EXPECT_EQ(refused([] { (void)kind_named("mamba"); }),
            "model: no family is called mamba, weft has gpt, bert, t5");
}

TEST(ModelKinds, build_the_parameters_they_list) {
  ModelConfig normed = tiny_llama();
  normed.qk_norm = normed.norm_centered_gain = true;
  ModelConfig uniform = tiny_gpt2();
  uniform.init = {.method = InitMethod::xavier_uniform, .embedding_std = 0.5, .scale_output_layers = false};
  ModelConfig one_loss = tiny_bert();
  one_loss.sentence_order = one_loss.tied_output = false;
  ModelConfig other_t5 = tiny_t5();
  other_t5.decoder_layers = 3;
  other_t5.tied_output = false;
  other_t5.positions = Positions::learned;
  for (const ModelConfig& config :
       {tiny_gpt2(), tiny_llama(), normed, uniform, tiny_bert(), one_loss, tiny_t5(), other_t5})
    EXPECT_EQ(built(config), listed(config));
}

TEST(ModelKinds, know_no_parameter_twice_or_of_another_model) {
  ParameterList list = kind_named("gpt").parameters(tiny_gpt2());
  EXPECT_FALSE(list.has("output.words"));
  EXPECT_EQ(refused([&] { (void)list.at("output.words"); }), "model: no parameter is called output.words");
  EXPECT_EQ(refused([&] { list.add("final_norm.gain", {16}, {}); }),
            "model: two parameters are called final_norm.gain");
}
