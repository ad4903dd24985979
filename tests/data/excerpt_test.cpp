#include "weft/data/excerpt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

using namespace weft::data;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;

namespace {

/// Rows of eleven tokens, twelve with the last label: 100, 101, … and 200, 201, …
HostBatch two_rows() {
  HostBatch batch{.samples = {7, 9}};
  for (const int first : {100, 200})
    for (int i = 0; i < 11; ++i) {
      batch[Field::tokens].push_back(first + i);
      batch[Field::labels].push_back(first + i + 1);
      batch[Field::loss_mask].push_back(i == 3 ? 0 : 1);
      batch[Field::positions].push_back(i < 6 ? i : i - 6);  // a document ends
    }
  batch[Field::sentence_order] = {0, 1};
  return batch;
}

std::vector<std::int64_t> sample_numbers(const HostBatch& batch) {
  std::vector<std::int64_t> out;
  for (const std::int64_t number : batch.samples) out.push_back(sample_of(number));
  return out;
}

/// DeepSpeed's reshape in its own words, of text [rows, row]: data_post_process() of Megatron-DeepSpeed.
std::vector<std::vector<int>> reshaped(const std::vector<std::vector<int>>& text, std::size_t width) {
  std::vector<std::vector<int>> out;
  const std::size_t row = text[0].size(), kept = row / width * width;
  for (const auto& line : text)
    for (std::size_t from = 0; from < kept; from += width)
      out.emplace_back(line.begin() + std::ptrdiff_t(from), line.begin() + std::ptrdiff_t(from + width));
  for (const auto& line : text) out.emplace_back(line.end() - std::ptrdiff_t(width), line.end());
  std::size_t rows = std::min((text.size() * row + width - 1) / width, out.size());
  if (rows > 1 && rows % 2 != 0) --rows;
  out.resize(rows);
  return out;
}

}  // namespace

TEST(Excerpt, is_the_front_of_every_sample) {
  HostBatch front;
  cut(two_rows(), {.length = 3}, front);
  EXPECT_THAT(front.samples, ElementsAre(7, 9));
  EXPECT_THAT(front[Field::tokens], ElementsAre(100, 101, 102, 200, 201, 202));
  EXPECT_THAT(front[Field::labels], ElementsAre(101, 102, 103, 201, 202, 203));
  EXPECT_THAT(front[Field::sentence_order], ElementsAre(0, 1));
  EXPECT_THAT(front[Field::documents], IsEmpty());
}

// Width 5: two whole pieces of twelve tokens in each row, and the last one; of five that would be, four are
// kept.
TEST(Excerpt, in_pieces_is_an_even_number_of_windows_on_tokens_and_labels) {
  HostBatch pieces;
  cut(two_rows(), {.length = 4, .form = ExcerptForm::reshape}, pieces);
  EXPECT_THAT(sample_numbers(pieces), ElementsAre(7, 7, 9, 9));
  EXPECT_THAT(pieces[Field::tokens],
              ElementsAre(100, 101, 102, 103, 105, 106, 107, 108, 200, 201, 202, 203, 205, 206, 207, 208));
  EXPECT_THAT(pieces[Field::labels],
              ElementsAre(101, 102, 103, 104, 106, 107, 108, 109, 201, 202, 203, 204, 206, 207, 208, 209));
  EXPECT_THAT(pieces[Field::positions], ElementsAre(0, 1, 2, 3, 0, 0, 1, 2, 0, 1, 2, 3, 0, 0, 1, 2));
  EXPECT_THAT(pieces[Field::sentence_order], ElementsAre(0, 0, 1, 1));
}

TEST(Excerpt, gives_every_piece_a_number_of_its_own) {
  HostBatch pieces;
  cut(two_rows(), {.length = 7, .form = ExcerptForm::reshape}, pieces);
  EXPECT_THAT(pieces.samples, ElementsAre(7, 9));
  cut(two_rows(), {.length = 2, .form = ExcerptForm::reshape}, pieces);
  EXPECT_THAT(sample_numbers(pieces), ElementsAre(7, 7, 7, 7, 9, 9, 9, 9));
  EXPECT_EQ(std::set(pieces.samples.begin(), pieces.samples.end()).size(), 8U);
  EXPECT_EQ(number_of_piece(7, 0), 7);
}

TEST(Excerpt, in_pieces_keeps_what_megatron_deepspeed_keeps) {
  for (std::int64_t rows = 1; rows <= 3; ++rows)
    for (std::int64_t length = 2; length <= 9; ++length)
      for (std::int64_t row = length + 1; row <= 40; ++row) {
        HostBatch batch;
        std::vector<std::vector<int>> text;
        for (std::int64_t b = 0; b < rows; ++b) {
          batch.samples.push_back(b);
          text.emplace_back(std::size_t(row + 1));
          std::iota(text.back().begin(), text.back().end(), int(100 * b));
          batch[Field::tokens].insert(batch[Field::tokens].end(), text.back().begin(), text.back().end() - 1);
          batch[Field::labels].insert(batch[Field::labels].end(), text.back().begin() + 1, text.back().end());
        }
        HostBatch pieces;
        const Excerpt excerpt{.length = length, .form = ExcerptForm::reshape};
        cut(batch, excerpt, pieces);
        std::vector<int> tokens, labels;
        for (const auto& line : reshaped(text, std::size_t(length + 1))) {
          tokens.insert(tokens.end(), line.begin(), line.end() - 1);
          labels.insert(labels.end(), line.begin() + 1, line.end());
        }
        ASSERT_THAT(pieces[Field::tokens], ElementsAreArray(tokens)) << rows << " " << length << " " << row;
        ASSERT_THAT(pieces[Field::labels], ElementsAreArray(labels));
        ASSERT_EQ(rows_of({rows, row}, excerpt).tokens(), std::ssize(tokens));
      }
}

TEST(Excerpt, as_long_as_samples_are_is_all_of_them) {
  EXPECT_EQ(rows_of({2, 11}, {.length = 11, .form = ExcerptForm::reshape}).tokens(), 22);
  EXPECT_EQ(rows_of({2, 11}, {.length = 0}).tokens(), 22);
  EXPECT_EQ(rows_of({2, 11}, {.length = 3}).tokens(), 6);
}
