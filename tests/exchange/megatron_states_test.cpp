// What optimizers keep, out of rows and lists of which only the program that wrote them knows the order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/exchange/hub.h"
#include "tests/support/refused.h"
#include "tests/support/temporary.h"
#include "weft/base/file.h"
#include "weft/base/number.h"
#include "weft/checkpoint/safetensors.h"
#include "weft/exchange/megatron/keys.h"
#include "weft/exchange/megatron/weights.h"
#include "weft/exchange/their_model.h"

using namespace weft;
using namespace weft::testing;
using namespace weft::exchange;
using support::TemporaryDirectory;
using ::testing::HasSubstr;

namespace {

namespace fs = std::filesystem;

fs::path golden(const std::string& name) { return hub_model("megatron") / name; }

/// Weights and both moments, by our names.
std::map<std::string, std::vector<float>> numbers_of(const fs::path& directory) {
  const TheirModel theirs = read_theirs(directory);
  EXPECT_TRUE(theirs.run);
  EXPECT_EQ(theirs.run->settle ? theirs.run->settle() : "", "");
  auto parts = theirs.run->open_states();
  parts.push_back(theirs.open());
  std::map<std::string, std::vector<float>> out;
  for (const auto& part : parts)
    for (const Recipe& recipe : part->all()) {
      std::vector<float>& values = out[recipe.name];
      values.resize(std::size_t(recipe.shape.elements()));
      part->read(recipe, 0, values);
    }
  return out;
}

/// A copy that may be changed.
class Copied {
 public:
  explicit Copied(const std::string& name) { fs::copy(golden(name), here(), fs::copy_options::recursive); }
  fs::path here() const { return folder_ / "copy"; }
  fs::path iteration() const { return here() / "iter_0000004"; }
  void swap(const std::string& a, const std::string& b) const {
    fs::rename(iteration() / a, here() / "between");
    fs::rename(iteration() / b, iteration() / a);
    fs::rename(here() / "between", iteration() / b);
  }
  /// Everywhere in the index; both are as long as each other.
  void swap_in_index(const std::string& a, const std::string& b) const {
    std::string index = read_file(iteration() / ".metadata");
    for (std::size_t at = 0; at + a.size() <= index.size(); ++at)
      if (const auto here = std::string_view(index).substr(at, a.size()); here == a || here == b)
        index.replace(at, a.size(), here == a ? b : a);
    write_atomically(iteration() / ".metadata", std::string_view(index));
  }
  std::string why_not() const {
    const TheirModel theirs = read_theirs(here());
    return theirs.run && theirs.run->settle ? theirs.run->settle() : "there is nothing to settle";
  }

 private:
  TemporaryDirectory folder_;
};

}  // namespace

struct SameRun {
  const char *one, *other;
};
class MegatronStates : public ::testing::TestWithParam<SameRun> {};

// One run, written down in several ways.
TEST_P(MegatronStates, are_the_same_however_they_were_written) {
  const auto found = numbers_of(golden(GetParam().one)), expected = numbers_of(golden(GetParam().other));
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, values] : expected) EXPECT_EQ(found.at(name), values) << name;
}

INSTANTIATE_TEST_SUITE_P(
    Runs, MegatronStates,
    ::testing::Values(SameRun{"llama_tp2_pp2_dp2.dp_reshardable", "llama_tp2_pp2_dp2.fully_reshardable"},
                      SameRun{"llama_tp2_pp2_dp2.dp_zero_gather_scatter",
                              "llama_tp2_pp2_dp2.fully_reshardable"},
                      SameRun{"llama_tp2_pp2_distopt_legacy", "llama_tp2_pp2_dp2.fully_reshardable"},
                      SameRun{"moe_ep2_distopt", "moe_ep2"}, SameRun{"moe_ep2_legacy", "moe_ep2"}),
    [](const auto& one) { return "case_" + std::to_string(one.index); });

TEST(MegatronStatesByNumber, are_those_that_were_written) {
  const std::string name = "gpt2_tp2_pp2_legacy";
  const auto found = numbers_of(golden(name));
  const ModelConfig model = read_theirs(golden(name)).model;
  const checkpoint::TensorFile file(golden(name) / "expected_tensors.safetensors");
  const std::pair<std::string_view, std::string> parts[] = {{".m", "optimizer.state.exp_avg."},
                                                            {".v", "optimizer.state.exp_avg_sq."}};
  int compared = 0;
  for (const auto& [ours, values] : found)
    for (const auto& [ending, front] : parts) {
      if (!ours.ends_with(ending)) continue;
      std::string key = megatron::their_names(ours.substr(0, ours.size() - 2), model).front();
      std::int64_t layer = 0;
      constexpr std::string_view layers = "decoder.layers.";
      if (key.starts_with(layers)) {  // there all layers lie in one
        layer = key[layers.size()] - '0';
        key.erase(layers.size(), 2);
      }
      const auto bytes = file.bytes(file.at(front + key));
      const std::size_t size = values.size() * sizeof(float);
      EXPECT_EQ(std::memcmp(bytes.data() + std::size_t(layer) * size, values.data(), size), 0) << ours;
      ++compared;
    }
  EXPECT_EQ(compared, 2 * (4 * 12 + 4));
}

