// Layers that are one thing each, written in Hugging Face's words, and what they guess further tokens by.
#include <gtest/gtest.h>

#include <map>

#include "tests/exchange/changed.h"
#include "weft/exchange/hub_write.h"

using namespace weft;
using namespace weft::testing;
using namespace weft::exchange;
using nlohmann::json;
using support::TemporaryDirectory;

namespace {

ModelConfig nemotron() { return read_hub_config(hub_model("nemotron_h")).model; }

ModelConfig with_further(const std::string& letters, int depths) {
  ModelConfig config = nemotron();
  config.hybrid.ahead = letters;
  config.ahead.depths = depths;
  return config;
}

using Values = std::map<std::string, std::vector<float>>;

/// A model of random weights, written.
Values write_random(const ModelConfig& config, const std::filesystem::path& to) {
  const auto device = open_device("cpu", {.threads = 1});
  TinyModel model(config, *device);
  Values values;
  model.stage().each_parameter([&](Parameter& p) {
    auto all = to_host<float>(p.value);
    all.resize(std::size_t(p.pieces.front().where.global.elements()));
    values[p.name] = all;
  });
  write_hub(to, config, [&](const Recipe& r) { return values.at(r.name); }, {});
  return values;
}

Values read_all(const std::filesystem::path& from) {
  const HubWeights weights(from, read_hub_config(from));
  Values out;
  for (const Recipe& recipe : weights.all()) {
    std::vector<float> all(std::size_t(recipe.shape.elements()));
    weights.read(recipe, 0, all);
    out[recipe.name] = all;
  }
  return out;
}

std::vector<std::string> tensors_of(const std::filesystem::path& directory, const std::string& start) {
  std::vector<std::string> out;
  const checkpoint::TensorFile file(directory / "model.safetensors");
  for (const auto& entry : file.header().entries)
    if (entry.name.starts_with(start)) out.push_back(entry.name);
  std::ranges::sort(out);
  return out;
}

/// What a config.json with such settings guesses further tokens by.
std::string letters_of(const json& changes) {
  json object = settings_of("nemotron_h");
  object.update(changes);
  const ModelConfig model = hub_config_from_json(object.dump(), "c").model;
  return text(model.ahead.depths, model.hybrid.ahead);
}

std::string why_no_nemotron(const std::function<void(ModelConfig&)>& change) {
  ModelConfig model = nemotron();
  change(model);
  return weft::testing::reason(model);
}

}  // namespace

// A layer of each kind there, for every depth; the first joins, the last has a norm behind it.
TEST(HubNemotronWrite, further_tokens_are_read_and_written) {
  const TemporaryDirectory folder;
  const Values values = write_random(with_further("*E", 2), folder / "out");
  const ModelConfig again = read_hub_config(folder / "out").model;
  EXPECT_EQ(again.ahead.depths, 2);
  EXPECT_EQ(again.hybrid.ahead, "*E");
  EXPECT_EQ(read_all(folder / "out"), values);
  const auto names = tensors_of(folder / "out", "mtp.layers.2.");
  EXPECT_EQ(names,
            (std::vector<std::string>{"mtp.layers.2.eh_proj.weight", "mtp.layers.2.enorm.weight",
                                      "mtp.layers.2.hnorm.weight", "mtp.layers.2.mixer.k_proj.weight",
                                      "mtp.layers.2.mixer.o_proj.weight", "mtp.layers.2.mixer.q_proj.weight",
                                      "mtp.layers.2.mixer.v_proj.weight", "mtp.layers.2.norm.weight"}));
  EXPECT_EQ(tensors_of(folder / "out", "mtp.layers.3.final").size(), 1U);
}

TEST(HubNemotronWrite, what_guesses_further_tokens_may_be_a_state_space) {
  const TemporaryDirectory folder;
  const Values values = write_random(with_further("M-", 1), folder / "out");
  EXPECT_EQ(read_all(folder / "out"), values);
}

