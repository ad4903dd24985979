// A checkpoint that Megatron-LM wrote: its settings, its index, and every tensor's bytes against those that
// torch read.
#include <gtest/gtest.h>

#include <map>

#include "tests/exchange/torch_files.h"
#include "tests/support/source_dir.h"
#include "weft/base/file.h"
#include "weft/checkpoint/safetensors.h"

using namespace weft;
using namespace weft::testing;
using exchange::torch::Archive;
using exchange::torch::Map;
using exchange::torch::StoredTensor;
using exchange::torch::Value;

namespace {

namespace fs = std::filesystem;

const fs::path golden = fs::path(WEFT_SOURCE_DIR) / "tests/golden/exchange/megatron/gpt2_tp2";
const fs::path step = golden / "iter_0000004";

Value index_of() {
  const MappedFile file(step / ".metadata");
  return exchange::torch::unpickled(file.bytes(), ".metadata");
}

// An item of a .distcp file, and where its elements go in the whole.
struct Item {
  std::string name;
  std::vector<std::int64_t> begin;  // empty for an object
  std::string file;
  std::int64_t at = 0, bytes = 0;
};

// None of an object, which is no part of a tensor.
std::vector<std::int64_t> numbers(const Value* value) {
  std::vector<std::int64_t> out;
  if (value == nullptr || value->list() == nullptr) return out;
  for (const Value& item : *value->list()) out.push_back(*item.integer());
  return out;
}

std::vector<Item> items(const Map& index) {
  std::vector<Item> out;
  for (const auto& [key, value] : index.find("storage_data")->map()->entries) {
    const Map& info = *value.map();
    out.push_back({*key.map()->find("fqn")->text(), numbers(key.map()->find("offset")),
                   *info.find("relative_path")->text(), *info.find("offset")->integer(),
                   *info.find("length")->integer()});
  }
  return out;
}

// Whether a chunk's rows are those of the whole tensor.
void must_be_of(const std::byte* whole, const Shape& shape, const Item& item, const Archive& archive) {
  const StoredTensor& tensor = *archive.value().tensor();
  const auto bytes = archive.bytes(tensor);
  const std::size_t dims = tensor.size.size();
  const std::int64_t row = dims == 0 ? 1 : tensor.size.back();
  for (std::int64_t i = 0; i < tensor.elements() / row; ++i) {
    std::int64_t left = i, at = 0, stride = dims == 0 ? 0 : shape[static_cast<int>(dims - 1)];
    if (dims > 0) at = item.begin.back();
    for (std::size_t d = dims - 1; dims > 1 && d-- > 0;) {
      at += (left % tensor.size[d] + item.begin[d]) * stride;
      left /= tensor.size[d];
      stride *= shape[static_cast<int>(d)];
    }
    ASSERT_EQ(std::memcmp(whole + 4 * at, bytes.data() + 4 * i * row, static_cast<std::size_t>(4 * row)), 0)
        << item.name << " row " << i;
  }
}

}  // namespace

TEST(TorchGolden, the_settings_of_a_run_are_read) {
  const MappedFile file(step / "common.pt");
  const Archive archive(file.bytes(), "common.pt");
  const Map& common = *archive.value().map();
  EXPECT_EQ(*common.find("iteration")->integer(), 4);
  EXPECT_EQ(*common.find("checkpoint_version")->real(), 3.0);
  const Map& args = *common.find("args")->map();
  EXPECT_EQ(args.type, "argparse.Namespace");
  EXPECT_EQ(*args.find("num_layers")->integer(), 2);
  EXPECT_EQ(args.find("params_dtype")->named()->name, "torch.float32");
}

TEST(TorchGolden, the_index_names_every_tensor) {
  const Value index = index_of();
  EXPECT_EQ(index.map()->type, "torch.distributed.checkpoint.metadata.Metadata");
  const Map& tensors = *index.map()->find("state_dict_metadata")->map();
  const Map& qkv = *tensors.find("decoder.layers.self_attention.linear_qkv.weight")->map();
  EXPECT_EQ(qkv.type, "torch.distributed.checkpoint.metadata.TensorStorageMetadata");
  EXPECT_EQ(numbers(qkv.find("size")), (std::vector<std::int64_t>{2, 48, 16}));
  const auto& properties = *qkv.find("properties")->map()->find("state")->list();
  EXPECT_EQ(properties[0].named()->name, "torch.float32");
  EXPECT_EQ(*index.map()->find("version")->text(), "1.0.0");
}

TEST(TorchGolden, every_chunk_has_the_bytes_that_torch_read) {
  const checkpoint::TensorFile expected(golden / "expected_tensors.safetensors");
  std::map<std::string, MappedFile> files;
  std::int64_t elements = 0;
  for (const Item& item : items(*index_of().map())) {
    const auto file = files.try_emplace(item.file, step / item.file).first;
    const Archive archive(file->second.bytes(item.at, item.bytes), item.file + ": " + item.name);
    if (archive.value().tensor() == nullptr) continue;
    const checkpoint::Entry& entry = expected.at(item.name);
    must_be_of(expected.bytes(entry).data(), entry.shape, item, archive);
    elements += archive.value().tensor()->elements();
  }
  std::int64_t all = 0;
  for (const checkpoint::Entry& entry : expected.header().entries) all += entry.shape.elements();
  EXPECT_EQ(elements, all);
}

// As an upload that was broken off: no prefix of a file reads as the whole.
TEST(TorchGolden, no_file_that_is_cut_short_is_read) {
  const std::string common = read_file(step / "common.pt"), metadata = read_file(step / ".metadata");
  for (std::size_t length = 0; length < common.size(); length += 97)
    EXPECT_NE(stream_said(common.substr(0, length)), "");
  for (std::size_t length = 0; length < metadata.size(); length += 997)
    EXPECT_NE(refused([&] { (void)unpickled(metadata.substr(0, length)); }), "");
}
