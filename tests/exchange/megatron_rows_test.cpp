// Flat buffers of an optimizer, written by hand in every order that there is.
#include <gtest/gtest.h>

#include <map>

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
using Floats = std::vector<float>;
using Sizes = std::vector<int>;

std::string numbers_of(const Sizes& sizes) {
  std::string out;
  for (const int one : sizes) out += number(one);
  return tuple(out);
}

std::string bytes_of_floats(const Floats& values) {
  std::string out;
  for (const float value : values) out += little(value);
  return out;
}

/// A tensor as large as its values.
std::string stream_of(const Floats& values, const Sizes& sizes, const std::string& cls = "FloatStorage",
                      int width = 4) {
  std::string strides, dims;
  int step = 1;
  for (auto at = sizes.rbegin(); at != sizes.rend(); step *= *at++) {
    strides = number(step) + strides;
    dims = number(*at) + dims;
  }
  std::string bytes = bytes_of_floats(values);
  bytes.resize(std::size_t(step * width));
  return saved(tensor(storage("0", step, cls), 0, dims, strides), {bytes});
}

/// A directory of torch_dist.
class ShardedFiles {
 public:
  void object(const std::string& key, const std::string& stream) { place(key, "N", stream); }
  void chunk(const std::string& key, const Sizes& from, const Sizes& sizes, const std::string& stream) {
    chunks_[key] +=
        weft::testing::object(module, "ChunkStorageMetadata",
                              entry("offsets", numbers_of(from)) + entry("sizes", numbers_of(sizes)));
    place(key, numbers_of(from), stream);
  }
  void size(const std::string& key, const Sizes& whole) { sizes_[key] = whole; }
  void whole(const std::string& key, const Sizes& sizes, const Floats& values) {
    size(key, sizes);
    chunk(key, Sizes(sizes.size()), sizes, stream_of(values, sizes));
  }
  void write(const fs::path& directory, const std::string& args) const {
    std::string tensors;
    for (const auto& [key, whole] : sizes_)
      tensors += entry(key, weft::testing::object(
                                module, "TensorStorageMetadata",
                                entry("size", numbers_of(whole)) + entry("chunks", list(chunks_.at(key)))));
    write_atomically(
        directory / ".metadata",
        std::string_view(pickle(weft::testing::object(
            module, "Metadata",
            entry("state_dict_metadata", dict(tensors)) + entry("storage_data", dict(places_))))));
    write_atomically(directory / "__0_0.distcp", std::string_view(file_));
    write_atomically(directory / "common.pt",
                     std::string_view(saved(dict(entry("args", args) + entry("iteration", number(7))))));
  }

 private:
  static constexpr const char* module = "torch.distributed.checkpoint.metadata";
  void place(const std::string& key, const std::string& offset, const std::string& stream) {
    places_ +=
        weft::testing::object(module, "MetadataIndex", entry("fqn", word(key)) + entry("offset", offset)) +
        weft::testing::object("torch.distributed.checkpoint.filesystem", "_StorageInfo",
                              entry("relative_path", word("__0_0.distcp")) +
                                  entry("offset", number(int(file_.size()))) +
                                  entry("length", number(int(stream.size()))));
    file_ += stream;
  }
  std::map<std::string, Sizes> sizes_;
  std::map<std::string, std::string> chunks_;
  std::string places_, file_;
};

/// Two experts in one layer, with gates.
struct Parameter {
  const char* key;
  Sizes sizes;
  bool of_layers = true;
};
const std::map<std::string, Parameter> model = {
    {"words", {"embedding.word_embeddings.weight", {8, 2}, false}},
    {"norm", {"decoder.layers.self_attention.linear_qkv.layer_norm_weight", {2}}},
    {"project", {"decoder.layers.self_attention.linear_proj.weight", {2, 2}}},
    {"qkv", {"decoder.layers.self_attention.linear_qkv.weight", {6, 2}}},
    {"mlp_norm", {"decoder.layers.pre_mlp_layernorm.weight", {2}}},
    {"router", {"decoder.layers.mlp.router.weight", {2, 2}}},
    {"up", {"decoder.layers.mlp.experts.experts.linear_fc1.weight", {2, 6, 2}}},
    {"down", {"decoder.layers.mlp.experts.experts.linear_fc2.weight", {2, 2, 3}}},
    {"final", {"decoder.final_layernorm.weight", {2}, false}},
    {"output", {"output_layer.weight", {8, 2}, false}}};