TEST(HubNemotronWrite, further_tokens_are_read_where_weft_has_such_layers) {
  EXPECT_EQ(letters_of({{"num_nextn_predict_layers", 1}}), "1*E");
  EXPECT_EQ(letters_of({{"num_nextn_predict_layers", 2}, {"mtp_layers_block_type", {"attention", "mlp"}}}),
            "2*-");
  EXPECT_EQ(letters_of({{"num_nextn_predict_layers", 1},
                        {"mtp_layers_block_type", nullptr},
                        {"mtp_hybrid_override_pattern", "M"}}),
            "1M");
  EXPECT_EQ(letters_of({{"num_nextn_predict_layers", 0}}), "0");
  for (const json& two : {json{"attention", "attention"}, json{"mlp", "moe"}})
    EXPECT_EQ(letters_of({{"num_nextn_predict_layers", 1}, {"mtp_layers_block_type", two}}), "0");
  EXPECT_EQ(letters_of({{"num_nextn_predict_layers", 1}, {"layers_block_type", {"mamba", "mlp"}}}), "0");
}

// transformers does not store them, whatever it says; and where nothing is said of those that are stored, it
// passes them over.
TEST(HubNemotronWrite, further_tokens_that_are_not_stored_or_not_said_are_passed_over) {
  const TemporaryDirectory one, two;
  std::filesystem::copy(hub_model("nemotron_h"), one.path(), std::filesystem::copy_options::recursive);
  json object = settings_of("nemotron_h");
  object["num_nextn_predict_layers"] = 1;
  std::filesystem::permissions(one / "config.json", std::filesystem::perms::owner_all);
  std::ofstream(one / "config.json") << object;
  EXPECT_EQ(read_hub_config(one.path()).model.ahead.depths, 0);
  EXPECT_EQ(read_all(one.path()), read_all(hub_model("nemotron_h")));
  copy_changed("nemotron_h", two.path(), "", "mtp.layers.0.norm.weight");
  const HubWeights weights(two.path(), read_hub_config(two.path()));
  EXPECT_EQ(weights.notices(), std::vector{two.path().string() +
                                           ": mtp.layers.0.norm.weight and 0 more tensors are of a part that "
                                           "weft does not make: they are passed over"});
}

// transformers raises times to time_step_min, which must then be next to nothing.
TEST(HubNemotronWrite, a_config_says_what_the_model_has_and_no_more) {
  const json all = json::parse(hub_config_json(nemotron(), Dtype::f32, {}));
  EXPECT_EQ(all["hybrid_override_pattern"], "ME*-");
  EXPECT_LE(all["time_step_min"].get<double>(), 1e-30);
  EXPECT_FALSE(all.contains("num_nextn_predict_layers") || all.contains("layers_block_type"));
  ModelConfig plain = nemotron();
  plain.hybrid.layers = "*-*-";
  plain.experts = {};
  plain.state = {};
  const json few = json::parse(hub_config_json(plain, Dtype::f32, {}));
  EXPECT_FALSE(few.contains("mamba_num_heads") || few.contains("n_routed_experts"));
  EXPECT_EQ(hub_config_from_json(few.dump(), "c").model.hybrid.layers, "*-*-");
}

TEST(HubNemotronWrite, a_run_agrees_with_a_directory_whatever_nothing_depends_on) {
  HubConfig hub = read_hub_config(hub_model("nemotron_h_latent"));  // no MLP among its layers
  ModelConfig run = hub.model;
  run.ffn_hidden = 1000;
  run.max_positions = run.sequence = 8;
  EXPECT_EQ(refused([&] { must_agree(run, hub.model, "c: its config.json"); }), "");
  run.state.groups = 1;
  EXPECT_EQ(
      refused([&] { must_agree(run, hub.model, "c: its config.json"); }),
      "c: its config.json says state.groups 2, and 1 is asked for; {checkpoint.use_args} takes the model "
      "from there");
}

