// BERTs and T5s of transformers: what their config.json leaves to say, and what theirs have not.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/exchange/hub.h"
#include "tests/support/refused.h"
#include "tests/support/temporary.h"
#include "weft/base/file.h"
#include "weft/checkpoint/safetensors.h"
#include "weft/exchange/hub_write.h"
#include "weft/nn/pass.h"

using namespace weft;
using namespace weft::testing;
using namespace weft::exchange;
using nlohmann::json;
using support::TemporaryDirectory;

namespace {

json plain_t5() {
  return {{"model_type", "t5"}, {"num_layers", 2}, {"d_model", 16},    {"d_kv", 4},
          {"num_heads", 4},     {"d_ff", 24},      {"vocab_size", 37}, {"decoder_start_token_id", 3}};
}
ModelConfig read(json object, const json& patch = json::object()) {
  object.merge_patch(patch);
  return hub_config_from_json(object.dump(), "c").model;
}

std::string no_t5(void (*change)(ModelConfig&)) {
  ModelConfig m = read(plain_t5());
  change(m);
  const std::string found = refused([&] { (void)type_for(m); });
  const std::string lead = "exchange: no Hugging Face model of two stacks that weft writes (t5) has ";
  return found.starts_with(lead) ? found.substr(lead.size()) : found;
}
std::string no_bert(void (*change)(ModelConfig&)) {
  ModelConfig m = read_hub_config(hub_model("bert")).model;
  change(m);
  const std::string found = refused([&] { (void)type_for(m); });
  const std::string lead = "exchange: no Hugging Face model that weft writes (bert, megatron-bert) has ";
  return found.starts_with(lead) ? found.substr(lead.size()) : found;
}

/// The model's weights as some numbers, for what is only written.
std::vector<float> some(const Recipe& recipe) {
  std::vector<float> out(std::size_t(recipe.shape.elements()));
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = 0.01F * float(i % 7) + (recipe.shape.rank() == 1 ? 1 : 0);
  return out;
}

}  // namespace

TEST(HubT5, what_is_missing_has_the_default_of_the_family) {
  const HubConfig hub = hub_config_from_json(plain_t5().dump(), "c");
  const ModelConfig& m = hub.model;
  EXPECT_EQ(m.decoder_layers, 2);
  EXPECT_EQ(m.sequence, 512);
  EXPECT_EQ(m.decoder_sequence, 512);
  EXPECT_EQ(m.relative.buckets, 32);
  EXPECT_EQ(m.relative.farthest, 128);
  EXPECT_EQ(m.activation, Activation::relu);
  EXPECT_FALSE(m.gated);
  EXPECT_EQ(m.softmax_scale, 1);
  EXPECT_EQ(m.output_multiplier, 0.25);  // 16 channels
  EXPECT_EQ(hub.start, 3);
  EXPECT_TRUE(hub.notices.empty());
}

TEST(HubT5, its_output_is_scaled_where_it_is_the_embedding_unless_it_says_otherwise) {
  EXPECT_EQ(read(plain_t5(), {{"tie_word_embeddings", false}}).output_multiplier, 1);
  EXPECT_EQ(read(plain_t5(), {{"scale_decoder_outputs", false}}).output_multiplier, 1);
}

TEST(HubT5, gates_are_read_as_transformers_reads_them) {
  const auto mlp = [](const char* word) {
    const ModelConfig m = read(plain_t5(), {{"feed_forward_proj", word}});
    return std::pair(m.activation, m.gated);
  };
  EXPECT_EQ(mlp("gated-gelu"), std::pair(Activation::gelu, true));
  EXPECT_EQ(mlp("gated-silu"), std::pair(Activation::silu, true));
  EXPECT_EQ(mlp("gelu"), std::pair(Activation::gelu_erf, false));
  EXPECT_EQ(refused([&] { (void)mlp("gated-wobble"); }),
            "c: \"feed_forward_proj\" is \"gated-wobble\", which is no activation that weft knows");
}