// In bf16 a model's weights are rounded, and masters are not.
TEST(MegatronStatesInRows, lie_in_the_order_of_the_modules_backwards) {
  const auto found = numbers_of(golden("llama_dp2_bf16"));
  const checkpoint::TensorFile file(golden("llama_dp2_bf16") / "expected_tensors.safetensors");
  struct Expected {
    const char *ours, *state;
    std::int64_t first;
  };
  for (const Expected& one :
       {Expected{"output.words", "param", 0}, Expected{"output.words.m", "exp_avg", 0},
        Expected{"final_norm.gain.v", "exp_avg_sq", 768}, Expected{"layers.1.mlp.down.weight", "param", 832},
        Expected{"layers.1.mlp.up.weight.m", "exp_avg", 1216},
        Expected{"layers.1.mlp_norm.gain.m", "exp_avg", 1984},
        Expected{"layers.1.attention.qkv.weight.v", "exp_avg_sq", 2048},
        Expected{"layers.1.attention.project.weight", "param", 2560},
        Expected{"layers.1.attention_norm.gain", "param", 2816},
        Expected{"layers.0.mlp.down.weight.v", "exp_avg_sq", 2880},
        Expected{"embedding.words.v", "exp_avg_sq", 4928}}) {
    const auto bytes =
        file.bytes(file.at(text("optimizer.distributed.dp_group_idx_0.gbuf_idx_0.dtype_(torch.bfloat16, "
                                "torch.float32).bucket_idx_0.",
                                one.state)));
    const std::vector<float>& values = found.at(one.ours);
    EXPECT_EQ(std::memcmp(bytes.data() + std::size_t(one.first) * sizeof(float), values.data(),
                          values.size() * sizeof(float)),
              0)
        << one.ours;
  }
}

TEST(MegatronStatesInRows, must_be_proved_by_the_weights) {
  const Copied sharded("llama_tp2_pp2_dp2.dp_reshardable");
  sharded.swap_in_index("dp_group_idx_0.gbuf", "dp_group_idx_1.gbuf");
  EXPECT_EQ(sharded.why_not(),
            sharded.iteration().string() +
                ": where the masters of decoder.layers.0.mlp.linear_fc1.weight should lie in its optimizer's "
                "flat buffers lie other numbers than its weights");
  const Copied ranks("llama_tp2_pp2_distopt_legacy");
  ranks.swap("mp_rank_00_000/distrib_optim.pt", "mp_rank_01_000/distrib_optim.pt");
  EXPECT_THAT(ranks.why_not(),
              HasSubstr(": where the masters of decoder.layers.0.mlp.linear_fc1.weight should lie"));
}

TEST(MegatronStatesInRows, must_be_as_long_as_their_parameters) {
  const Copied sharded("llama_tp2_pp2_dp2.dp_reshardable");
  sharded.swap_in_index("dp_group_idx_0.gbuf", "dp_group_idx_2.gbuf");
  EXPECT_EQ(sharded.why_not(),
            sharded.iteration().string() +
                ": its optimizer's flat buffers are not as long as any layers of the model");
  const Copied ranks("llama_tp2_pp2_distopt_legacy");
  ranks.swap("mp_rank_00_000/distrib_optim.pt", "mp_rank_00_001/distrib_optim.pt");
  EXPECT_EQ(ranks.why_not(), ranks.iteration().string() +
                                 ": its optimizer's flat buffers are not as long as their parameters");
}

TEST(MegatronStatesInRows, must_be_of_every_rank) {
  const Copied experts("moe_ep2_distopt");
  experts.swap_in_index("chained_0", "chained_1");
  EXPECT_EQ(experts.why_not(),
            experts.iteration().string() +
                ": its optimizer has flat buffers of 2 groups of ranks or unlike ones, expected 1 x 1 tensor "
                "and pipeline ranks with as many buffers each");
  const Copied ranks("llama_tp2_pp2_distopt_legacy");
  const fs::path lost = ranks.iteration() / "mp_rank_01_001/distrib_optim.pt";
  fs::remove(lost);
  EXPECT_EQ(ranks.why_not(), lost.string() + ": is not there, expected it beside each rank's file");
}

// megatron-core 0.16.1 itself writes whole tensors of numbers that are not theirs, where it makes them of
// several buckets.
TEST(MegatronStatesAsTensors, must_be_proved_by_the_weights) {
  const Copied copy("moe_grouped_ep2_bf16");
  copy.swap_in_index("state.fp32_param.", "state.exp_avg_sq.");
  EXPECT_EQ(copy.why_not(),
            copy.iteration().string() +
                ": its optimizer's masters of decoder.final_layernorm.weight are other numbers "
                "than its weights were rounded from");
  EXPECT_EQ(Copied("moe_grouped_ep2_bf16").why_not(), "");
}

// Whoever asks for weights alone gets those that the model multiplied.
TEST(MegatronStatesInRows, are_left_where_they_are_until_they_are_asked_for) {
  const TheirModel theirs = read_theirs(golden("llama_dp2_bf16"));
  EXPECT_EQ(theirs.open()->dtype(theirs.open()->all().front()), Dtype::bf16);
  EXPECT_EQ(theirs.run->settle(), "");
  EXPECT_EQ(theirs.open()->dtype(theirs.open()->all().front()), Dtype::f32);
  EXPECT_EQ(theirs.run->updates, 4);
}