TEST(HubNemotronWrite, what_no_family_has_is_named) {
  EXPECT_EQ(type_for(nemotron()), "nemotron_h");
  EXPECT_EQ(why_no_nemotron([](auto& m) { m.hybrid.layers[0] = 'G'; }),
            "layers of one thing each, with the gated delta rule");
  EXPECT_EQ(why_no_nemotron([](auto& m) { m.positions = Positions::rotary; }),
            "layers of one thing each, with positions");
  EXPECT_EQ(why_no_nemotron([](auto& m) { m.norm = NormKind::layer; }),
            "layers of one thing each, with a layer norm");
  EXPECT_EQ(why_no_nemotron([](auto& m) { m.state.norm_epsilon = 1e-6; }),
            "state spaces whose norms have another epsilon than the others");
  EXPECT_EQ(why_no_nemotron([](auto& m) { m.latent.on = true; }),
            "layers of one thing each, with latent attention");
  EXPECT_EQ(why_no_nemotron([](auto& m) { m.qk_norm = true; }),
            "layers of one thing each, with norms of queries and keys");
  EXPECT_EQ(why_no_nemotron([](auto& m) { m.linear_bias = true; }), "layers of one thing each, with biases");
  EXPECT_EQ(why_no_nemotron([](auto& m) { m.qkv_bias = true; }), "layers of one thing each, with biases");
  EXPECT_EQ(why_no_nemotron([](auto& m) { m.gated = true; }), "layers of one thing each, with a gated MLP");
  EXPECT_EQ(why_no_nemotron([](auto& m) { m.tied_output = true; }),
            "layers of one thing each, with an output that is the embedding");
  EXPECT_EQ(why_no_nemotron([](auto& m) { m.sink = Sink::learned; }),
            "layers of one thing each, with attention sinks");
  EXPECT_EQ(why_no_nemotron([](auto& m) { m.window = 4; }), "layers of one thing each, with a window");
  EXPECT_EQ(why_no_nemotron([](auto& m) { m.embedding_multiplier = 2; }),
            "multipliers without rotary positions");
  EXPECT_EQ(why_no_nemotron([](auto& m) { m.hybrid = {}; }), "no positions");
}

TEST(HubNemotronWrite, experts_that_no_family_has_are_named) {
  EXPECT_EQ(why_no_nemotron([](auto& m) { m.experts.router.score = RouterScore::softmax; }),
            "layers of one thing each, with experts that are not chosen by sigmoids and a bias");
  EXPECT_EQ(why_no_nemotron([](auto& m) { m.experts.router.expert_bias = false; }),
            "layers of one thing each, with experts that are not chosen by sigmoids and a bias");
  EXPECT_EQ(
      why_no_nemotron([](auto& m) { m.experts.router.groups = 2, m.experts.router.groups_kept = 1; }),
      "layers of one thing each, with groups of experts that are compared by other than their best two");
  EXPECT_EQ(why_no_nemotron([](auto& m) { m.experts.shared_hidden = 0; }),
            "layers of one thing each, with experts and no shared one");
  EXPECT_EQ(why_no_nemotron([](auto& m) { m.experts.shared_gate = true; }),
            "layers of one thing each, with a gate of the shared expert");
  EXPECT_EQ(why_no_nemotron([](auto& m) { m.experts.residual = true; }),
            "experts beside an MLP, weighed by a gate");
}

// Gains around zero, but for the one of what was remembered: the directory must mean the same.
TEST(HubNemotronWrite, models_in_our_own_ways_of_storing_become_theirs) {
  const TemporaryDirectory folder;
  ModelConfig config = nemotron();
  config.norm_centered_gain = true;
  SoloCommunicator solo;
  const auto ours =
      write_with_gains(config, folder / "out", [](std::size_t i) { return 0.5F + 0.25F * float(i % 5); });
  const HubConfig again = read_hub_config(folder / "out");
  EXPECT_FALSE(again.model.norm_centered_gain);
  ReadModel copy(again.model, solo);
  load_theirs(HubWeights(folder / "out", again), copy.named(), solo);
  EXPECT_LT(difference(copy.logits(written_prompt), ours), 1e-5);
}
