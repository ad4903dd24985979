// Directories that anyone may have made: every tensor is accounted for, or the directory is refused.
#include <gtest/gtest.h>

#include "tests/exchange/hub.h"
#include "tests/support/refused.h"
#include "tests/support/temporary.h"

using namespace weft;
using namespace weft::testing;
using namespace weft::exchange;
using checkpoint::Entry;
using support::TemporaryDirectory;

namespace {

namespace fs = std::filesystem;

// A copy of a model that a test spoils.
struct Copy {
  explicit Copy(const std::string& name) {
    fs::copy(hub_model(name), folder.path(), fs::copy_options::recursive);
    for (const auto& entry : fs::directory_iterator(folder.path()))
      fs::permissions(entry.path(), fs::perms::owner_all);
  }
  std::string at() const { return folder.path().string(); }
  std::string said() const {
    return refused([&] { HubWeights(folder.path(), read_hub_config(folder.path())); });
  }
  // The single file again, with other names, shapes or types, and zeros for numbers.
  void rewrite(const std::function<void(std::vector<Entry>&)>& change) const {
    const fs::path file = folder / "model.safetensors";
    std::vector<Entry> entries = checkpoint::TensorFile(file).header().entries;
    change(entries);
    const std::string first = checkpoint::lay_out(entries);
    checkpoint::write_tensors(file, first, entries, [](const Entry& entry, File& to) {
      to.write(std::string(std::size_t(entry.bytes()), '\0'));
    });
  }
  TemporaryDirectory folder;
};

std::string index_said(const std::string& json) {
  return refused([&] { (void)hub_index_from_json(json, "i"); });
}

}  // namespace

TEST(HubTensors, a_tensor_too_many_is_named) {
  const Copy copy("llama3");
  copy.rewrite([](auto& entries) { entries.push_back({"model.layers.2.extra", Dtype::f32, {4}, 0}); });
  EXPECT_EQ(copy.said(),
            copy.at() + ": holds model.layers.2.extra, which is no part of a llama model of 2 layers");
}

TEST(HubTensors, a_tensor_too_few_is_named) {
  const Copy copy("llama3");
  copy.rewrite([](auto& entries) {
    std::erase_if(entries, [](const Entry& e) { return e.name == "model.layers.1.mlp.up_proj.weight"; });
  });
  EXPECT_EQ(copy.said(),
            copy.at() + ": lacks model.layers.1.mlp.up_proj.weight, which layers.1.mlp.up.weight is made of");
}

TEST(HubTensors, another_shape_or_type_is_named) {
  const Copy copy("llama3");
  copy.rewrite([](auto& entries) {
    for (Entry& e : entries)
      if (e.name == "model.norm.weight") e.shape = {17};
  });
  EXPECT_EQ(copy.said(), copy.at() + ": model.norm.weight is [17], its config.json asks for [16]");
  copy.rewrite([](auto& entries) {
    for (Entry& e : entries)
      if (e.name == "model.norm.weight") e = {e.name, Dtype::i32, {16}, 0};
  });
  EXPECT_EQ(copy.said(), copy.at() + ": model.norm.weight is of i32, expected f32, bf16 or f16");
}

TEST(HubTensors, tables_of_old_programs_are_passed_over) {
  const Copy copy("llama3");
  copy.rewrite([](auto& entries) {
    entries.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", Dtype::f32, {2}, 0});
  });
  EXPECT_EQ(copy.said(), "");
}

TEST(HubTensors, a_tied_output_that_is_stored_must_be_the_embedding) {
  const Copy copy("qwen2");
  copy.rewrite([](auto& entries) { entries.push_back({"lm_head.weight", Dtype::f32, {37, 16}, 0}); });
  EXPECT_EQ(copy.said(), "");  // zeros both
  copy.rewrite([](auto& entries) {
    for (Entry& e : entries)
      if (e.name == "lm_head.weight") e.dtype = Dtype::bf16;
  });
  EXPECT_EQ(copy.said(),
            copy.at() + ": its config.json ties lm_head.weight to the embedding, and they differ");
}

