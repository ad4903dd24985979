// Whatever byte of a checkpoint is flipped, and wherever one of its files is cut: it is noticed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/checkpoint/cuts.h"
#include "tests/support/refused.h"
#include "tests/support/temporary.h"
#include "weft/checkpoint/find.h"
#include "weft/checkpoint/load.h"
#include "weft/checkpoint/save.h"
#include "weft/checkpoint/step.h"
#include "weft/comm/solo.h"

using namespace weft;
using namespace weft::checkpoint;
using namespace weft::checkpoint::testing;
using support::TemporaryDirectory;
using ::testing::HasSubstr;
using weft::testing::PlainDevice;

namespace {

void put(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

class Damage : public ::testing::Test {
 protected:
  Damage() { save_step(100, 1); }

  void save_step(std::int64_t step, float value) {
    const std::vector<Named> mine{whole("w", from_host<float>(device, {2, 3}, std::vector<float>(6, value))),
                                  whole("b", from_host<double>(device, {3}, {value, 2, 3}))};
    const std::vector<Attached> files{{"tokenizer", "vocab.json", "{}"}, {"tokenizer", "merges.txt", "a b"}};
    save(step_directory(folder.path(), step), mine, {R"({"tokens": 12, "loss_scale": 1.5})", files}, world);
  }
  std::filesystem::path step() const { return step_directory(folder.path(), 100); }
  // Loading everything, as a run does.
  void load_all() {
    load(step(),
         std::vector<Named>{whole("w", empty(device, {2, 3})), whole("b", empty(device, {3}, Dtype::f64))},
         world);
  }
  std::vector<std::filesystem::path> files_of_it() const {
    std::vector<std::filesystem::path> out;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(step()))
      if (entry.is_regular_file()) out.push_back(entry.path());
    return out;
  }
  bool noticed() {
    const bool by_verify = !refused([&] { verify(step()); }).empty();
    const bool by_load = !refused([&] { load_all(); }).empty();
    return by_verify && by_load;
  }

  TemporaryDirectory folder;
  PlainDevice device;
  SoloCommunicator world;
};

}  // namespace

TEST_F(Damage, any_flipped_bit_is_noticed_in_any_file) {
  ASSERT_FALSE(noticed());
  int files = 0;
  for (const auto& path : files_of_it()) {
    const std::string content = read_file(path);
    ++files;
    for (std::size_t at = 0; at < content.size(); ++at) {
      std::string changed = content;
      changed[at] = char(changed[at] ^ (1 << at % 8));
      put(path, changed);
      ASSERT_TRUE(noticed()) << path << " byte " << at;
    }
    put(path, content);
  }
  EXPECT_EQ(files, 6);
  EXPECT_FALSE(noticed());
}

TEST_F(Damage, any_shorter_length_and_any_longer_is_noticed_in_any_file) {
  for (const auto& path : files_of_it()) {
    const std::string content = read_file(path);
    for (std::size_t length = 0; length < content.size(); ++length) {
      put(path, content.substr(0, length));
      ASSERT_TRUE(noticed()) << path << " cut to " << length;
    }
    put(path, content + "x");
    ASSERT_TRUE(noticed()) << path;
    put(path, content);
  }
}

TEST_F(Damage, any_lost_file_is_noticed) {
  for (const auto& path : files_of_it()) {
    const std::string content = read_file(path);
    std::filesystem::remove(path);
    ASSERT_TRUE(noticed()) << path;
    put(path, content);
  }
}

TEST_F(Damage, says_what_is_damaged) {
  const auto at = [&](const char* name) { return (step() / name).string(); };
  const auto said = [&](const char* name, std::size_t byte) {
    const std::string content = read_file(step() / name);
    std::string changed = content;
    changed[byte] = char(changed[byte] ^ 1);
    put(step() / name, changed);
    const std::string out = refused([&] { verify(step()); });
    put(step() / name, content);
    return out;
  };
  EXPECT_EQ(said("COMPLETE", 3), at("COMPLETE") + ": the mark of a complete checkpoint is damaged");
  EXPECT_EQ(said("index.json", 3), at("index.json") + ": damaged, its hash is not the one in COMPLETE");
  EXPECT_EQ(said("facts.json", 3), at("facts.json") + ": damaged, its hash is not the one in index.json");
  EXPECT_EQ(said("rank_00000.safetensors", 9),
            at("rank_00000.safetensors") + ": its header is damaged, its hash is not the one in index.json");
  EXPECT_EQ(said("tokenizer/merges.txt", 1),
            at("tokenizer/merges.txt") + ": damaged, its hash is not the one in index.json");
  const std::size_t last = read_file(step() / "rank_00000.safetensors").size() - 1;
  EXPECT_EQ(said("rank_00000.safetensors", last),
            at("rank_00000.safetensors") + ": w is damaged, its hash is not the one in index.json");
}

