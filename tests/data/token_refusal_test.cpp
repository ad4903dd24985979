// Truncated, torn and hostile data sets: each is refused with its reason, before any length in it is
// believed.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstring>

#include "tests/data/golden.h"
#include "tests/data/refusal.h"
#include "weft/data/fitting.h"
#include "weft/data/token_file.h"
#include "weft/data/token_writer.h"

using namespace weft;
using namespace weft::data;

namespace {

std::string good_index() {
  return bytes_of_hex(golden("indexed_dataset_bytes", "uint16_4docs")["idx_hex"].get<std::string>());
}
constexpr std::int64_t good_bin_bytes = 30;

template <class T>
std::string with(std::size_t at, T value, std::string index = good_index()) {
  std::memcpy(index.data() + at, &value, sizeof value);
  return index;
}

std::string said_of(const std::string& index, std::int64_t bin_bytes = good_bin_bytes,
                    Modes modes = Modes::ignored) {
  return refusal([&] { parse_index(std::as_bytes(std::span(index)), bin_bytes, "x.idx", modes); });
}

}  // namespace

TEST(TokenRefusal, names_what_is_wrong_with_the_header) {
  EXPECT_EQ(said_of(""), "x.idx: 0 bytes, the header of an index takes 34; the file is truncated");
  EXPECT_EQ(said_of(good_index().substr(0, 33)),
            "x.idx: 33 bytes, the header of an index takes 34; the file is truncated");
  EXPECT_EQ(said_of(with(0, 'X')), "x.idx: does not begin with MMIDIDX, so it is not an index of tokens");
  EXPECT_EQ(said_of("TNTIDX\0\0"),
            "x.idx: an index of the old lazy or cached kind (TNTIDX), expected the mmap kind; make it again "
            "with weft preprocess");
  EXPECT_EQ(said_of(with(9, std::uint64_t{2})), "x.idx: version 2, expected 1");
  EXPECT_EQ(said_of(with(17, std::uint8_t{9})), "x.idx: token type code 9, the known codes are 1 to 8");
  EXPECT_EQ(said_of(with(17, std::uint8_t{0})), "x.idx: token type code 0, the known codes are 1 to 8");
}

TEST(TokenRefusal, does_not_believe_a_count_the_file_has_no_room_for) {
  EXPECT_EQ(said_of(good_index().substr(0, 100)),
            "x.idx: claims 4 sequences and 5 document bounds, but holds only 100 bytes; the file is "
            "truncated or damaged");
  EXPECT_EQ(said_of(with(18, ~std::uint64_t{0})),
            "x.idx: claims 18446744073709551615 sequences and 5 document bounds, but holds only 122 bytes; "
            "the file is truncated or damaged");
  EXPECT_EQ(said_of(with(26, std::uint64_t{1} << 61)),
            "x.idx: claims 4 sequences and 2305843009213693952 document bounds, but holds only 122 bytes; "
            "the file is truncated or damaged");
  EXPECT_EQ(said_of(with(26, std::uint64_t{0})),
            "x.idx: no document bounds, expected at least the first one");
  EXPECT_EQ(said_of(good_index(), good_bin_bytes, Modes::wanted),
            "x.idx: claims 4 sequences and 5 document bounds with modes, but holds only 122 bytes; the file "
            "is truncated or damaged");
}

TEST(TokenRefusal, compares_the_ends_with_the_data_beside_the_index) {
  EXPECT_EQ(said_of(good_index(), 28),
            "x.idx: accounts for 30 bytes of tokens, but the .bin beside it holds 28; they are not of one "
            "run, or one is truncated");
  EXPECT_EQ(said_of(good_index(), 32),
            "x.idx: accounts for 30 bytes of tokens, but the .bin beside it holds 32; they are not of one "
            "run, or one is truncated");
  EXPECT_EQ(said_of(with(114, std::int64_t{3})),
            "x.idx: the last document ends at sequence 3, but there are 4 sequences");
  EXPECT_EQ(said_of(with(82, std::int64_t{1})), "x.idx: the first document begins at sequence 1, expected 0");
  EXPECT_EQ(said_of(with(50, std::int64_t{2})), "x.idx: the first sequence begins at byte 2, expected 0");
  EXPECT_EQ(said_of(with(46, std::int32_t{-4})),
            "x.idx: the last sequence has length -4 and begins at byte 22; the file is damaged");
  EXPECT_EQ(said_of(with(74, std::int64_t{0x7ffffffffffffff9})),
            "x.idx: accounts for -1 bytes of tokens, but the .bin beside it holds 30; they are not of one "
            "run, or one is truncated");
}

