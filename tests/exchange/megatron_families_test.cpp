// T5s, BERTs and GPTs with latent attention and further tokens that megatron-core 0.16.1 wrote
// (tests/oracle/megatron_families.py), and the logits that it computed from them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "tests/exchange/hub.h"
#include "tests/exchange/megatron_files.h"
#include "tests/exchange/torch_files.h"
#include "tests/support/refused.h"
#include "tests/support/temporary.h"
#include "weft/base/file.h"
#include "weft/checkpoint/safetensors.h"
#include "weft/comm/solo.h"
#include "weft/comm/threads.h"
#include "weft/exchange/megatron/family.h"
#include "weft/exchange/megatron/weights.h"
#include "weft/exchange/their_model.h"

using namespace weft;
using namespace weft::testing;
using namespace weft::exchange;
using support::TemporaryDirectory;

namespace {

namespace fs = std::filesystem;

std::vector<std::int32_t> words_in(const checkpoint::TensorFile& file, const char* name) {
  const auto wide = numbers_in<std::int64_t>(file, name);
  return {wide.begin(), wide.end()};
}

/// What a model of that directory makes of megatron-core's text, apart from what that made of it.
double apart(const fs::path& directory, Communicator& world) {
  const TheirModel theirs = read_theirs(directory);
  ReadModel model(theirs.model, world);
  load_theirs(*theirs.open(), model.named(), world);
  const checkpoint::TensorFile probe(directory / "probe.safetensors");
  const bool looks = theirs.model.decoder_layers > 0;
  const auto source = looks ? words_in(probe, "source") : std::vector<std::int32_t>();
  return difference(model.logits(words_in(probe, "tokens"), source), numbers_in<float>(probe, "logits"));
}

class MegatronFamilies : public ::testing::TestWithParam<const char*> {};

/// Arguments with these entries, as a pickle has them.
megatron::Arguments arguments(const std::string& entries) {
  return {*unpickled(pickle(dict(entries))).map(), "a"};
}
constexpr const char *yes = "\x88", *no = "\x89";

/// Of a small model with latent attention.
std::string latent(const std::string& more) {
  return entry("num_layers", number(2)) + entry("hidden_size", number(8)) +
         entry("num_attention_heads", number(2)) + entry("seq_length", number(8)) +
         entry("padded_vocab_size", number(40)) + entry("add_bias_linear", no) +
         entry("position_embedding_type", word("rope")) + entry("multi_latent_attention", yes) + more;
}
ModelConfig model_with(const std::string& entries) { return megatron::model_of(arguments(entries)); }
std::string said_to(const std::string& entries) {
  return refused([&] { (void)model_with(entries); });
}
std::string real(double value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  std::string out = "G";
  for (int shift = 56; shift >= 0; shift -= 8) out += char(bits >> shift & 255);
  return out;
}

/// Two rows of two numbers each, `one` and `other`.
class TwoRows {
 public:
  TwoRows(std::array<float, 2> one, std::array<float, 2> other)
      : stream_(saved(dict(entry("one", row("0")) + entry("other", row("1"))), {bytes(one), bytes(other)})),
        archive_(bytes_of(stream_), "f") {}
  void add(megatron::Tensors& to, const std::string& name, const char* from) const {
    const exchange::torch::StoredTensor* stored = archive_.value().map()->find(from)->tensor();
    to.add(name, {2},
           {.rows = 2,
            .columns = 1,
            .archive = &archive_,
            .stored = stored,
            .dtype = stored->dtype,
            .row_step = 1});
  }

 private:
  static std::string row(const char* key) { return tensor(storage(key, 2), 0, number(2), number(1)); }
  static std::string bytes(std::array<float, 2> row) { return little(row); }
  std::string stream_;
  exchange::torch::Archive archive_;
};

}  // namespace

TEST_P(MegatronFamilies, logits_are_those_that_it_computed) {
  SoloCommunicator solo;
  EXPECT_LT(apart(megatron_golden(GetParam()), solo), 1e-5);
}

// A rank reads its own boxes alone.
TEST_P(MegatronFamilies, logits_are_those_under_another_layout) {
  run_as_threads(2, [&](Communicator& world) { EXPECT_LT(apart(megatron_golden(GetParam()), world), 1e-5); });
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, MegatronFamilies,
                         ::testing::Values("t5_distopt", "bert_distopt", "latent_distopt", "further_distopt"),
                         [](const auto& one) { return std::string(one.param); });

TEST(MegatronFamily, is_seen_from_the_tensors) {
  const ModelConfig t5 = read_theirs(megatron_golden("t5_distopt")).model,
                    bert = read_theirs(megatron_golden("bert_distopt")).model;
  EXPECT_EQ(t5.kind, "t5");
  EXPECT_EQ(t5.layers, 2);
  EXPECT_EQ(t5.decoder_layers, 2);
  EXPECT_EQ(t5.sequence, 16);
  EXPECT_EQ(t5.decoder_sequence, 12);
  EXPECT_EQ(t5.relative.buckets, 8);
  EXPECT_EQ(bert.kind, "bert");
  EXPECT_TRUE(bert.sentence_order);
  EXPECT_EQ(read_theirs(megatron_golden("further_distopt")).model.kind, "gpt");
}

TEST(MegatronFamily, of_further_tokens_has_their_number_and_factor) {
  const ModelConfig model = read_theirs(megatron_golden("further_distopt")).model;
  EXPECT_EQ(model.ahead.depths, 2);
  EXPECT_EQ(model.ahead.factor, 0.3);
}

