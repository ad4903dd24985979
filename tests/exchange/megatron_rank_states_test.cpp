// What torch's optimizers keep by number in a file of ranks, each byte of the file where a test wants it.
#include <gtest/gtest.h>

#include <functional>

#include "tests/exchange/torch_files.h"
#include "tests/support/temporary.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/exchange/their_model.h"

using namespace weft;
using namespace weft::testing;
using namespace weft::exchange;
using support::TemporaryDirectory;

namespace {

namespace fs = std::filesystem;

const std::string no = "\x89", none = "N";

struct Sized {
  const char* name;
  int rows, columns;  // no columns: a vector
};
/// As torch numbers them: those whose weights decay, then the others.
constexpr Sized parameters[] = {{"embedding.word_embeddings.weight", 8, 2},
                                {"decoder.layers.0.self_attention.linear_proj.weight", 2, 2},
                                {"decoder.layers.0.self_attention.linear_qkv.weight", 6, 2},
                                {"decoder.layers.0.mlp.linear_fc1.weight", 4, 2},
                                {"decoder.layers.0.mlp.linear_fc2.weight", 2, 4},
                                {"output_layer.weight", 8, 2},
                                {"decoder.layers.0.input_layernorm.weight", 2, 0},
                                {"decoder.layers.0.pre_mlp_layernorm.weight", 2, 0},
                                {"decoder.final_layernorm.weight", 2, 0}};
constexpr int decaying = 6, all = 9;

/// Numbers from `from` on, of 0 to 63.
std::string tensor_of(const Sized& sized, int from = 0) {
  const std::string sizes = number(sized.rows) + (sized.columns > 0 ? number(sized.columns) : "");
  const std::string strides = sized.columns > 0 ? number(sized.columns) + number(1) : number(1);
  return tensor(storage("0", 64), from, sizes, strides);
}

/// What a test may say in another way than torch does.
struct Optimizer {
  std::function<std::string(int)> state = [](int i) {
    return dict(entry("step", number(5)) + entry("exp_avg", tensor_of(parameters[i], i)) +
                entry("exp_avg_sq", tensor_of(parameters[i], i + 1)));
  };
  std::string first = "", groups = "", states = "", masters = "";

  static std::string numbers(int from, int until) {
    std::string out;
    for (int i = from; i < until; ++i) out += number(i);
    return list(out);
  }
  static std::string group(int decays, const std::string& params) {
    return dict(entry("wd_mult", number(decays)) + params);
  }
  std::string whole() const {
    std::string kept;
    for (int i = 0; i < all; ++i) kept += number(i) + state(i);
    const std::string decayed = first.empty() ? group(1, entry("params", numbers(0, decaying))) : first;
    const std::string listed =
        groups.empty() ? list(decayed + group(0, entry("params", numbers(decaying, all)))) : groups;
    const std::string own =
        dict(entry("state", states.empty() ? dict(kept) : states) + entry("param_groups", listed));
    return masters.empty() ? own : dict(entry("optimizer", own) + entry("fp32_from_fp16_params", masters));
  }
};

std::string model() {
  constexpr int in_order[] = {0, 6, 1, 2, 7, 3, 4, 8, 5};
  std::string out = ordered_dict() + "(";
  for (const int i : in_order) out += entry(parameters[i].name, tensor_of(parameters[i], 2 * i));
  return out + "u";
}

std::string args() {
  const std::string fields =
      entry("num_layers", number(1)) + entry("hidden_size", number(2)) + entry("ffn_hidden_size", number(4)) +
      entry("num_attention_heads", number(1)) + entry("kv_channels", number(2)) +
      entry("seq_length", number(4)) + entry("max_position_embeddings", number(4)) +
      entry("position_embedding_type", word("rope")) + entry("normalization", word("RMSNorm")) +
      entry("add_bias_linear", no) + entry("untie_embeddings_and_output_weights", "\x88") +
      entry("padded_vocab_size", number(8)) + entry("make_vocab_size_divisible_by", number(8));
  return object("argparse", "Namespace", fields);
}

/// A checkpoint of one rank.
class Written {
 public:
  explicit Written(const std::string& optimizer) {
    fs::create_directories(file().parent_path());
    std::string floats;
    for (int i = 0; i < 64; ++i) floats += little(float(i));
    write_atomically(file(),
                     std::string_view(saved(dict(entry("args", args()) + entry("iteration", number(7)) +
                                                 entry("model", model()) + entry("optimizer", optimizer)),
                                            {floats})));
  }
  fs::path file() const { return folder_ / "mp_rank_00/model_optim_rng.pt"; }
  TheirModel read() const { return read_theirs(folder_.path()); }
  std::string settled() const { return read().run->settle(); }
  std::string said(const std::string& what) const { return file().string() + ": its optimizer " + what; }