TEST(HubT5, lengths_are_a_runs_own) {
  const HubConfig hub = hub_config_from_json(plain_t5().dump(), "c");
  ModelConfig run = hub.model;
  run.sequence = run.max_positions = 1024;
  run.decoder_sequence = 64;
  EXPECT_EQ(refused([&] { must_agree(run, hub.model, "c"); }), "");
}

TEST(HubT5, what_none_of_them_has_is_named) {
  EXPECT_EQ(no_t5([](ModelConfig& m) { m.positions = Positions::learned; }), "no relative positions");
  EXPECT_EQ(no_t5([](ModelConfig& m) { m.norm = NormKind::layer; }), "layer norms, not {model.norm=rms}");
  EXPECT_EQ(no_t5([](ModelConfig& m) { m.qkv_bias = true; }), "biases, not {model.linear_bias=false}");
  EXPECT_EQ(no_t5([](ModelConfig& m) { m.softmax_scale = 0.5; }),
            "scores that are scaled, not {model.softmax_scale=1}");
  EXPECT_EQ(no_t5([](ModelConfig& m) { m.residual_after_norm = true; }),
            "blocks that add to what their norm gave");
  EXPECT_EQ(no_t5([](ModelConfig& m) { m.gated = true, m.activation = Activation::gelu_erf; }),
            "MLPs gated by the exact gelu");
  EXPECT_EQ(no_t5([](ModelConfig& m) { m.embedding_multiplier = 2; }), "an embedding multiplier");
  EXPECT_EQ(no_t5([](ModelConfig& m) { m.mup.on = true; }), "multipliers of muP");
  EXPECT_EQ(no_t5([](ModelConfig& m) { m.output_bias = true; }),
            "biases of its logits, not {model.output_bias=false}");
  EXPECT_EQ(
      no_t5([](ModelConfig& m) { m.output_multiplier = 1; }),
      "an output that is the embedding and whose {model.output_multiplier} is not one by the root of the "
      "hidden size");
  EXPECT_EQ(no_t5([](ModelConfig& m) { m.tied_output = false; }), "an output of its own with a multiplier");
}

TEST(HubT5, an_embedding_that_is_stored_again_must_be_the_same) {
  const TemporaryDirectory folder;
  ModelConfig m = read(plain_t5());
  write_hub(folder / "out", m, some, {});
  const HubConfig hub = read_hub_config(folder / "out");
  const auto stored_again = [&](float value) {
    std::vector<checkpoint::Entry> entries{{"encoder.embed_tokens.weight", Dtype::f32, {37, 16}, 0}};
    const std::string first = checkpoint::lay_out(entries, {{"format", "pt"}});
    const std::string name = "extra.safetensors";
    std::vector<float> words = some({"embedding.words", {37, 16}, {}, {}});
    words[5] += value;
    checkpoint::write_tensors(folder / "out" / name, first, entries,
                              [&](const checkpoint::Entry&, File& file) {
                                file.write(std::as_bytes(std::span<const float>(words)));
                              });
    json map;
    for (const std::string& tensor : HubTensors(folder / "out").names()) map[tensor] = "model.safetensors";
    map["encoder.embed_tokens.weight"] = name;
    std::ofstream(folder / "out/model.safetensors.index.json")
        << json{{"metadata", json::object()}, {"weight_map", map}}.dump();
    const std::string found = refused([&] { (void)HubWeights(folder / "out", hub); });
    std::filesystem::remove(folder / "out/model.safetensors.index.json");
    return found;
  };
  EXPECT_EQ(stored_again(0), "");
  EXPECT_EQ(stored_again(1),
            (folder / "out").string() +
                ": its config.json ties encoder.embed_tokens.weight to the embedding, and they "
                "differ");
}

