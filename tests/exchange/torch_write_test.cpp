// Pickles and archives of ours, read again by the reader that takes others'.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/exchange/torch_files.h"
#include "tests/support/temporary.h"
#include "weft/base/file.h"
#include "weft/exchange/megatron/index_write.h"
#include "weft/exchange/torch/pickle.h"
#include "weft/exchange/torch/zip.h"
#include "weft/exchange/torch/zip_write.h"

using namespace weft;
using namespace weft::exchange;
using namespace weft::exchange::torch;
using support::TemporaryDirectory;

namespace {

Value read_again(const Value& value) { return weft::testing::unpickled(pickle_of(pickled(value))); }

}  // namespace

TEST(Pickles, are_read_again_as_what_they_were) {
  EXPECT_TRUE(read_again(Value()).is_none());
  for (const bool flag : {false, true}) EXPECT_EQ(*read_again(Value(flag)).boolean(), flag);
  for (const std::int64_t number :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{255}, std::int64_t{1} << 31, -(std::int64_t{1} << 31),
        std::int64_t{1} << 40, std::numeric_limits<std::int64_t>::min()})
    EXPECT_EQ(*read_again(Value(number)).integer(), number);
  for (const double number : {0.0, -1.5, 1e-5, 1e300}) EXPECT_EQ(*read_again(Value(number)).real(), number);
  for (const char* text : {"", "words", "größer"})
    EXPECT_EQ(*read_again(Value(std::string(text))).text(), text);
  const Value list = read_again(Value(std::vector<Value>{Value(std::int64_t{7}), Value(std::string("x"))}));
  ASSERT_EQ(list.list()->size(), 2U);
  EXPECT_EQ(*list.list()->at(1).text(), "x");
  const Value args = read_again(
      Value(Map{"argparse.Namespace", {{Value(std::string("num_layers")), Value(std::int64_t{2})}}}));
  EXPECT_EQ(args.map()->type, "argparse.Namespace");
  EXPECT_EQ(*args.map()->find("num_layers")->integer(), 2);
  EXPECT_EQ(read_again(Value(Named{"torch.bfloat16", {}})).named()->name, "torch.bfloat16");
}

TEST(Archives, hold_a_tensor_whose_bytes_begin_at_a_multiple_of_64) {
  const TemporaryDirectory folder;
  const std::vector<std::uint16_t> numbers{1, 2, 3, 4, 5, 6};
  const std::int64_t size[] = {1, 2, 3};
  File file(folder / "x.pt", Open::create);
  file.write("before");  // what streams of a .distcp stand behind
  const std::int64_t bytes =
      write_archive(file, pickle_of(tensor_of(Dtype::bf16, size)), std::as_bytes(std::span(numbers)));
  file.close();
  const std::string all = read_file(folder / "x.pt");
  ASSERT_EQ(std::int64_t(all.size()), 6 + bytes);
  const std::string stream = all.substr(6);
  for (const Record& record : zip_records(std::as_bytes(std::span(stream)), "stream"))
    EXPECT_EQ(record.data % 64, 0U) << record.name;
  const Archive archive(std::as_bytes(std::span(stream)), "stream");
  const StoredTensor& tensor = *archive.value().tensor();
  EXPECT_EQ(tensor.type, "bfloat16");
  EXPECT_EQ(tensor.size, (std::vector<std::int64_t>{1, 2, 3}));
  const auto found = archive.bytes(tensor);
  EXPECT_TRUE(std::ranges::equal(found, std::as_bytes(std::span(numbers))));
}

TEST(Places, are_of_all_layers_and_experts_where_these_are_alike) {
  ModelConfig model;
  model.layers = 6;
  model.experts.count = 4;
  model.experts.layers = std::vector<int>(6, 1);
  const std::string expert = "decoder.layers.3.mlp.experts.2.linear_fc1.weight",
                    norm = "decoder.layers.3.pre_mlp_layernorm.weight",
                    last = "decoder.final_layernorm.weight";
  const auto place = [&](const std::string& name) { return megatron::place_of(name, model); };
  EXPECT_EQ(place(expert).key, "decoder.layers.mlp.experts.experts.linear_fc1.weight");
  EXPECT_EQ(place(expert).at, (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(place(expert).counts, (std::vector<std::int64_t>{6, 4}));
  EXPECT_EQ(place(norm).key, "decoder.layers.pre_mlp_layernorm.weight");
  EXPECT_EQ(place(norm).at, (std::vector<std::int64_t>{3}));
  EXPECT_EQ(place(last).key, last);
  model.experts.layers[0] = 0;
  EXPECT_EQ(place(expert).key, "decoder.layers.3.mlp.experts.experts.linear_fc1.weight");
  EXPECT_EQ(place(expert).at, (std::vector<std::int64_t>{2}));
  EXPECT_EQ(place(norm).key, norm);
  EXPECT_TRUE(place(norm).at.empty());
}

TEST(Places, have_states_that_nothing_is_kept_in) {
  using Names = std::vector<std::string>;
  const auto of = [](const char* key, std::vector<std::int64_t> at, std::vector<std::int64_t> counts) {
    return megatron::extra_states_of({key, std::move(at), std::move(counts)});
  };
  EXPECT_EQ(of("decoder.layers.mlp.linear_fc1.weight", {1}, {2}),
            Names{"decoder.layers.mlp.linear_fc1._extra_state/shard_1_2"});
  EXPECT_EQ(of("decoder.layers.self_attention.linear_qkv.weight", {1}, {2}),
            (Names{"decoder.layers.self_attention.linear_qkv._extra_state/shard_1_2",
                   "decoder.layers.self_attention.core_attention._extra_state/shard_1_2"}));
  EXPECT_EQ(of("decoder.layers.mlp.experts.experts.linear_fc2.weight", {1, 3}, {2, 8}),
            Names{"decoder.layers.mlp.experts.experts.linear_fc2._extra_state/shard_1.3_2.8"});
  EXPECT_EQ(of("output_layer.weight", {}, {}), Names{"output_layer._extra_state/shard_0_1"});
  for (const char* none : {"embedding.word_embeddings.weight", "decoder.layers.mlp.router.weight",
                           "decoder.layers.mlp.linear_fc1.bias"})
    EXPECT_EQ(of(none, {}, {}), Names{}) << none;
}