/// Of every number of the model another one, which bf16 holds as well.
Floats values_of(const std::string& name) {
  int elements = 1;
  for (const int size : model.at(name).sizes) elements *= size;
  const auto place = std::distance(model.begin(), model.find(name));
  Floats out;
  for (int i = 0; i < elements; ++i) out.push_back(float(place * 24 + i));
  return out;
}

/// "up1": the second expert's. "/up1": the same on its side.
Floats part_of(std::string name) {
  const bool on_its_side = name.starts_with('/');
  if (on_its_side) name.erase(0, 1);
  if (model.contains(name)) return values_of(name);
  const int expert = name.back() - '0';
  name.pop_back();
  const Sizes& sizes = model.at(name).sizes;
  const int rows = sizes[1], columns = sizes[2];
  const Floats all = values_of(name);
  Floats out;
  for (int i = 0; i < rows * columns; ++i)
    out.push_back(
        all[std::size_t(expert * rows * columns + (on_its_side ? i % rows * columns + i / rows : i))]);
  return out;
}

constexpr float shifts[] = {0, 0.25, 0.5};
constexpr const char* states[] = {"param", "exp_avg", "exp_avg_sq"};

/// A bucket: each begins at a multiple of 64.
Floats row_of(const std::vector<std::string>& parts, float shift) {
  Floats out;
  for (const std::string& part : parts) {
    out.resize((out.size() + 63) / 64 * 64, -1);
    for (const float value : part_of(part)) out.push_back(value + shift);
  }
  return out;
}

std::string bucket_key(int bucket, int state, const std::string& front = "", int group = 0) {
  return text(front, "optimizer.distributed.dp_group_idx_", group,
              ".gbuf_idx_0.dtype_(torch.float32, torch.float32).bucket_idx_", bucket, '.', states[state]);
}

struct Buckets {
  std::vector<std::vector<std::string>> parts;
  int ranks = 1;  // that share each
};

class Written {
 public:
  explicit Written(const std::map<std::string, std::string>& more = {}) : more_(more) {
    for (const auto& [name, parameter] : model) {
      Sizes sizes = parameter.sizes;
      if (parameter.of_layers) sizes.insert(sizes.begin(), 1);
      files.whole(parameter.key, sizes, values_of(name));
    }
  }
  void add(const Buckets& buckets, const std::string& front = "", int group = 0) {
    for (int b = 0; b < int(buckets.parts.size()); ++b)
      for (int s = 0; s < 3; ++s) {
        const Floats row = row_of(buckets.parts[std::size_t(b)], shifts[s]);
        const std::string key = bucket_key(b, s, front, group);
        files.size(key, {int(row.size())});
        const int each = (int(row.size()) + buckets.ranks - 1) / buckets.ranks;
        for (int from = 0; from < int(row.size()); from += each) {
          const int until = std::min(from + each, int(row.size()));
          files.chunk(key, {from}, {until - from},
                      stream_of(Floats(row.begin() + from, row.begin() + until), {until - from}));
        }
      }
  }
  void add_joined(const std::string& value) {
    files.object("optimizer.distributed.dp_group_idx_0.param_state/shard_0_1", saved(value, {joined}));
  }
  TheirModel read() const {
    files.write(folder_.path(), args());
    return read_theirs(folder_.path());
  }
  std::string settled() const { return read().run->settle(); }
  std::string index() const { return (folder_ / ".metadata").string(); }
  std::string said(const std::string& what) const { return folder_.path().string() + ": " + what; }
  std::string at(const std::string& key) const { return (folder_ / "__0_0.distcp").string() + ": " + key; }

  ShardedFiles files;
  std::string joined = "";

 private:
  std::string args() const {
    std::map<std::string, std::string> all = {{"num_layers", number(1)},
                                              {"hidden_size", number(2)},
                                              {"ffn_hidden_size", number(3)},
                                              {"moe_ffn_hidden_size", number(3)},
                                              {"num_experts", number(2)},
                                              {"num_attention_heads", number(1)},
                                              {"kv_channels", number(2)},
                                              {"seq_length", number(4)},
                                              {"max_position_embeddings", number(4)},
                                              {"position_embedding_type", word("rope")},
                                              {"normalization", word("RMSNorm")},
                                              {"swiglu", "\x88"},
                                              {"add_bias_linear", "\x89"},
                                              {"untie_embeddings_and_output_weights", "\x88"},
                                              {"padded_vocab_size", number(8)},
                                              {"make_vocab_size_divisible_by", number(8)}};
    for (const auto& [name, value] : more_) all[name] = value;
    std::string fields;
    for (const auto& [name, value] : all) fields += entry(name, value);
    return object("argparse", "Namespace", fields);
  }
  TemporaryDirectory folder_;
  std::map<std::string, std::string> more_;
};