namespace {

/// A golden model with other words in its config.json.
void copy_patched(const std::filesystem::path& from, const std::filesystem::path& to, const json& patch) {
  std::filesystem::copy(from, to);
  std::ifstream file(to / "config.json");
  json config = json::parse(file);
  config.merge_patch(patch);
  std::ofstream(to / "config.json") << config.dump();
}

std::vector<float> said_by(const std::filesystem::path& directory, const Expected& asked) {
  const HubConfig hub = read_hub_config(directory);
  SoloCommunicator solo;
  ReadModel model(hub.model, solo);
  load_theirs(HubWeights(directory, hub), model.named(), solo);
  return model.logits(asked.prompt, asked.source);
}

std::vector<float> times(std::vector<float> x, float factor) {
  for (float& value : x) value *= factor;
  return x;
}

}  // namespace

// As transformers saves a T5 1.1 from version 5 on: "tie_word_embeddings" whatever was read.
TEST(HubT5, an_output_of_its_own_is_known_by_its_tensor_where_config_json_ties_all) {
  const TemporaryDirectory folder;
  const Expected expected = expected_of(hub_model("t5_gated"));
  copy_patched(hub_model("t5_gated"), folder / "m", {{"tie_word_embeddings", true}});
  EXPECT_FALSE(read_hub_config(folder / "m").model.tied_output);
  EXPECT_LT(difference(said_by(folder / "m", expected), expected.logits), 1e-5);
  copy_patched(hub_model("t5"), folder / "tied", {{"scale_decoder_outputs", false}});
  EXPECT_TRUE(read_hub_config(folder / "tied").model.tied_output);
}

// 16 channels, so a scaled output is a quarter.
TEST(HubT5, outputs_are_scaled_where_config_json_says_so_and_then_not_written) {
  const TemporaryDirectory folder;
  const Expected tied = expected_of(hub_model("t5")), own = expected_of(hub_model("t5_gated"));
  copy_patched(hub_model("t5"), folder / "unscaled", {{"scale_decoder_outputs", false}});
  EXPECT_LT(difference(said_by(folder / "unscaled", tied), times(tied.logits, 4)), 1e-5);
  copy_patched(hub_model("t5_gated"), folder / "scaled", {{"scale_decoder_outputs", true}});
  EXPECT_LT(difference(said_by(folder / "scaled", own), times(own.logits, 0.25F)), 1e-5);
  const std::string lead = "exchange: no Hugging Face model of two stacks that weft writes (t5) has ";
  EXPECT_EQ(refused([&] { (void)type_for(read_hub_config(folder / "unscaled").model); }),
            lead +
                "an output that is the embedding and whose {model.output_multiplier} is not one by the root "
                "of the hidden size");
  EXPECT_EQ(refused([&] { (void)type_for(read_hub_config(folder / "scaled").model); }),
            lead + "an output of its own with a multiplier");
}

namespace {

/// Keeps what a BERT says of the order of two sentences, which goes into a loss only.
class Order final : public Watch {
 public:
  void see(const char* operation, int, const Tensor& x) override {
    if (operation == std::string_view("logits of the sentence order")) logits = to_host<float>(x);
  }
  std::vector<float> logits;
};

std::vector<float> order_said(ReadModel& model, const std::vector<std::int32_t>& prompt) {
  const auto s = std::int64_t(prompt.size());
  std::vector<std::int32_t> places(prompt.size());
  std::iota(places.begin(), places.end(), 0);
  const auto column = [&](const std::vector<std::int32_t>& of) {
    return from_host(model.device(), {s, 1}, of);
  };
  const std::vector<std::int32_t> zeros(prompt.size(), 0);
  Batch batch;
  batch.text = {.tokens = column(prompt),
                .places = from_host(model.device(), {s}, places),
                .positions = column(places),
                .types = column(zeros),
                .segments = {}};
  batch.targets = column(zeros);
  batch.mask = from_host(model.device(), {s, 1}, std::vector<float>(prompt.size(), 1));
  batch.sentence_order = from_host(model.device(), {1}, std::vector<std::int32_t>{0});
  batch.sentence_mask = from_host(model.device(), {1}, std::vector<float>{1});
  batch.hold_samples(model.device(), {0});
  Order order;
  Pass pass;
  pass.open(batch, {.training = false}, &order);
  (void)model.stage().forward(pass, {});
  return order.logits;
}

}  // namespace