TEST(HubTensors, names_of_gpt2_may_lack_their_first_word) {
  const Copy copy("gpt2");
  copy.rewrite([](auto& entries) {
    for (Entry& e : entries) e.name = e.name.substr(std::string("transformer.").size());
    entries.push_back({"h.0.attn.bias", Dtype::f32, {1, 1, 24, 24}, 0});
  });
  EXPECT_EQ(copy.said(), "");
}

TEST(HubTensors, shards_that_are_missing_or_not_named_are_refused) {
  const Copy copy("llama2");
  const std::string index = copy.at() + "/model.safetensors.index.json";
  std::ifstream file(index);
  auto map = nlohmann::json::parse(file);
  const auto said_of = [&](const auto& changed) {
    std::ofstream(index) << changed.dump();
    return copy.said();
  };
  auto moved = map;
  moved["weight_map"]["model.norm.weight"] = "model-00001-of-00003.safetensors";
  EXPECT_EQ(said_of(moved),
            index + ": model.norm.weight should be in model-00001-of-00003.safetensors, and is not");
  auto unnamed = map;
  unnamed["weight_map"].erase("model.norm.weight");
  EXPECT_EQ(said_of(unnamed),
            copy.at() + "/" + map["weight_map"]["model.norm.weight"].template get<std::string>() +
                ": holds model.norm.weight, which model.safetensors.index.json does not name");
  std::ofstream(index) << map.dump();
  fs::remove(copy.folder / "model-00002-of-00003.safetensors");
  EXPECT_NE(copy.said().find("model-00002-of-00003.safetensors"), std::string::npos);
}

TEST(HubTensors, an_index_that_leads_elsewhere_is_refused) {
  for (const std::string name : {"../x.safetensors", "/x.safetensors", "a/b.safetensors", "x.bin", ""})
    EXPECT_EQ(index_said(R"({"weight_map": {"a": ")" + name + R"("}})"),
              "i: a lies in \"" + name + "\", expected a safetensors file of the same directory");
  EXPECT_EQ(index_said("{}"), "i: has no \"weight_map\"");
  EXPECT_EQ(index_said(R"({"weight_map": {}})"), "i: \"weight_map\" names no tensor");
  EXPECT_EQ(index_said(R"({"weight_map": {"a": 1}})"),
            "i: a lies in 1, expected a safetensors file of the same directory");
}

TEST(HubTensors, a_directory_without_safetensors_says_what_it_holds) {
  const TemporaryDirectory folder;
  const std::string at = folder.path().string();
  EXPECT_EQ(refused([&] { HubTensors(folder.path()); }),
            at + ": holds neither model.safetensors nor model.safetensors.index.json");
  std::ofstream(folder / "pytorch_model.bin") << "x";
  EXPECT_EQ(
      refused([&] { HubTensors(folder.path()); }),
      at +
          ": holds pytorch_model.bin, which runs Python code when it is read; save the model as safetensors");
}

TEST(HubTensors, a_truncated_file_is_refused_at_every_length) {
  const Copy copy("gpt2");
  const fs::path file = copy.folder / "model.safetensors";
  const auto full = fs::file_size(file);
  for (std::uintmax_t size : {full - 1, full - 4, full / 2, std::uintmax_t{4000}, std::uintmax_t{100},
                              std::uintmax_t{8}, std::uintmax_t{7}, std::uintmax_t{0}}) {
    fs::resize_file(file, size);
    EXPECT_NE(copy.said(), "") << size;
  }
}

TEST(HubTensors, a_model_without_a_tensor_of_that_name_says_so) {
  const HubWeights weights(hub_model("gpt2"), read_hub_config(hub_model("gpt2")));
  EXPECT_EQ(refused([&] { (void)weights.at("output.words"); }),
            hub_model("gpt2").string() + ": its model has no output.words");
}