 private:
  TemporaryDirectory folder_;
};

float first_of(const TheirWeights& weights, const std::string& name) {
  std::vector<float> one(1);
  weights.read(weights.at(name), 0, one);
  return one.front();
}

}  // namespace

TEST(MegatronRankStates, are_found_by_the_number_of_their_parameter) {
  const Written written(Optimizer().whole());
  const TheirModel theirs = written.read();
  ASSERT_EQ(theirs.run->settle(), "");
  EXPECT_EQ(theirs.run->updates, 5);
  const auto states = theirs.run->open_states();
  EXPECT_EQ(first_of(*states[0], "embedding.words.m"), 0);
  EXPECT_EQ(first_of(*states[0], "layers.0.attention.project.weight.m"), 1);
  EXPECT_EQ(first_of(*states[0], "layers.0.attention_norm.gain.m"), 6);
  EXPECT_EQ(first_of(*states[1], "final_norm.gain.v"), 9);
  EXPECT_EQ(first_of(*theirs.open(), "final_norm.gain"), 16);
}

TEST(MegatronRankStates, have_masters_in_the_order_of_their_groups) {
  const auto masters = [](int from) {
    std::string decayed, others;
    for (int i = 0; i < all; ++i) (i < decaying ? decayed : others) += tensor_of(parameters[i], 2 * i + from);
    return list(list(decayed) + list(others));
  };
  EXPECT_EQ(Written(Optimizer{.masters = masters(0)}.whole()).settled(), "");
  const Written other(Optimizer{.masters = masters(1)}.whole());
  EXPECT_EQ(other.settled(),
            other.file().parent_path().parent_path().string() +
                ": its optimizer's masters of decoder.final_layernorm.weight are other numbers "
                "than its weights were rounded from");
  const Written few(Optimizer{.masters = list(list(""))}.whole());
  EXPECT_EQ(few.settled(), few.said("keeps of embedding.word_embeddings.weight no tensor as large as that"));
}

TEST(MegatronRankStates, must_be_of_every_parameter) {
  const Written few(
      Optimizer{.first = Optimizer::group(1, entry("params", Optimizer::numbers(0, decaying - 1)))}.whole());
  EXPECT_EQ(few.settled(), few.said("has a group of 5 parameters, expected 6"));
  const Written halved(
      Optimizer{.groups = list(Optimizer::group(1, entry("params", Optimizer::numbers(0, decaying))))}
          .whole());
  EXPECT_EQ(halved.settled(), halved.said("has 6 parameters, expected 9"));
  const Written lost(Optimizer{.states = dict(number(0) + Optimizer().state(0))}.whole());
  EXPECT_EQ(lost.settled(), lost.said("has no state of decoder.layers.0.self_attention.linear_proj.weight"));
  const Written wider(Optimizer{.state = [](int i) {
                        return dict(entry("exp_avg", tensor_of(parameters[i == 2 ? 0 : i])) +
                                    entry("exp_avg_sq", tensor_of(parameters[i])));
                      }}.whole());
  EXPECT_EQ(
      wider.settled(),
      wider.said("keeps of decoder.layers.0.self_attention.linear_qkv.weight no tensor as large as that"));
}

TEST(MegatronRankStates, must_be_torchs) {
  const Written apart(Optimizer{.first = Optimizer::group(1, entry("lr", number(1)))}.whole());
  EXPECT_EQ(apart.settled(), apart.said("has a group without params"));
  const Written wordy(Optimizer{.groups = word("two")}.whole());
  EXPECT_EQ(wordy.settled(), wordy.said("has no list of groups and dict of states"));
  const Written second(list(Optimizer().whole() + dict(entry("step", none))));
  EXPECT_EQ(second.settled(), second.said("has no state and param_groups of torch's, expected them or "
                                          "distrib_optim.pt"));
  EXPECT_FALSE(Written(none).read().run);
}

// The same in rows, for which a rank has a file of its own.
TEST(MegatronRankStates, in_rows_are_of_the_stages_that_the_model_has) {
  const Written written(dict(entry("optimizer", none)));
  const std::string row = tensor(storage("0", 64), 0, number(64), number(1));
  const std::string buffer =
      dict(tuple(name("torch", "float32") + name("torch", "float32")) +
           dict(entry("param", row) + entry("exp_avg", row) + entry("exp_avg_sq", row)));
  const std::string two = dict(entry("buckets_coalesced", "\x88") + number(0) + buffer + number(1) + buffer);
  write_atomically(written.file().parent_path() / "distrib_optim.pt",
                   std::string_view(saved(two, {std::string(256, 0)})));
  EXPECT_EQ(written.settled(), written.file().parent_path().parent_path().string() +
                                   ": its optimizer has flat buffers for 2 stages, expected 1");
}