TEST(MegatronBert, has_no_tensor_that_its_arguments_do_not_ask_for) {
  const TemporaryDirectory folder;
  const fs::path copy = folder / "copy";
  fs::copy(megatron_golden("bert_distopt"), copy, fs::copy_options::recursive);
  const fs::path common = copy / "iter_0000004/common.pt";
  const std::string args = entry("num_layers", number(2)) + entry("hidden_size", number(8)) +
                           entry("num_attention_heads", number(2)) + entry("ffn_hidden_size", number(12)) +
                           entry("seq_length", number(24)) + entry("padded_vocab_size", number(160)) +
                           entry("max_position_embeddings", number(24)) + entry("bert_binary_head", no);
  write_atomically(common, std::string_view(saved(dict(entry("args", dict(args))))));
  EXPECT_EQ(refused([&] { (void)read_theirs(copy).open(); }),
            (copy / "iter_0000004").string() +
                ": holds binary_head.bias, which is no part of the BERT that its args describe");
}

TEST(MegatronLatent, has_megatrons_sizes_where_its_arguments_are_silent) {
  const ModelConfig model = model_with(latent(""));
  EXPECT_TRUE(model.latent.on);
  EXPECT_EQ(model.latent.query_rank, 0);
  EXPECT_EQ(model.latent.rank, 32);
  EXPECT_EQ(model.latent.plain_channels, 128);
  EXPECT_EQ(model.latent.turned_channels, 64);
  EXPECT_EQ(model.latent.value_channels, 128);
  EXPECT_EQ(model.rotary.scaling, RotaryScaling::none);
}

TEST(MegatronLatent, stretches_as_yarn_does_where_nothing_else_is_said) {
  const std::string stretched = entry("rotary_scaling_factor", real(4)) + entry("mscale_all_dim", real(0.5));
  const RotaryConfig yarn = model_with(latent(stretched)).rotary;
  EXPECT_EQ(yarn.scaling, RotaryScaling::yarn);
  EXPECT_EQ(yarn.factor, 4);
  EXPECT_EQ(yarn.original_positions, 4096);
  EXPECT_EQ(yarn.mscale, 1);
  EXPECT_EQ(yarn.mscale_all, 0.5);
  EXPECT_EQ(said_to(latent(stretched + entry("rope_type", word("rope")))),
            "a: rope_type rope is in use with mscale_all_dim, which weft does not read yet");
}

TEST(MegatronLatent, is_refused_with_positions_that_weft_does_not_give_it) {
  EXPECT_EQ(said_to(latent(entry("rope_type", word("wobbly")))),
            "a: rope_type wobbly is no kind that weft knows");
  EXPECT_EQ(said_to(latent(entry("rotary_interleaved", yes))),
            "a: rotary_interleaved is in use with multi_latent_attention, which weft does not read yet");
  EXPECT_EQ(said_to(latent(entry("use_rope_scaling", yes))),
            "a: multi_latent_attention is in use with positions that are stretched as those of other "
            "attention are, which weft does not read yet");
}

TEST(MegatronLayers, have_a_number_that_can_be_planned) {
  EXPECT_EQ(said_to(entry("num_layers", number(20001))), "a: num_layers is 20001, expected 20000 at most");
  EXPECT_EQ(said_to(latent(entry("mtp_num_layers", number(5)))),
            "a: mtp_num_layers is 5, expected 4 at most");
}

TEST(MegatronFurther, through_one_layer_are_refused) {
  EXPECT_EQ(said_to(latent(entry("mtp_use_repeated_layer", yes))),
            "a: mtp_use_repeated_layer is in use, which weft does not read yet");
}

TEST(MegatronFurther, of_several_stages_are_refused_in_files_of_ranks) {
  const TemporaryDirectory folder;
  const fs::path file = folder / "iter_0000004/mp_rank_00_000/model_optim_rng.pt";
  fs::create_directories(file.parent_path());
  const std::string args =
      entry("mtp_num_layers", number(1)) + entry("pipeline_model_parallel_size", number(2));
  write_atomically(file, std::string_view(saved(dict(entry("args", dict(args))))));
  EXPECT_EQ(
      refused([&] { (void)read_theirs(folder / "iter_0000004"); }),
      file.string() +
          ": mtp_num_layers is in use with pipeline_model_parallel_size 2: in files of ranks weft reads "
          "further tokens of one stage alone; have Megatron save torch_dist");
}

TEST(MegatronT5, has_one_output_under_two_names) {
  const TwoRows rows({1, 2}, {1, 2});
  megatron::Tensors both("d"), second("d");
  rows.add(both, "lm_head.output_layer.bias", "one");
  rows.add(both, "output_layer.bias", "other");
  rows.add(second, "output_layer.bias", "one");
  for (megatron::Tensors* tensors : {&both, &second}) {
    megatron::drop_second_names(*tensors, "d");
    EXPECT_EQ(tensors->all().size(), 1U);
    EXPECT_NE(tensors->find("lm_head.output_layer.bias"), nullptr);
  }
}

TEST(MegatronT5, has_no_two_outputs) {
  const TwoRows rows({1, 2}, {1, 3});
  megatron::Tensors tensors("d");
  rows.add(tensors, "lm_head.output_layer.bias", "one");
  rows.add(tensors, "output_layer.bias", "other");
  EXPECT_EQ(refused([&] { megatron::drop_second_names(tensors, "d"); }),
            "d: output_layer.bias is not lm_head.output_layer.bias, and a T5's are one and the same");
}
