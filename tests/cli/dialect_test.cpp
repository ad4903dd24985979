#include "weft/cli/dialect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "tests/cli/deepspeed_said.h"
#include "tests/support/source_dir.h"
#include "weft/base/error.h"
#include "weft/cli/dialect/rows.h"

using namespace weft;
using namespace weft::cli;
using dialect::Row;
using dialect::Treatment;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

namespace {

std::unique_ptr<Command> read(std::vector<std::string_view> words) { return read_command(words); }

void refused(std::vector<std::string_view> words, const std::string& sentence) {
  EXPECT_THAT([&] { read(words); }, ThrowsMessage<Error>(sentence));
}

std::vector<Row> all_rows() {
  std::vector<Row> out;
  for (auto& group : dialect::table()) out.insert(out.end(), group.rows.begin(), group.rows.end());
  return out;
}

// A file of this test's own, gone with it.
class File {
 public:
  File(const std::string& name, const std::string& holds) : path_(testing::TempDir() + "dialect_" + name) {
    std::ofstream(path_) << holds;
  }
  ~File() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

TEST(Dialect, has_one_row_for_every_flag_of_megatrons_scripts) {
  std::map<std::string, int> rows;
  for (const Row& row : all_rows()) ++rows[dashed(row.flag)];
  for (const auto& [flag, count] : rows) EXPECT_EQ(count, 1) << flag;
  std::ifstream in(WEFT_SOURCE_DIR "/tests/golden/cli/megatron_flags.txt");
  int flags = 0;
  for (std::string flag; std::getline(in, flag); ++flags) EXPECT_TRUE(rows.contains(dashed(flag))) << flag;
  EXPECT_EQ(flags, 1190);
}

TEST(Dialect, sets_only_fields_that_exist_to_words_they_take) {
  for (const Row& row : all_rows())
    for (const dialect::Effect& effect : row.effects) {
      TrainConfig config;
      Fields fields(config);
      if (effect.path.empty()) continue;
      ASSERT_NE(fields.find(effect.path), nullptr) << row.flag;
      if (effect.value.empty()) continue;
      EXPECT_NO_THROW(fields.at(effect.path).read(std::vector{std::string(effect.value)}, Origin::file))
          << row.flag;
    }
}

TEST(Dialect, leads_to_every_field) {
  std::set<std::string> reached;
  for (const Row& row : all_rows())
    for (const dialect::Effect& effect : row.effects) reached.emplace(effect.path);
  for (const dialect::ds::Key& key : dialect::ds::keys()) {
    if (key.treatment != Treatment::honored) continue;
    const Said of_file = said(with_sample(key));
    for (const dialect::KeySaid& one : of_file.rest.keys) reached.emplace(one.field);
  }
  // Derived; the other forms of --window-attn-skip-freq, --no-rope-freq, --linear-attention-freq,
  // --cp-comm-type and --moe-layer-freq.
  reached.insert({"parallel.dp", "model.window_layers", "model.rotary.skip_layers", "model.delta.layers",
                  "parallel.context_layers", "model.experts.layers", "model.experts.first"});
  TrainConfig config;
  const Fields fields(config);
  for (const auto& field : fields.all()) EXPECT_TRUE(reached.contains(field->path())) << field->path();
}

TEST(Dialect, gives_a_reason_for_every_flag_without_effect_and_every_refusal) {
  for (const Row& row : all_rows()) {
    EXPECT_TRUE(row.treatment == Treatment::honored || !row.text.empty()) << row.flag;
  }
}

TEST(Dialect, reads_a_megatron_command_line) {
  const auto c = read({"--num_layers",
                       "12",
                       "--hidden-size=768",
                       "--position-embedding-type",
                       "rope",
                       "--normalization",
                       "RMSNorm",
                       "--swiglu",
                       "--disable-bias-linear",
                       "--untie-embeddings-and-output-weights",
                       "--data-path",
                       "0.3",
                       "a",
                       "0.7",
                       "b",
                       "--lr",
                       "6.0e-5",
                       "--lr-decay-style",
                       "inverse-square-root",
                       "--bf16"});
  const ModelConfig& m = c->config.model;
  EXPECT_EQ(m.layers, 12);
  EXPECT_EQ(m.hidden, 768);
  EXPECT_EQ(m.positions, Positions::rotary);
  EXPECT_EQ(m.norm, NormKind::rms);
  EXPECT_TRUE(m.gated && m.activation == Activation::silu);
  EXPECT_FALSE(m.linear_bias || m.qkv_bias || m.tied_output);
  EXPECT_THAT(c->config.data.paths, ElementsAre("0.3", "a", "0.7", "b"));
  EXPECT_EQ(c->config.rate.peak, 6e-5);
  EXPECT_EQ(c->config.rate.style, RateStyle::inverse_square_root);
  EXPECT_EQ(m.precision, Precision::bf16);
  EXPECT_TRUE(c->notices.empty());
}

TEST(Dialect, says_once_and_with_the_reason_what_has_no_effect) {
  const auto c =
      read({"--use-mcore-models", "--use-mcore-models", "--transformer-impl", "local", "--no-rope-fusion"});
  EXPECT_THAT(
      c->notices,
      ElementsAre("no effect here: --use-mcore-models, --transformer-impl (there is one implementation)",
                  "no effect here: --no-rope-fusion (fusion does not change what is computed here)"));
}

TEST(Dialect, refuses_what_weft_cannot_do_all_at_once) {
  refused({"--moe-token-dispatcher-type", "alltoall_seq", "--dsa-indexer-topk", "4", "--dsa-indexer-n-heads",
           "8"},
          "weft cannot do this yet: a dispatcher of old: --moe-token-dispatcher-type; sparse attention: "
          "--dsa-indexer-topk, --dsa-indexer-n-heads");
  refused({"--position-embedding-type", "mrope"},
          "weft cannot do this yet: positions of images and video: --position-embedding-type");
  refused({"--grpo-iterations", "2"}, "weft cannot do this yet: reinforcement learning: --grpo-iterations");
}

TEST(Dialect, takes_the_one_value_of_a_refused_flag_that_changes_nothing) {
  EXPECT_NO_THROW(read({"--moe-router-dtype", "fp32", "--mlp-type", "standard", "--exp-avg-dtype", "fp32"}));
}

TEST(Dialect, reads_mixtures_of_experts_in_megatrons_words_and_in_deepspeeds) {
  const auto c = read({"--num-experts", "8", "--moe-layer-freq", "([0]*1+[1]*3)", "--moe-router-topk", "3",
                       "--moe-router-load-balancing-type", "aux_loss", "seq_aux_loss", "--moe-aux-loss-coeff",
                       "0.01", "0.02", "--moe-router-score-function", "sqrtsoftplus",
                       "--moe-expert-capacity-factor", "1.5", "--expert-model-parallel-size", "2"});
  const ExpertsConfig& x = c->config.model.experts;
  EXPECT_EQ(x.count, 8);
  EXPECT_THAT(x.layers, ElementsAre(0, 1, 1, 1));
  EXPECT_EQ(x.router.chosen, 3);
  EXPECT_THAT(x.router.balancing, ElementsAre(Balancing::aux_loss, Balancing::seq_aux_loss));
  EXPECT_THAT(x.router.coefficients, ElementsAre(0.01, 0.02));
  EXPECT_EQ(x.router.score, RouterScore::sqrt_softplus);
  EXPECT_EQ(x.router.capacity, 1.5);
  EXPECT_EQ(c->config.parallel.ep, 2);
  EXPECT_EQ(x.router.precision, RouterPrecision::f32);
  EXPECT_EQ(read({"--moe-router-dtype", "fp64"})->config.model.experts.router.precision,
            RouterPrecision::f64);
  const auto old = read({"--num-experts", "4", "--topk", "1", "--expert-interval", "2", "--moe-loss-coeff",
                         "0.1", "--moe-train-capacity-factor", "2", "--moe-expert-parallel-size", "4"});
  const ExpertsConfig& y = old->config.model.experts;
  EXPECT_EQ(y.router.chosen, 1);
  EXPECT_EQ(y.every, 2);
  EXPECT_EQ(y.first, 1);  // the second of each two
  EXPECT_THAT(y.router.coefficients, ElementsAre(0.1));
  EXPECT_EQ(y.router.capacity, 2);
  EXPECT_EQ(old->config.parallel.ep, 4);
  EXPECT_TRUE(read({"--mlp-type", "residual"})->config.model.experts.residual);
}

// A list in the file is another field than the number on the command line, and would win where both stand.
TEST(Dialect, lets_a_number_of_layers_on_the_command_line_win_over_a_list_in_a_file) {
  const File file("lists.yaml",
                  "num-experts: 4\nmoe-layer-freq: '[0,1]'\nwindow-size: [3, 0]\n"
                  "window-attn-skip-freq: '[1,0]'\n");
  const auto model = [&](std::vector<std::string_view> words) {
    words.insert(words.begin(), {"--config", file.path()});
    return read(words)->config.model;
  };
  EXPECT_THAT(model({}).experts.layers, ElementsAre(0, 1));
  EXPECT_THAT(model({"--moe-layer-freq", "2"}).experts.layers, IsEmpty());
  EXPECT_THAT(model({"--expert-interval", "2"}).experts.layers, IsEmpty());
  EXPECT_THAT(model({"--moe-layer-freq", "[1,0]"}).experts.layers, ElementsAre(1, 0));
  EXPECT_THAT(model({"--window-attn-skip-freq", "2"}).window_layers, IsEmpty());
}

TEST(Dialect, forgets_where_another_way_to_count_layers_of_experts_began) {
  const File file("interval.yaml", "num-experts: 4\nexpert-interval: 2\n");
  const auto c = read({"--config", file.path(), "--moe-layer-freq", "3"});
  EXPECT_EQ(c->config.model.experts.every, 3);
  EXPECT_EQ(c->config.model.experts.first, 0);
  EXPECT_EQ(read({"--expert-interval", "2", "--expert-interval", "4"})->config.model.experts.every, 4);
  refused({"--expert-interval", "2", "--moe-layer-freq", "3"},
          "--expert-interval: --moe-layer-freq says which layers have experts, too: leave one of them out");
}

TEST(Dialect, takes_a_number_of_experts_for_each_layer_where_all_are_alike) {
  EXPECT_EQ(read({"--num-experts", "64", "64", "64"})->config.model.experts.count, 64);
  refused({"--num-experts", "64", "64", "128"},
          "--num-experts: layers of experts that are not alike (a pyramid) are not built: give one number, "
          "found 64 64 128");
}

TEST(Dialect, says_what_deepspeeds_experts_take_where_nothing_is_said) {
  const auto bare = read({"--deepspeed", "--num-experts", "4", "--topk", "2", "--moe-loss-coeff", "0.1"});
  EXPECT_THAT(bare->notices, Contains(HasSubstr("for the same as there: --moe-train-capacity-factor 1 "
                                                "--moe-eval-capacity-factor 1 --moe-min-capacity 4 "
                                                "--expert-interval 2")));
  EXPECT_THAT(read({"--num-experts", "4"})->notices, IsEmpty());
  const auto all = read({"--num-experts", "4", "--moe-train-capacity-factor", "2",
                         "--moe-eval-capacity-factor", "2", "--disable-moe-token-dropping"});
  EXPECT_FALSE(all->config.model.experts.router.capacity.has_value());
  EXPECT_FALSE(all->config.model.experts.router.capacity_evaluating.has_value());
}

TEST(Dialect, takes_ulysses_for_context_parallelism_whose_heads_travel) {
  const auto c = read({"--ds-sequence-parallel-size", "4"});
  EXPECT_EQ(c->config.parallel.cp, 4);
  EXPECT_EQ(c->config.parallel.context, ContextForm::heads);
  refused({"--ds-sequence-parallel-size", "4", "--context-parallel-size", "2"},
          "--ds-sequence-parallel-size and --context-parallel-size contradict each other: one sets "
          "parallel.cp to 4, the other to 2");
}

TEST(Dialect, takes_a_length_and_a_rate_in_tokens_beside_samples) {
  const auto c =
      read({"--train-samples", "2500000", "--train-tokens", "2500000000", "--lr-warmup-tokens", "25000000",
            "--lr-decay-tokens", "2500000000", "--zero-stage", "1", "--no-pipeline-parallel"});
  EXPECT_EQ(c->config.length.tokens, 2'500'000'000);
  EXPECT_EQ(c->config.length.samples, 2'500'000);
  EXPECT_EQ(c->config.rate.warmup_tokens, 25'000'000);
  EXPECT_EQ(c->config.rate.decay_tokens, 2'500'000'000);
  EXPECT_EQ(c->config.parallel.zero, 1);
}

TEST(Dialect, says_what_to_write_instead_of_a_flag_that_is_gone) {
  refused({"--model-parallel-size", "8"},
          "--model-parallel-size is gone from Megatron-LM; write --tensor-model-parallel-size");
}

TEST(Dialect, takes_a_form_of_context_parallelism_for_all_layers_or_one_for_each) {
  EXPECT_EQ(read({"--cp-comm-type", "a2a"})->config.parallel.context, ContextForm::heads);
  const auto each =
      read({"--cp-comm-type", "p2p", "a2a+p2p", "--hierarchical-context-parallel-sizes", "2", "4"});
  EXPECT_THAT(each->config.parallel.context_layers, ElementsAre(ContextForm::ring, ContextForm::two_levels));
  EXPECT_THAT(each->config.parallel.context_levels, ElementsAre(2, 4));
}

TEST(Dialect, names_the_flag_and_the_choices_when_a_value_is_wrong) {
  refused({"--lr", "fast"}, "--lr: 'fast' is not a number");
  refused({"--cp-comm-type", "p2p", "ring"},
          "--cp-comm-type: 'ring' is not one of p2p, all_gather, a2a or a2a+p2p");
  refused(
      {"--recompute-modules", "gdp_qkv"},
      "--recompute-modules: 'gdp_qkv' is not one of core_attn, layernorm, mlp, mla_up_proj, moe, moe_act, "
      "gdn_norm_out or shared_experts");
  refused({"--num-layesr", "2"}, "--num-layesr is not a flag, did you mean --num-layers");
}

TEST(Dialect, finds_two_flags_that_contradict_each_other) {
  refused({"--fp16", "--bf16"},
          "--fp16 and --bf16 contradict each other: one sets model.precision to f16, the other to bf16");
  refused({"--swiglu", "--squared-relu"},
          "--swiglu and --squared-relu contradict each other: one sets model.activation to silu, the other "
          "to squared_relu");
  EXPECT_EQ(read({"--lr", "1", "--lr", "2"})->config.rate.peak, 2);  // the same flag again: the last one wins
}

TEST(Dialect, keeps_the_old_spellings_of_positions) {
  EXPECT_EQ(read({"--no-position-embedding"})->config.model.positions, Positions::none);
  EXPECT_EQ(read({"--no-position-embedding", "--use-rotary-position-embeddings"})->config.model.positions,
            Positions::rotary);
}

TEST(Dialect, takes_megatrons_gelu_which_depends_on_the_bias) {
  EXPECT_EQ(read({})->config.model.activation, Activation::gelu);
  EXPECT_EQ(read({"--no-bias-gelu-fusion"})->config.model.activation, Activation::gelu_erf);
  EXPECT_EQ(read({"--disable-bias-linear"})->config.model.activation, Activation::gelu_erf);
  EXPECT_EQ(read({"--no-bias-gelu-fusion", "--geglu"})->config.model.activation, Activation::gelu_erf);
  EXPECT_EQ(read({"--swiglu", "--no-bias-gelu-fusion"})->config.model.activation, Activation::silu);
  EXPECT_EQ(read({"--geglu", "--disable-bias-linear"})->config.model.activation, Activation::gelu);
}

TEST(Dialect, takes_one_query_group_where_none_is_named_as_megatron_does) {
  EXPECT_EQ(read({"--group-query-attention"})->config.model.groups, 1);
  EXPECT_EQ(read({"--group-query-attention", "--num-query-groups", "8"})->config.model.groups, 8);
  EXPECT_EQ(read({})->config.model.groups, 0);  // as many as heads
}

TEST(Dialect, puts_a_bias_on_the_qkv_projection_alone) {
  const auto c = read({"--add-qkv-bias", "--disable-bias-linear"});
  EXPECT_TRUE(c->config.model.qkv_bias);
  EXPECT_FALSE(c->config.model.linear_bias);
}

TEST(Dialect, reads_windows_as_pairs_and_layers_as_python_lists) {
  EXPECT_EQ(read({"--window-size", "127,0"})->config.model.window, 128);
  EXPECT_EQ(read({"--window-size", "(127, 0)"})->config.model.window, 128);
  EXPECT_EQ(read({"--window-size", "-1", "0"})->config.model.window, 0);
  EXPECT_EQ(read({"--no-rope-freq", "4"})->config.model.rotary.skip_every, 4);
  EXPECT_THAT(read({"--no-rope-freq", "([0]*3+[1])*2"})->config.model.rotary.skip_layers,
              ElementsAre(0, 0, 0, 1, 0, 0, 0, 1));
  EXPECT_EQ(read({"--window-attn-skip-freq", "6"})->config.model.window_full_every, 6);
  EXPECT_THAT(read({"--window-attn-skip-freq", "([0]*1+[1]*2)*2"})->config.model.window_layers,
              ElementsAre(0, 1, 1, 0, 1, 1));
  refused({"--window-size", "127"}, "--window-size: expected two numbers, left and right, found 1");
  refused({"--window-size", "127,5"}, "--window-size: a causal model sees nothing to the right, found 5");
  refused({"--window-attn-skip-freq", "[0]*x"},
          "--window-attn-skip-freq: '[0]*x' is neither a whole number nor a list such as ([0]*3+[1]*5)");
  refused({"--window-attn-skip-freq", "[0]*900000*900000"},
          "--window-attn-skip-freq: '[0]*900000*900000' is neither a whole number nor a list such as "
          "([0]*3+[1]*5)");
}

TEST(Dialect, lets_the_command_line_win_over_a_file_over_the_built_in) {
  const File file("precedence.yaml",
                  "model:\n  num-layers: 4\n  hidden_size: 32\nlr: 1.0e-3\nswiglu: true\nbf16: false\n");
  const auto c = read({"--num-layers", "6", "--config", file.path()});
  EXPECT_EQ(c->config.model.layers, 6);
  EXPECT_EQ(c->fields.at("model.layers").origin(), Origin::command_line);
  EXPECT_EQ(c->config.model.hidden, 32);
  EXPECT_EQ(c->fields.at("model.hidden").origin(), Origin::file);
  EXPECT_EQ(c->fields.at("model.heads").origin(), Origin::built_in);
  EXPECT_TRUE(c->config.model.gated);
  EXPECT_EQ(c->config.model.precision, Precision::f32);
}

TEST(Dialect, asks_a_checkpoint_between_file_and_command_line) {
  const File file("checkpoint.yaml", "num-layers: 4\nhidden-size: 32\nnum-attention-heads: 2\n");
  const std::vector<std::string_view> words = {
      "--config", file.path(), "--load", "dir", "--use-checkpoint-args", "--num-layers", "6"};
  const auto c = read_command(words, [](const CheckpointConfig& k) {
    EXPECT_EQ(k.load, "dir");
    return R"({"model": {"layers": 8, "hidden": 64}})";
  });
  EXPECT_EQ(c->config.model.layers, 6);
  EXPECT_EQ(c->config.model.hidden, 64);
  EXPECT_EQ(c->fields.at("model.hidden").origin(), Origin::checkpoint);
  EXPECT_EQ(c->config.model.heads, 2);
}

TEST(Dialect, says_which_file_a_mistake_is_in) {
  const File typo("typo.yaml", "num-layesr: 4\n"), own("own.yaml", "dry-run: true\n"),
      bad("bad.yaml", "a: [\n");
  const File apart("apart.yaml", "model:\n  num-layers: 4\nlr: 1\nother:\n  num-layers: 5\n");
  refused({"--config", apart.path()},
          apart.path() + ": num-layers is given twice, the second time in line 5");
  const File many("many.yaml", "num-layers: [1, 2]\n"), empty("empty.yaml", "- 1\n");
  refused({"--config", typo.path()}, typo.path() + ": --num-layesr is not a flag, did you mean --num-layers");
  refused({"--config", own.path()}, own.path() + ": --dry-run belongs on the command line");
  refused({"--config", many.path()}, many.path() + ": --num-layers needs a value, found 2");
  const File maybe("maybe.yaml", "swiglu: yes\n"), nameless("nameless.yaml", "lr: 1\n? num-layers: 4\n");
  refused({"--config", maybe.path()}, maybe.path() + ": --swiglu: 'yes' is neither true nor false");
  refused({"--config", empty.path()}, empty.path() + ": not a map of settings");
  refused({"--config", "nowhere.yaml"}, "nowhere.yaml: cannot be read");
  refused({"--config", nameless.path()},
          nameless.path() + ": line 2: a list or map stands where a name was expected");
  const File twice("twice.yaml", "lr: 1\nmodel:\n  num-layers: 2\n  num_layers: 3\n"),
      range("range.yaml", "lr: -1\n");
  refused({"--config", twice.path()},
          twice.path() + ": num_layers is given twice, the second time in line 4");
  refused({"--config", range.path()}, range.path() + ": --lr: '-1' is not a finite number from 0 to 1000000");
  EXPECT_THAT([&] { read({"--config", bad.path()}); }, ThrowsMessage<Error>(HasSubstr(": not YAML: ")));
}

TEST(Dialect, says_which_of_deepspeeds_files_a_mistake_is_in) {
  const File json("ds_unknown.json", R"({"amp": {"enabled": true}})"), broken("ds_broken.json", "[");
  refused({"--deepspeed_config", json.path()},
          "--deepspeed_config: " + json.path() +
              ": weft cannot do this yet: Apex's mixed precision; bf16 and fp16 are weft's own: amp.enabled");
  refused({"--deepspeed_config", broken.path()},
          "--deepspeed_config: " + broken.path() + " is not JSON: line 1");
  refused({"--deepspeed_config", "nowhere.json"}, "--deepspeed_config: cannot read nowhere.json");
}

TEST(Dialect, is_what_the_page_of_flags_says) {
  std::ifstream in(WEFT_SOURCE_DIR "/docs/flags.md");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  EXPECT_TRUE(page == dialect_markdown()) << "write it again: weft help flags > docs/flags.md";
}