TEST(TokenRefusal, checks_a_sequence_when_it_is_read_and_all_of_them_when_asked) {
  const TestFolder folder;
  write_text(folder / "x.bin", std::string(30, '\0'));
  const std::string who = (folder / "x.idx") + ": ";
  std::vector<std::int32_t> tokens(2);
  write_text(folder / "x.idx", with(38, std::int32_t{-3}));
  EXPECT_EQ(refusal([&] { TokenFile(folder / "x").read(1, 0, tokens); }),
            who + "sequence 1 has length -3 and begins at byte 10 of 30; the file is damaged");
  write_text(folder / "x.idx", with(38, std::int32_t{2000000000}));
  EXPECT_EQ(refusal([&] { TokenFile(folder / "x").verify(); }),
            who + "sequence 1 has length 2000000000 and begins at byte 10 of 30; the file is damaged");
  write_text(folder / "x.idx", with(58, std::int64_t{8}));
  EXPECT_EQ(refusal([&] { TokenFile(folder / "x").verify(); }),
            who + "sequence 1 begins at byte 8, the lengths before it say 10");
  write_text(folder / "x.idx", with(98, std::int64_t{9}));
  EXPECT_EQ(refusal([&] { TokenFile(folder / "x").verify(); }),
            who + "document 1 is the sequences from 1 to 9 of 4; the file is damaged");
}

TEST(TokenRefusal, says_what_a_request_runs_over) {
  const TestFolder folder;
  write_text(folder / "x.bin", std::string(30, '\0'));
  write_text(folder / "x.idx", good_index());
  const TokenFile file(folder / "x");
  std::vector<std::int32_t> tokens(2);
  EXPECT_EQ(refusal([&] { file.read(4, 0, tokens); }),
            (folder / "x.idx") + ": sequence 4 asked for, there are 4");
  EXPECT_EQ(refusal([&] { file.read(1, 2, tokens); }),
            (folder / "x") + ": 2 tokens from 2 asked of sequence 1, which has 3");
  EXPECT_EQ(refusal([&] { static_cast<void>(file.document(-1)); }),
            (folder / "x.idx") + ": document -1 asked for, there are 4");
}

TEST(TokenRefusal, explains_what_a_prefix_is) {
  const TestFolder folder;
  EXPECT_EQ(refusal([&] { TokenFile(folder / "none"); }),
            (folder / "none.idx") +
                ": no such file; a data set is a prefix with two files, PREFIX.idx and PREFIX.bin");
  EXPECT_EQ(refusal([&] { TokenFile(folder / "x.bin"); }),
            (folder / "x.bin.idx") +
                ": no such file; a data set is a prefix with two files, PREFIX.idx and PREFIX.bin: give it "
                "without its ending");
}

TEST(TokenRefusal, knows_that_not_every_stored_number_is_an_id) {
  const TestFolder folder;
  TokenWriter writer(folder / "x", {.type = TokenType::i64});
  writer.add_document(std::vector<std::int32_t>{1}, std::vector<std::int32_t>{1});
  writer.finish();
  write_text(folder / "x.bin", std::string(8, '\x7f'));
  std::vector<std::int32_t> token(1);
  EXPECT_EQ(refusal([&] { TokenFile(folder / "x").read(0, 0, token); }),
            (folder / "x.bin") + ": sequence 0 holds values of type i64 that no 32-bit token id can be");
}