/// All numbers of the model and of what is kept of it, by our names.
std::map<std::string, Floats> numbers_of(const Written& written) {
  const TheirModel theirs = written.read();
  EXPECT_EQ(theirs.run->settle(), "");
  auto parts = theirs.run->open_states();
  parts.push_back(theirs.open());
  std::map<std::string, Floats> out;
  for (const auto& part : parts)
    for (const Recipe& recipe : part->all()) {
      out[recipe.name].resize(std::size_t(recipe.shape.elements()));
      part->read(recipe, 0, out[recipe.name]);
    }
  return out;
}

void expect_all(const std::map<std::string, Floats>& found) {
  const std::map<std::string, std::string> names = {{"embedding.words", "words"},
                                                    {"layers.0.attention_norm.gain", "norm"},
                                                    {"layers.0.attention.project.weight", "project"},
                                                    {"layers.0.attention.qkv.weight", "qkv"},
                                                    {"layers.0.mlp_norm.gain", "mlp_norm"},
                                                    {"layers.0.router.weight", "router"},
                                                    {"layers.0.experts.0.up.weight", "up0"},
                                                    {"layers.0.experts.1.up.weight", "up1"},
                                                    {"layers.0.experts.0.down.weight", "down0"},
                                                    {"layers.0.experts.1.down.weight", "down1"},
                                                    {"final_norm.gain", "final"},
                                                    {"output.words", "output"}};
  constexpr const char* endings[] = {"", ".m", ".v"};
  EXPECT_EQ(found.size(), 3 * names.size());
  for (const auto& [ours, part] : names)
    for (std::size_t s = 0; s < 3; ++s) {
      Floats expected = part_of(part);
      for (float& value : expected) value += shifts[s];
      EXPECT_EQ(found.at(ours + endings[s]), expected) << ours << endings[s];
    }
}

const std::vector<std::string> engine = {"output", "final",    "down1", "down0", "up1",     "up0",
                                         "router", "mlp_norm", "qkv",   "norm",  "project", "words"};
const std::vector<std::string> engine_on_its_side = {"output", "final", "/down1",  "/down0",
                                                     "/up1",   "/up0",  "router",  "mlp_norm",
                                                     "qkv",    "norm",  "project", "words"};
const std::vector<std::string> local = {"output", "final",    "down1", "up1",     "down0", "up0",
                                        "router", "mlp_norm", "qkv",   "project", "norm",  "words"};

std::vector<std::vector<std::string>> cut(const std::vector<std::string>& parts, std::size_t each) {
  std::vector<std::vector<std::string>> out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i % each == 0) out.emplace_back();
    out.back().push_back(parts[i]);
  }
  return out;
}

}  // namespace

TEST(MegatronRows, are_of_that_order_which_the_masters_prove) {
  for (const auto* order : {&engine, &engine_on_its_side, &local})
    for (const char* says : {"local", "transformer_engine"})
      for (const std::size_t each : {1U, 5U, 12U})
        for (const int ranks : {1, 3}) {
          Written written({{"transformer_impl", word(says)}});
          written.add({cut(*order, each), ranks});
          expect_all(numbers_of(written));
        }
}

// Where expert ranks share experts, these have an optimizer of their own.
TEST(MegatronRows, of_shared_experts_are_apart) {
  Written written({{"expert_model_parallel_size", number(2)}});
  written.add({{{"output", "final", "router", "mlp_norm", "qkv", "norm", "project", "words"}}}, "chained_0.");
  written.add({{{"down0"}, {"up0"}}, 2}, "chained_1.", 0);
  written.add({{{"down1"}, {"up1"}}}, "chained_1.", 1);
  expect_all(numbers_of(written));
  Written more({{"expert_model_parallel_size", number(2)}});
  more.add({{{"output", "final", "router", "mlp_norm", "qkv", "norm", "project", "words"}}}, "chained_0.");
  more.add({{{"down0", "up0"}}}, "chained_1.", 2);
  EXPECT_EQ(more.settled(),
            more.said("its optimizer has flat buffers of 3 groups of expert ranks, expected 1 x "
                      "2 x 1"));
}

TEST(MegatronRows, are_not_of_experts_that_are_cut_in_another_way) {
  Written written({{"expert_tensor_parallel_size", number(2)}});
  written.add({{local}});
  EXPECT_EQ(written.settled(),
            written.said("its experts are cut among 2 tensor ranks and all else among 1, and "
                         "lie in the same flat buffers"));
}