// A directory whose hashes are all right, but whose index was written by somebody else.
class Hostile : public Damage {
 protected:
  std::string with(const std::string& from, const std::string& to) {
    std::string json = read_file(step() / "index.json");
    const std::size_t at = json.find(from);
    if (at == std::string::npos) return "the index does not hold " + from;
    const std::string before = json;
    json.replace(at, from.size(), to);
    put(step() / "index.json", json);
    put(step() / "COMPLETE", complete_text("index.json", hash(json)));
    const std::string out = refused([&] { verify(step()); });
    put(step() / "index.json", before);
    put(step() / "COMPLETE", complete_text("index.json", hash(before)));
    return out;
  }
};

TEST_F(Hostile, names_that_lead_out_of_the_directory_are_refused) {
  for (const char* name : {"../x.safetensors", "..", "/etc/passwd", "a/b", ".hidden", ""}) {
    EXPECT_THAT(with("rank_00000.safetensors", name), HasSubstr("is no name of a file of a checkpoint"))
        << name;
    EXPECT_THAT(with("facts.json", name), HasSubstr("is no name of a file of a checkpoint")) << name;
  }
  for (const char* name : {"vocab.json", "../vocab.json", "tokenizer/../vocab.json", "/vocab.json", "a/b/c",
                           "a/", "a/.hidden", ""})
    EXPECT_THAT(with("tokenizer/vocab.json", name), HasSubstr("is no name of a file of a checkpoint"))
        << name;
  put(step() / "COMPLETE", complete_text("../index.json", Hash{}));
  EXPECT_THAT(refused([&] { verify(step()); }), HasSubstr("the mark of a complete checkpoint is damaged"));
}

TEST_F(Hostile, an_index_that_lies_is_refused) {
  EXPECT_THAT(with("\"weft checkpoint\"", "\"other\""), HasSubstr(R"(its format is not "weft checkpoint")"));
  EXPECT_THAT(with("\"version\": 1", "\"version\": 2"),
              HasSubstr("version 2, this weft reads version 1; a newer weft may have written it"));
  EXPECT_THAT(with("\"files\": [", "\"files\": 3, \"f\": ["),
              HasSubstr(R"("files" is number, expected a list)"));
  EXPECT_THAT(with("\"tensors\": {", "\"tensors\": 3, \"t\": {"),
              HasSubstr(R"("tensors" is number, expected an object)"));
  EXPECT_THAT(with("\"file\": 0", "\"file\": 1"), HasSubstr("b: a block lies in file 1 of 1"));
  EXPECT_THAT(with("\"file\": 0", "\"file\": -1"),
              HasSubstr(R"("file" is -1, expected a whole number from 0 on)"));
  EXPECT_THAT(with("\"f64\"", "\"f65\""), HasSubstr(R"(b: its type "f65" is none that weft holds)"));
  EXPECT_THAT(with("\"f64\"", "\"i64\""), HasSubstr("b is f64 [3], index.json says i64 [3]"));
  EXPECT_THAT(with("\"b\": {", "\"c\": {"), HasSubstr("holds no tensor c"));
  EXPECT_THAT(with("\"b\": {", "\"\": {"),
              HasSubstr(R"(a tensor's name "" is empty, unprintable or too long)"));
  EXPECT_THAT(with("\"bytes\": ", "\"bytes\": 1"), HasSubstr(" bytes, 1"));
  EXPECT_THAT(with("\"xxh3_128\": \"", "\"xxh3_128\": \"g"), HasSubstr("expected 32 hexadecimal digits"));
}

TEST_F(Hostile, boxes_that_leave_their_tensor_are_refused) {
  const std::string offset = "\"offset\": [\n      0\n     ]";
  EXPECT_THAT(with(offset, "\"offset\": [1]"), HasSubstr("b: a block [3] at [1] is not within [3]"));
  EXPECT_THAT(with(offset, "\"offset\": [9223372036854775807]"),
              HasSubstr("b: a block [3] at [9223372036854775807] is not within [3]"));
  EXPECT_THAT(with(offset, "\"offset\": [0, 0]"), HasSubstr("b: a block [3] at [0, 0] is not within [3]"));
}

TEST_F(Damage, no_complete_step_is_a_failure_and_never_silence) {
  put(step() / "COMPLETE", "");
  std::vector<std::string> notices;
  EXPECT_EQ(refused([&] { (void)latest(folder.path(), notices); }),
            folder.path().string() + ": no complete checkpoint: step 100 is passed over: " +
                (step() / "COMPLETE").string() + ": the mark of a complete checkpoint is damaged");
  const std::string none = (folder / "none").string();
  EXPECT_EQ(refused([&] { (void)latest(none, notices); }),
            none + ": no complete checkpoint: " + none + ": holds no directory of a step");
}

TEST_F(Damage, is_not_a_checkpoint_of_another_shape) {
  try {
    load(step(), std::vector<Named>{whole("w", empty(device, {3, 2}))}, world);
    FAIL() << "it was loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Kind::usage) << "nobody looks for an older step";
    EXPECT_THAT(error.what(), HasSubstr("step_00000100: holds w as f32 [2, 3], and f32 [3, 2] is wanted"));
  }
}