TEST(TokenRefusal, takes_no_fraction_for_an_id) {
  const TestFolder folder;
  TokenWriter writer(folder / "x", {.type = TokenType::f32});
  writer.add_document(std::vector<std::int32_t>{7}, std::vector<std::int32_t>{1});
  writer.finish();
  std::vector<std::int32_t> token(1);
  TokenFile(folder / "x").read(0, 0, token);
  EXPECT_EQ(token[0], 7);
  write_text(folder / "x.bin", std::string("\0\0\xf0\x40", 4));  // 7.5
  EXPECT_EQ(refusal([&] { TokenFile(folder / "x").read(0, 0, token); }),
            (folder / "x.bin") + ": sequence 0 holds values of type f32 that no 32-bit token id can be");
}

TEST(TokenRefusal, lets_a_vocabulary_be_larger_than_bytes) {
  const TestFolder folder;
  for (const TokenType type : {TokenType::u8, TokenType::i16, TokenType::u16}) {
    TokenWriter writer(folder / "x", {.type = type});
    writer.add_document(std::vector<std::int32_t>{7}, std::vector<std::int32_t>{1});
    writer.finish();
    const TokenFile file(folder / "x");
    check_vocabulary(file, 65536);
    if (type == TokenType::u16) {
      EXPECT_EQ(refusal([&] { check_vocabulary(file, 65537); }),
                (folder / "x") +
                    ": tokens of type u16 hold ids up to 65535, the vocabulary has 65537; the data "
                    "was made with another tokenizer");
    }
  }
}

TEST(TokenRefusal, does_not_write_a_token_that_its_type_cannot_hold) {
  const TestFolder folder;
  TokenWriter writer(folder / "x", {.type = TokenType::u16});
  EXPECT_EQ(
      refusal([&] { writer.add_document(std::vector<std::int32_t>{65536}, std::vector<std::int32_t>{1}); }),
      (folder / "x") + ": token 65536 in document 0 does not fit the type u16, which holds 0 to 65535");
}

TEST(TokenRefusal, leaves_nothing_of_an_unfinished_data_set) {
  const TestFolder folder;
  {
    TokenWriter writer(folder / "x", {.type = TokenType::u16});
    writer.add_document(std::vector<std::int32_t>{1}, std::vector<std::int32_t>{1});
    EXPECT_FALSE(token_file_exists(folder / "x"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(TokenRefusal, merges_only_what_belongs_together) {
  const TestFolder folder;
  for (const auto& [name, type] : {std::pair{"a", TokenType::u16}, std::pair{"b", TokenType::i32}}) {
    TokenWriter writer(folder / name, {.type = type});
    writer.add_document(std::vector<std::int32_t>{1}, std::vector<std::int32_t>{1});
    writer.finish();
  }
  EXPECT_EQ(refusal([&] { merge(prefixes_in(folder.path().string()), folder / "out"); }),
            (folder / "b") + ": tokens of type i32, expected u16 as in " + (folder / "out"));
  EXPECT_EQ(refusal([&] { split(folder / "a", 2, folder / "part"); }, Kind::usage),
            "split: 2 parts asked of " + (folder / "a") + ", which has 1 documents");
  write_text(folder / "notes.txt", "");
  EXPECT_EQ(refusal([&] { prefixes_in(folder.path().string()); }),
            "merge: " + (folder / "notes.txt") +
                " is not one half of a pair of .bin and .idx; move it out of the folder");
}

// Any byte of an index may lie: opening and reading everything then either works or says no.
TEST(TokenRefusal, survives_any_damage_to_an_index) {
  const TestFolder folder;
  write_text(folder / "x.bin", std::string(30, '\1'));
  EXPECT_TRUE(rc::check([&](std::uint8_t value) {
    std::string index = good_index();
    const auto at = *rc::gen::inRange<std::size_t>(0, index.size());
    index[at] = static_cast<char>(value);
    index.resize(*rc::gen::inRange<std::size_t>(0, index.size() + 1));
    write_text(folder / "x.idx", index);
    try {
      const TokenFile file(folder / "x");
      for (std::int64_t i = 0; i < file.num_sequences(); ++i) {
        std::vector<std::int32_t> tokens(static_cast<std::size_t>(file.length(i)));
        file.read(i, 0, tokens);
      }
      for (std::int64_t d = 0; d < file.num_documents(); ++d) file.document(d);
    } catch (const Error& e) {
      RC_ASSERT(e.kind() == Kind::data);
    }
  }));
}