TEST(MegatronRows, are_of_no_more_ranks_than_there_could_be) {
  Written written(
      {{"tensor_model_parallel_size", number(65536)}, {"pipeline_model_parallel_size", number(65536)}});
  written.add({{local}});
  const TheirModel theirs = written.read();
  EXPECT_EQ(refused([&] { (void)theirs.run->settle(); }),
            (fs::path(written.index()).parent_path() / "common.pt").string() +
                ": asks for 4.29497e+09 ranks, expected 1.04858e+06 at most");
}

TEST(MegatronRows, are_whole) {
  Written alone;
  alone.files.whole(bucket_key(0, 0), {2}, {1, 2});
  EXPECT_EQ(refused([&] { (void)alone.settled(); }),
            alone.index() + ": bucket 0 of a flat buffer has no exp_avg");
  Written second;
  for (int s = 0; s < 3; ++s) second.files.whole(bucket_key(1, s), {2}, {1, 2});
  EXPECT_EQ(refused([&] { (void)second.settled(); }),
            second.index() + ": " + bucket_key(1, 0) + " has no bucket 0 before it");
  Written unlike;
  for (int s = 0; s < 3; ++s) unlike.files.whole(bucket_key(0, s), {2 + s}, Floats(4));
  EXPECT_EQ(refused([&] { (void)unlike.settled(); }),
            unlike.index() + ": " + bucket_key(0, 1) + " is no row as long as the others of its bucket");
}

TEST(MegatronRows, have_neither_holes_nor_numbers_twice) {
  struct Case {
    Sizes from;
    int whole;
    const char* what;
  };
  for (const Case& one : {Case{{0, 3}, 5, " leave holes"}, Case{{0, 1}, 4, " overlap"},
                          Case{{0, 2}, 5, " leave holes"}, Case{{0, 2}, 3, " leave it"}}) {
    Written written;
    for (int s = 0; s < 3; ++s) {
      written.files.size(bucket_key(0, s), {one.whole});
      for (const int from : one.from)
        written.files.chunk(bucket_key(0, s), {from}, {2}, stream_of({1, 2}, {2}));
    }
    EXPECT_EQ(refused([&] { (void)written.settled(); }),
              written.index() + ": the chunks of " + bucket_key(0, 0) + one.what);
  }
}

// An optimizer may keep of each number what bf16 left out.
TEST(MegatronRows, of_other_types_are_left) {
  Written written;
  for (int s = 0; s < 3; ++s) {
    written.files.size(bucket_key(0, s), {2});
    written.files.chunk(bucket_key(0, s), {0}, {2},
                        stream_of({1, 2}, {2}, s == 0 ? "ShortStorage" : "FloatStorage", s == 0 ? 2 : 4));
  }
  EXPECT_EQ(written.settled(),
            written.at(bucket_key(0, 0) + ": is of int16, expected float32, bfloat16 or float16"));
}

TEST(MegatronRows, that_are_joined_are_read_or_named) {
  const std::string key = "optimizer.distributed.dp_group_idx_0.param_state/shard_0_1";
  const std::string types = tuple(name("torch", "float32") + name("torch", "float32"));
  const auto row = [](int count) { return tensor(storage("0", 8), 0, number(count), number(1)); };
  const auto said = [&](const std::string& value) {
    Written written;
    written.joined = bytes_of_floats(Floats(8));
    written.add_joined(value);
    const std::string what = written.settled(), front = written.at(key + ": ");
    return what.starts_with(front) ? what.substr(front.size()) : what;
  };
  const std::string joined = entry("buckets_coalesced", "\x88");
  EXPECT_EQ(said(dict(entry("buckets_coalesced", "\x89"))),
            "its flat buffers are of a Megatron-LM that wrote each bucket by itself");
  EXPECT_EQ(said(dict(joined + number(0) + dict(""))), "a flat buffer is of more than one type");
  EXPECT_EQ(said(list(dict(joined + number(0) + dict(types + dict(entry("param", row(8))))))),
            "a flat buffer's exp_avg is missing, expected a row of numbers");
  EXPECT_EQ(said(dict(joined + number(0) + dict(types + dict(entry("param", word("none")))))),
            "a flat buffer's param is a text, expected a row of numbers");
  EXPECT_EQ(
      said(dict(joined + number(0) + dict(types + dict(entry("param", row(8)) + entry("exp_avg", row(7)))))),
      "a flat buffer's exp_avg has 7 numbers, expected 8");
}
