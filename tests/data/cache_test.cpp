#include <gtest/gtest.h>

#include "tests/data/golden.h"
#include "tests/data/refusal.h"
#include "weft/data/cache_file.h"
#include "weft/data/description.h"
#include "weft/data/index_cache.h"
#include "weft/data/md5.h"
#include "weft/data/npy.h"
#include "weft/data/tokenizer_identity.h"

using namespace weft;
using namespace weft::data;

namespace {

Identity golden_identity(Split split, std::int64_t num_samples) {
  Identity identity{.path = "cachetest", .num_samples = num_samples, .split = split, .sequence_length = 8};
  identity.split_text = "8,1,1";
  identity.matrix = split_matrix("8,1,1");
  identity.tokenizer =
      R"({"class": "megatron.core.tokenizers.text.libraries.null_tokenizer.NullTokenizer", "vocab_size": 1000, "eod_id": 999, "pad_id": -1})";
  return identity;
}

TokenizerFlags flags_of(const char* type) {
  TokenizerFlags flags;
  flags.type = type;
  return flags;
}

}  // namespace

TEST(Md5, is_that_of_the_rfc) {
  EXPECT_EQ(md5_hex(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5_hex("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(md5_hex("12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
            "57edf4a22be3c955ac49da2e2107b67a");
}

TEST(Description, writes_floats_as_python_does) {
  EXPECT_EQ(python_float(1), "1.0");
  EXPECT_EQ(python_float(0.9990000000000001), "0.9990000000000001");
  EXPECT_EQ(python_float(1e-5), "1e-05");
  EXPECT_EQ(python_float(0.0001), "0.0001");
  EXPECT_EQ(python_float(1e15), "1000000000000000.0");
  EXPECT_EQ(python_float(1e16), "1e+16");
  EXPECT_EQ(python_float(123456789.125), "123456789.125");
}

TEST(Description, escapes_text_as_python_does) {
  Identity identity{.path = "d\u00e4ta \"x\"\\\x7f", .sequence_length = 8};
  const std::string text = describe(identity);
  EXPECT_NE(text.find(R"("dataset_path": "d\u00e4ta \"x\"\\\u007f")"), std::string::npos) << text;
  EXPECT_NE(text.find("\"tokenizer\": {}"), std::string::npos);
  EXPECT_NE(text.find("\"split_matrix\": null"), std::string::npos);
}

TEST(IndexCache, writes_the_files_that_megatron_writes_under_the_same_names) {
  const Json all = golden("cache_files");
  const auto lengths = all["doc_sizes"].get<std::vector<std::int32_t>>();
  const Packed<std::int32_t> packed(std::as_bytes(std::span(lengths)));
  const TestFolder folder;
  const std::vector<std::int64_t> asked = {200, 5, 2};
  for (const Split split : splits) {
    const auto k = static_cast<std::size_t>(split);
    const Range range = range_of(*split_matrix("8,1,1")[k], static_cast<std::int64_t>(lengths.size()));
    const Order order{.sequence_length = 8, .num_samples = asked[k]};
    const IndexCache cache(folder.path(), golden_identity(split, asked[k]));
    EXPECT_FALSE(cache.find());
    cache.build(packed, range, order, plan_epochs(count_tokens(packed, range, "x"), order, "x"));
    EXPECT_TRUE(cache.find());
  }
  std::size_t found = 0;
  for (const auto& [name, file] : all["files"].items()) {
    const std::string bytes = read_text(folder / name);
    EXPECT_EQ(sha256_hex(bytes), file["sha256"]) << name << (bytes.size() < 1000 ? bytes : "");
    ++found;
  }
  EXPECT_EQ(found, 12U);
}

TEST(IndexCache, lies_below_the_prefix_unless_told_otherwise) {
  EXPECT_EQ(default_cache_folder("/d/x", "GPTDataset"), "/d/x/cache/GPTDataset_indices");
}

TEST(IndexCache, says_how_to_name_a_folder_that_takes_files) {
  const TestFolder folder;
  write_text(folder / "file", "");
  const std::string advice =
      "; indices of samples are kept there: name a folder that may be written to with {data.cache}";
  EXPECT_EQ(refusal([&] { make_cache_folder(folder / "file/cache"); }),
            "cannot make " + (folder / "file") + ": File exists" + advice);
  const std::string said = refusal([&] { write_cache_file(folder / "none/x.npy", "1"); });
  EXPECT_TRUE(said.starts_with("cannot create " + (folder / "none/x.npy.partial-"))) << said;
  EXPECT_TRUE(said.ends_with(": No such file or directory" + advice)) << said;
}

TEST(IndexCache, refuses_damaged_files_with_the_reason) {
  const TestFolder folder;
  const std::string path = folder / "x.npy";
  const auto said = [&](std::string_view bytes) {
    write_text(path, bytes);
    return refusal([&] { read_npy<std::int32_t>(path, 2); }).substr(path.size());
  };
  const std::string good = npy_header("<i4", 2, 2) + std::string(16, '\0');
  EXPECT_EQ(said("hello"),
            ": no .npy header of version 1.0, expected an array as numpy.save writes it; remove the cache");
  EXPECT_EQ(said(good.substr(0, 40)), ": 40 bytes, the header alone takes 128; remove the cache");
  EXPECT_EQ(said(good.substr(0, 140)),
            ": claims 2 rows of 2 numbers, but holds only 3; the file is truncated, remove the cache");
  EXPECT_EQ(said(npy_header("<i8", 1, 2) + std::string(16, '\0')),
            ": numbers of another type than <i4; remove the cache");
  EXPECT_EQ(said(npy_header("<i4", 4, 1) + std::string(16, '\0')),
            ": rows of 1 numbers, expected 2; remove the cache");
  EXPECT_EQ(said(npy_header("<i4", 0x7fffffffffffffff, 2)),
            ": claims 9223372036854775807 rows of 2 numbers, but holds only 0; the file is truncated, remove "
            "the cache");
  std::string shapeless = good;
  shapeless.replace(shapeless.find("(2,"), 3, "(x,");
  EXPECT_EQ(
      said(shapeless),
      ": the header does not give a shape, expected an array as numpy.save writes it; remove the cache");
}

// The 0.16 text is what megatron-core 0.16.1 gave when it was run; the others follow the releases' sources.
TEST(TokenizerIdentity, follows_the_release_of_megatron) {
  TokenizerFlags null = flags_of("NullTokenizer");
  null.vocab_size = 1000;
  EXPECT_EQ(
      tokenizer_identity(null),
      R"({"class":"megatron.core.tokenizers.text.text_tokenizer.MegatronTokenizerText","tokenizer_path":null,"vocab_size":"1000"})");
  EXPECT_EQ(
      tokenizer_identity(null, Upstream::core_0_16),
      R"({"class":"megatron.core.tokenizers.text.models.default_tokenizer.DefaultTokenizerText","tokenizer_path":null,"vocab_size":"1000"})");
  EXPECT_EQ(tokenizer_identity(null, Upstream::core_0_14),
            R"({"class":"_NullTokenizer","tokenizer_path":[null],"vocab_size":"1000"})");
  TokenizerFlags gpt2 = flags_of("GPT2BPETokenizer");
  gpt2.vocab_file = "v.json";
  gpt2.merge_file = "m.txt";
  EXPECT_EQ(
      tokenizer_identity(gpt2),
      R"({"class":"megatron.core.tokenizers.text.text_tokenizer.MegatronTokenizerText","tokenizer_path":"GPT2BPETokenizer","additional_special_tokens":"[]","vocab_file":"v.json","merges_file":"m.txt","use_fast":"True","trust_remote_code":"False","include_special_tokens":"True","use_gigatoken":"False"})");
  EXPECT_EQ(tokenizer_identity(gpt2, Upstream::core_0_14),
            R"({"class":"_GPT2BPETokenizer","tokenizer_path":["v.json","m.txt"]})");
}

TEST(TokenizerIdentity, knows_which_releases_share_a_name) {
  EXPECT_EQ(upstream_of("0.19"), Upstream::core_0_18);
  EXPECT_EQ(upstream_of("0.16.1"), Upstream::core_0_16);
  EXPECT_EQ(upstream_of("0.12"), Upstream::core_0_14);
  EXPECT_EQ(refusal([] { upstream_of("new"); }, Kind::usage),
            "{data.cache_version} new: expected a release of Megatron core such as 0.18, 0.16 or 0.14");
  EXPECT_EQ(refusal([] { tokenizer_identity(flags_of("TikTokenizer"), Upstream::core_0_14); }, Kind::usage),
            "{data.cache_version} 0.14: no name is known for TikTokenizer; give the tokenizer's identity "
            "with {data.cache_tokenizer}");
}
