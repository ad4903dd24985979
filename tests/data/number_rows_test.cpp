// Rows of numbers as DeepSpeed's analyzer writes them, and the index of a metric.
#include "weft/data/number_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/data/golden.h"
#include "tests/support/source_dir.h"
#include "weft/base/error.h"
#include "weft/data/difficulty_metrics.h"

using namespace weft;
using namespace weft::data;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

namespace {

RowsToWrite rows_of(const std::vector<std::vector<std::int64_t>>& rows) {
  RowsToWrite out;
  for (const auto& row : rows) out.add(row);
  return out;
}

/// Samples that are what is given: tokens, and which of them are padding.
class Given final : public Dataset {
 public:
  explicit Given(std::vector<std::vector<std::int32_t>> texts, std::int32_t pad = -1)
      : texts_(std::move(texts)), pad_(pad) {}
  std::int64_t size() const override { return std::ssize(texts_); }
  void fill(std::int64_t i, Sample& into) const override {
    into.clear();
    const auto& text = texts_[std::size_t(i)];
    if (pad_ < 0) {
      into[Field::tokens].assign(text.begin(), text.end() - 1);
      into[Field::labels].assign(text.begin() + 1, text.end());
      return;
    }
    into[Field::tokens] = text;
    for (const std::int32_t token : text) into[Field::encoder_mask].push_back(token != pad_);
  }
  std::vector<Origin> origins(std::int64_t) const override { return {}; }

 private:
  std::vector<std::vector<std::int32_t>> texts_;
  std::int32_t pad_;
};

}  // namespace

TEST(NumberRows, come_back_in_every_type) {
  const TestFolder here;
  const RowsToWrite rows = rows_of({{1, 2, 3}, {}, {127}});
  for (const NumberType type : {NumberType::u8, NumberType::i8, NumberType::i16, NumberType::i32,
                                NumberType::i64, NumberType::u16, NumberType::u32, NumberType::u64}) {
    write_number_rows(here / "n", rows, type);
    const NumberRows read(here / "n");
    ASSERT_EQ(read.size(), 3);
    EXPECT_EQ(read.total(), 4);
    EXPECT_EQ(read.length(1), 0);
    EXPECT_EQ(read.at(0, 2), 3);
    EXPECT_EQ(read.at(2, 0), 127);
  }
  write_number_rows(here / "n", rows_of({{-5}}), NumberType::i16);
  EXPECT_EQ(NumberRows(here / "n").at(0, 0), -5);
  write_number_rows(here / "n", rows_of({{-1}}), NumberType::u64);
  EXPECT_THAT([&] { (void)NumberRows(here / "n").at(0, 0); },
              ThrowsMessage<Error>(
                  HasSubstr("n.bin: row 0 holds 18446744073709551615, which is no number of a sample")));
}

TEST(NumberRows, take_the_narrowest_type_that_holds_them) {
  EXPECT_EQ(number_type_for(0, 255), NumberType::u8);
  EXPECT_EQ(number_type_for(0, 256), NumberType::u16);
  EXPECT_EQ(number_type_for(0, 65536), NumberType::u32);
  EXPECT_EQ(number_type_for(0, std::int64_t{1} << 32), NumberType::u64);
  EXPECT_EQ(number_type_for(-128, 127), NumberType::i8);
  EXPECT_EQ(number_type_for(-129, 0), NumberType::i16);
  EXPECT_EQ(number_type_for(-1, 32768), NumberType::i32);
  EXPECT_EQ(number_type_for(-1, std::int64_t{1} << 31), NumberType::i64);
}