TEST(HubBert, says_of_the_order_of_sentences_what_transformers_says) {
  for (const char* name : {"bert", "megatron_bert"}) {
    const HubConfig hub = read_hub_config(hub_model(name));
    const Expected expected = expected_of(hub_model(name));
    ASSERT_EQ(expected.order.size(), 2U);
    SoloCommunicator solo;
    ReadModel model(hub.model, solo);
    load_theirs(HubWeights(hub_model(name), hub), model.named(), solo);
    EXPECT_LT(difference(order_said(model, expected.prompt), expected.order), 1e-5) << name;
  }
}

TEST(HubBert, a_head_of_words_alone_is_known_by_its_class) {
  for (const char* name : {"bert_words", "megatron_bert_words"}) {
    const ModelConfig m = read_hub_config(hub_model(name)).model;
    EXPECT_FALSE(m.sentence_order) << name;
    EXPECT_TRUE(m.token_types) << name;
  }
  EXPECT_TRUE(read_hub_config(hub_model("bert")).model.sentence_order);
}

// As bert-base-uncased is stored: its config.json names the words' head alone, its tensors are those of both
// heads, and its norms have the names of the first program.
TEST(HubBert, what_stands_beside_a_head_of_words_is_passed_over) {
  const TemporaryDirectory folder;
  std::filesystem::copy(hub_model("bert"), folder / "m");
  std::ifstream from(folder / "m/config.json");
  json config = json::parse(from);
  config["architectures"] = {"BertForMaskedLM"};
  std::ofstream(folder / "m/config.json") << config.dump();
  const HubConfig hub = read_hub_config(folder / "m");
  EXPECT_EQ(refused([&] { (void)HubWeights(folder / "m", hub); }), "");
}

TEST(HubBert, norms_may_have_their_old_names) {
  const TemporaryDirectory folder;
  std::filesystem::copy(hub_model("bert"), folder / "m");
  std::string bytes = [&] {
    std::ifstream file(folder / "m/model.safetensors", std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  // As many letters, so that nothing moves.
  for (const auto& [now, then] :
       {std::pair<std::string, std::string>{"LayerNorm.weight\"", "LayerNorm.gamma\" "},
        {"LayerNorm.bias\"", "LayerNorm.beta\""}})
    for (std::size_t at = bytes.find(now); at != std::string::npos; at = bytes.find(now, at + 1))
      bytes.replace(at, now.size(), then);
  std::ofstream(folder / "m/model.safetensors", std::ios::binary) << bytes;
  SoloCommunicator solo;
  const HubConfig hub = read_hub_config(folder / "m");
  const Expected expected = expected_of(hub_model("bert"));
  ReadModel model(hub.model, solo);
  load_theirs(HubWeights(folder / "m", hub), model.named(), solo);
  EXPECT_LT(difference(model.logits(expected.prompt), expected.logits), 1e-5);
}

// Version 4 of transformers stores the one bias under either name, version 5 two, of which it adds the first.
TEST(HubBert, the_bias_of_an_output_of_its_own_may_be_stored_once) {
  const TemporaryDirectory folder;
  const std::filesystem::path from = hub_model("bert_untied");
  const HubTensors tensors(from);
  std::filesystem::create_directories(folder / "m");
  std::filesystem::copy(from / "config.json", folder / "m/config.json");
  std::vector<checkpoint::Entry> entries;
  for (const std::string& name : tensors.names()) {
    if (name == "cls.predictions.decoder.bias") continue;
    const checkpoint::Entry& entry = *tensors.find(name);
    entries.push_back({name, entry.dtype, entry.shape, 0});
  }
  const std::string head = checkpoint::lay_out(entries, {{"format", "pt"}});
  checkpoint::write_tensors(folder / "m/model.safetensors", head, entries,
                            [&](const checkpoint::Entry& entry, File& file) {
                              const bool bias = entry.name == "cls.predictions.bias";
                              file.write(tensors.bytes(bias ? "cls.predictions.decoder.bias" : entry.name));
                            });
  const Expected expected = expected_of(from);
  EXPECT_LT(difference(said_by(folder / "m", expected), expected.logits), 1e-5);
}

TEST(HubBert, the_bias_of_an_output_of_its_own_is_written_for_all_versions) {
  const TemporaryDirectory folder;
  write_hub(folder / "out", read_hub_config(hub_model("bert_untied")).model, some, {});
  const HubTensors tensors(folder / "out");
  const auto one = tensors.bytes("cls.predictions.bias"),
             other = tensors.bytes("cls.predictions.decoder.bias");
  EXPECT_EQ(one.size(), 37 * sizeof(float));
  EXPECT_TRUE(std::ranges::equal(one, other));
  EXPECT_TRUE(std::ranges::any_of(one, [](std::byte b) { return b != std::byte{0}; }));
}

// Megatron's models without the binary head have no token types; theirs always have two.
TEST(HubBert, token_types_that_a_model_has_not_are_written_as_zeros) {
  const TemporaryDirectory folder;
  ModelConfig m = read_hub_config(hub_model("megatron_bert_words")).model;
  m.token_types = false;
  write_hub(folder / "out", m, some, {});
  const HubTensors tensors(folder / "out");
  const auto bytes = tensors.bytes("bert.embeddings.token_type_embeddings.weight");
  EXPECT_EQ(bytes.size(), 2 * 16 * sizeof(float));
  EXPECT_TRUE(std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; }));
  const HubConfig again = read_hub_config(folder / "out");
  EXPECT_TRUE(again.model.token_types);
  EXPECT_EQ(refused([&] { (void)HubWeights(folder / "out", again); }), "");
}

