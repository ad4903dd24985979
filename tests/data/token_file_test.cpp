#include "weft/data/token_file.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/data/golden.h"
#include "tests/data/refusal.h"
#include "weft/data/token_writer.h"

using namespace weft;
using namespace weft::data;

namespace {

std::vector<std::int32_t> sequence(const TokenFile& file, std::int64_t i) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(file.length(i)));
  file.read(i, 0, tokens);
  return tokens;
}

// The first golden data set, written anew: three documents and an empty one.
void write_four(const std::string& prefix, TokenType type = TokenType::u16) {
  TokenWriter writer(prefix, {.type = type});
  const std::vector<std::vector<std::int32_t>> documents = {
      {5, 6, 7, 8, 999}, {1, 2, 999}, {}, {10, 20, 30, 40, 50, 60, 999}};
  const std::vector<std::vector<std::int32_t>> lengths = {{5}, {3}, {}, {3, 4}};
  for (std::size_t d = 0; d < documents.size(); ++d) writer.add_document(documents[d], lengths[d]);
  writer.finish();
}

void write_files(const std::string& prefix, const Json& golden_case) {
  write_text(prefix + ".idx", bytes_of_hex(golden_case["idx_hex"].get<std::string>()));
  write_text(prefix + ".bin", bytes_of_hex(golden_case["bin_hex"].get<std::string>()));
}

void expect_files(const std::string& prefix, const Json& golden_case) {
  EXPECT_EQ(read_text(prefix + ".idx"), bytes_of_hex(golden_case["idx_hex"].get<std::string>()));
  EXPECT_EQ(read_text(prefix + ".bin"), bytes_of_hex(golden_case["bin_hex"].get<std::string>()));
}

}  // namespace

TEST(TokenWriter, writes_the_bytes_that_megatron_writes) {
  const Json cases = golden("indexed_dataset_bytes");
  const TestFolder folder;
  write_four(folder / "four");
  expect_files(folder / "four", cases["uint16_4docs"]);
  TokenWriter wide(folder / "wide", {.type = TokenType::i32});
  wide.add_document(std::vector<std::int32_t>{70000, 1, 2}, std::vector<std::int32_t>{3});
  wide.add_document(std::vector<std::int32_t>{50256}, std::vector<std::int32_t>{1});
  wide.finish();
  expect_files(folder / "wide", cases["int32_2docs"]);
  TokenWriter empty(folder / "empty", {.type = TokenType::i32});
  empty.finish();
  expect_files(folder / "empty", cases["empty_int32"]);
}

TEST(TokenWriter, writes_the_modes_of_a_multimodal_data_set) {
  const TestFolder folder;
  TokenWriter writer(folder / "mm", {.type = TokenType::i32, .modes = Modes::wanted});
  const std::vector<std::int8_t> modes{0, 1};
  writer.add_document(std::vector<std::int32_t>{1, 2, 3, 9, 9, 9, 9, 9}, std::vector<std::int32_t>{3, 5},
                      modes);
  writer.add_document(std::vector<std::int32_t>{4, 8, 8}, std::vector<std::int32_t>{1, 2}, modes);
  writer.finish();
  expect_files(folder / "mm", golden("indexed_dataset_bytes", "int32_multimodal"));
  const TokenFile file(folder / "mm", {.modes = Modes::wanted});
  EXPECT_EQ(file.mode(0), 0);
  EXPECT_EQ(file.mode(3), 1);
  EXPECT_EQ(TokenFile(folder / "mm").num_sequences(), 4);  // as text, its modes are bytes behind the end
}

TEST(TokenWriter, merges_as_megatron_does) {
  const Json cases = golden("indexed_dataset_bytes");
  const TestFolder folder;
  write_files(folder / "a", cases["uint16_4docs"]);
  const Json& merged = cases["merged_uint16_4docs_plus_tiny2"];
  write_text(folder / "b.idx", bytes_of_hex(merged["tiny2_idx_hex"].get<std::string>()));
  write_text(folder / "b.bin", bytes_of_hex(merged["tiny2_bin_hex"].get<std::string>()));
  merge(prefixes_in(folder.path().string()), folder / "out");
  expect_files(folder / "out", merged);
}

TEST(TokenWriter, merges_modes_too) {
  const TestFolder folder;
  write_files(folder / "mm", golden("indexed_dataset_bytes", "int32_multimodal"));
  merge(std::vector<std::string>{folder / "mm"}, folder / "again", Modes::wanted);
  expect_files(folder / "again", golden("indexed_dataset_bytes", "int32_multimodal"));
}

TEST(TokenWriter, cuts_a_data_set_so_that_merging_the_parts_gives_it_back) {
  const TestFolder folder;
  write_four(folder / "all");
  split(folder / "all", 3, folder / "part");
  EXPECT_EQ(TokenFile(folder / "part_2").num_documents(), 2);
  merge(std::vector<std::string>{folder / "part_0", folder / "part_1", folder / "part_2"}, folder / "again");
  expect_files(folder / "again", golden("indexed_dataset_bytes", "uint16_4docs"));
}

TEST(TokenFile, reads_sequences_slices_and_documents) {
  const TestFolder folder;
  write_files(folder / "four", golden("indexed_dataset_bytes", "uint16_4docs"));
  for (const auto access : {TokenFile::Access::mapped, TokenFile::Access::read}) {
    const TokenFile file(folder / "four", {.access = access});
    EXPECT_EQ(file.type(), TokenType::u16);
    EXPECT_EQ(file.num_sequences(), 4);
    EXPECT_EQ(file.num_documents(), 4);
    EXPECT_EQ(file.num_tokens(), 15);
    EXPECT_EQ(sequence(file, 3), (std::vector<std::int32_t>{40, 50, 60, 999}));
    std::vector<std::int32_t> two(2);
    file.read(0, 3, two);
    EXPECT_EQ(two, (std::vector<std::int32_t>{8, 999}));
    EXPECT_EQ(file.document(2).begin, file.document(2).end);
    EXPECT_EQ(file.document(3).end, 4);
    file.verify();
  }
}

TEST(TokenFile, reads_back_every_type_it_writes) {
  const TestFolder folder;
  for (int code = 1; code <= 8; ++code) {
    const auto type = static_cast<TokenType>(code);
    const TokenRange allowed = range(type);
    const std::vector<std::int32_t> tokens = {static_cast<std::int32_t>(allowed.low), 0, 7,
                                              static_cast<std::int32_t>(allowed.high)};
    TokenWriter writer(folder / "x", {.type = type});
    writer.add_document(tokens, std::vector<std::int32_t>{4});
    writer.finish();
    EXPECT_EQ(sequence(TokenFile(folder / "x"), 0), tokens) << name(type);
  }
}

TEST(TokenType, follows_the_vocabulary) {
  EXPECT_EQ(token_type_for(65499), TokenType::u16);
  EXPECT_EQ(token_type_for(65500), TokenType::i32);
  EXPECT_EQ(token_type_for(std::nullopt), TokenType::i32);
}