TEST(NumberRows, refuse_files_that_are_damaged) {
  const TestFolder here;
  write_number_rows(here / "n", rows_of({{1, 2}, {3}}), NumberType::u16);
  const std::string good = read_text(here / "n.idx"), who = here / "n.idx";
  const auto refusal = [&](const std::string& bytes) -> std::string {
    write_text(here / "n.idx", bytes);
    try {
      const NumberRows rows(here / "n");
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  const auto changed = [&](std::size_t at, char to) {
    std::string bytes = good;
    bytes[at] = to;
    return bytes;
  };
  EXPECT_EQ(refusal(good), "");
  EXPECT_EQ(refusal(good.substr(0, 20)),
            who + ": 20 bytes, the header of an index takes 34; the file is truncated");
  EXPECT_EQ(refusal(changed(0, 'X')), who + ": does not begin with MMIDIDX, so it is no index of samples");
  EXPECT_EQ(refusal(changed(9, 2)), who + ": version 2, expected 1");
  EXPECT_EQ(refusal(changed(17, 9)), who + ": number type code 9, the known codes are 1 to 8");
  EXPECT_EQ(refusal(changed(18, 9)),
            who + ": claims 9 rows, but holds only 74 bytes; the file is truncated or damaged");
  EXPECT_EQ(refusal(changed(34, 4)), who +
                                         ": row 0 has 4 numbers from byte 0 on, and the .bin holds 6 bytes: "
                                         "they are not of one run, or one is truncated");
}

TEST(DifficultyIndex, is_the_file_that_deepspeeds_analyzer_writes) {
  const TestFolder here;
  const std::vector<std::int64_t> rare = golden("difficulty/steps", "generator").at("values");
  std::vector<std::int64_t> many;
  for (std::int64_t i = 0; i < 120; ++i) many.push_back((119 - i) * 37 % 300);
  for (const auto& [name, values] : {std::pair("rare", rare), {"long", many}}) {
    write_difficulty_index(here.path().string(), name, values);
    for (const char* part :
         {"index_to_sample", "index_to_metric", "index_to_sample_percentile_merged", "sample_to_metric"})
      for (const char* end : {".bin", ".idx"}) {
        const std::string file = text(name, "/", name, "_", part, end);
        EXPECT_EQ(read_text(here / file),
                  read_text(text(WEFT_SOURCE_DIR, "/tests/golden/data/difficulty/", file)))
            << file;
      }
  }
}

// Of ten words in all, 1 occurs four times, 2 and 3 three times each.
TEST(Difficulties, are_sums_of_how_rare_words_are) {
  const Given set({{1, 1, 2, 3, 1}, {2, 3, 2, 3, 1}});
  const DifficultyOf of{.set = set, .sequence = 4, .words = 4, .threads = 2};
  const double none = 11, one = -std::log(4 / none), other = -std::log(3 / none);  // word 0 counts once
  EXPECT_THAT(difficulties(of, Difficulty::vocab_rarity),
              ElementsAre(std::int64_t(3 * one + 2 * other), std::int64_t(one + 4 * other)));
  EXPECT_THAT(difficulties(of, Difficulty::seqlen), ElementsAre(5, 5));
}

TEST(Difficulties, leave_padding_out) {
  const Given set({{1, 2, 0, 0}, {1, 1, 1, 2}}, 0);
  const DifficultyOf of{.set = set, .sequence = 4, .words = 3};
  EXPECT_THAT(difficulties(of, Difficulty::seqlen), ElementsAre(2, 4));
  const double one = -std::log(4.0 / 7), two = -std::log(2.0 / 7);
  // Of four words as rare as word 0, which counts once, 7.8 is the sum: hundreds are out of its reach.
  EXPECT_THAT(difficulties(of, Difficulty::seqlen_vocab_rarity),
              ElementsAre(2 * 100 + std::int64_t(one + two), 4 * 100 + std::int64_t(3 * one + two)));
}

TEST(Difficulties, refuse_words_that_are_none) {
  const Given set({{1, 2, 9}});
  EXPECT_THAT([&] { (void)difficulties({.set = set, .sequence = 2, .words = 4}, Difficulty::vocab_rarity); },
              ThrowsMessage<Error>("sample 0 holds word 9, and there are 4"));
  EXPECT_THAT([] { write_difficulty_index("here", "m", {}); },
              ThrowsMessage<Error>("index of m: there are no samples"));
}