TEST(HubBert, what_none_of_them_has_is_named) {
  EXPECT_EQ(no_bert([](ModelConfig& m) { m.output_bias = false; }),
            "an encoder without biases of its logits");
  EXPECT_EQ(no_bert([](ModelConfig& m) { m.mup.on = true; }), "an encoder with multipliers of muP");
  EXPECT_EQ(no_bert([](ModelConfig& m) { m.output_multiplier = 2; }), "an encoder with an output multiplier");
  EXPECT_EQ(no_bert([](ModelConfig& m) { m.activation = Activation::gelu; }),
            "an encoder with another activation in its MLP than the exact gelu of its output: train with "
            "{model.activation=gelu_erf}");
}

// One type of words, places behind two rows, and a head of the words alone, whatever it is called.
TEST(HubRoberta, is_a_bert_of_words_under_other_names) {
  for (const char* name : {"roberta", "xlm_roberta"}) {
    const ModelConfig m = read_hub_config(hub_model(name)).model;
    EXPECT_EQ(m.kind, "bert") << name;
    EXPECT_EQ(m.max_positions, 22) << name;
    EXPECT_FALSE(m.sentence_order) << name;
    EXPECT_TRUE(m.token_types) << name;
    EXPECT_EQ(type_for(m), "bert") << name;
  }
  EXPECT_FALSE(read_hub_config(hub_model("xlm_roberta")).model.tied_output);
}

TEST(HubRoberta, of_another_kind_is_refused_by_name) {
  const auto said = [](const json& patch) {
    json object = json::parse(read_file(hub_model("roberta") / "config.json"));
    object.merge_patch(patch);
    return refused([&] { (void)hub_config_from_json(object.dump(), "c"); });
  };
  EXPECT_EQ(said({{"type_vocab_size", 2}}), "c: \"type_vocab_size\" is 2, weft can only compute 1");
  EXPECT_EQ(said({{"pad_token_id", 0}}), "c: \"pad_token_id\" is 0, weft can only compute 1");
  EXPECT_EQ(said({{"max_position_embeddings", 2}}),
            "c: \"max_position_embeddings\" is 2, expected more than 2");
}

TEST(HubT5, of_many_languages_is_another_ones_name) {
  json object = plain_t5();
  object["model_type"] = "mt5";
  const ModelConfig m = read(object);
  EXPECT_EQ(m.kind, "t5");
  EXPECT_TRUE(m.gated);
  EXPECT_FALSE(m.tied_output);
  EXPECT_EQ(type_for(m), "t5");
}
