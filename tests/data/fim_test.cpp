#include "weft/data/fim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "weft/base/error.h"
#include "weft/text/open.h"

using namespace weft;
using namespace weft::data;
using ::testing::ElementsAre;
using ::testing::ThrowsMessage;

namespace {

constexpr std::int64_t length = 40;
constexpr std::int32_t eod = 300, prefix = 301, middle = 302, suffix = 303, pad = 304, ends_fragment = 305;

/// Bytes are tokens; two documents, one of which holds two fragments, fill every sample.
class Letters final : public Dataset {
 public:
  std::int64_t size() const override { return 50; }
  void fill(std::int64_t i, Sample& into) const override {
    into.clear();
    std::vector<std::int32_t>& tokens = into[Field::tokens];
    for (std::int64_t k = 0; k <= length; ++k) tokens.push_back(std::int32_t('a' + (i + k) % 26));
    tokens[20] = eod;
    tokens[30] = ends_fragment;
    complete_gpt_sample(into, rows());
  }
  std::vector<Origin> origins(std::int64_t) const override { return {}; }
  static GptRows rows() { return {.sequence_length = length, .eod = eod}; }
};

class Bytes final : public Tokenizer {
 public:
  std::vector<std::int32_t> encode(std::string_view utf8) const override {
    return {utf8.begin(), utf8.end()};
  }
  std::string decode(std::span<const std::int32_t> ids) const override { return {ids.begin(), ids.end()}; }
  std::int32_t size() const override { return 306; }
  std::optional<std::int32_t> special(std::string_view) const override { return std::nullopt; }
  std::string token(std::int32_t) const override { return {}; }
  bool is_special(std::int32_t id) const override { return id >= 300; }
};

FimRules rules() {
  return {.rate = 1,
          .suffix_first_rate = 0,
          .prefix = prefix,
          .middle = middle,
          .suffix = suffix,
          .pad = pad,
          .eod = eod,
          .seed = 3};
}

std::vector<std::int32_t> tokens_of(const FimRules& how, std::int64_t i) {
  const auto set =
      filled_in_the_middle(std::make_shared<Letters>(), std::make_shared<Bytes>(), how, Letters::rows());
  Sample sample = set->get(i);
  auto tokens = sample[Field::tokens];
  tokens.push_back(sample[Field::labels].back());
  EXPECT_EQ(std::ssize(sample[Field::loss_mask]), length);
  return tokens;
}

std::vector<std::int32_t> before_the_end(const std::vector<std::int32_t>& tokens) {
  return {tokens.begin(), std::ranges::find(tokens, eod)};
}

/// What was cut, put together again.
std::string whole(const std::vector<std::int32_t>& document) {
  const auto at = [&](std::int32_t id) { return std::ranges::find(document, id) - document.begin(); };
  const std::string all(document.begin(), document.end());
  const auto p = std::size_t(at(prefix)), s = std::size_t(at(suffix)), m = std::size_t(at(middle));
  if (s == p + 1 && m > s && at(prefix) == 0 && all.size() > m + 1 && p + 1 == s) {
    // suffix first: what follows the middle marker is prefix and middle, already in order
    return all.substr(m + 1) + all.substr(s + 1, m - s - 1);
  }
  return all.substr(p + 1, s - p - 1) + all.substr(m + 1) + all.substr(s + 1, m - s - 1);
}

}  // namespace

TEST(Fim, cuts_a_document_in_three_and_loses_nothing) {
  Letters letters;
  for (std::int64_t i = 0; i < 50; ++i) {
    const auto plain = before_the_end(letters.get(i)[Field::tokens]);
    const auto permuted = before_the_end(tokens_of(rules(), i));
    EXPECT_EQ(permuted.size(), plain.size() + 3) << i;
    EXPECT_EQ(whole(permuted), std::string(plain.begin(), plain.end())) << i;
  }
}

TEST(Fim, puts_the_suffix_first_where_that_is_drawn) {
  FimRules how = rules();
  how.suffix_first_rate = 1;
  for (std::int64_t i = 0; i < 10; ++i) {
    const auto tokens = tokens_of(how, i);
    EXPECT_EQ(tokens[0], prefix);
    EXPECT_EQ(tokens[1], suffix);
    EXPECT_EQ(whole(before_the_end(tokens)).size(), 20u);
  }
}

TEST(Fim, leaves_alone_what_is_not_drawn_and_what_is_spared) {
  Letters letters;
  FimRules how = rules();
  how.rate = 0;
  EXPECT_EQ(before_the_end(tokens_of(how, 4)), before_the_end(letters.get(4)[Field::tokens]));
  how = rules();
  how.spared = "ab";
  EXPECT_EQ(before_the_end(tokens_of(how, 0)), before_the_end(letters.get(0)[Field::tokens]));
  EXPECT_NE(before_the_end(tokens_of(how, 1)), before_the_end(letters.get(1)[Field::tokens]));
}

TEST(Fim, permutes_fragment_by_fragment_where_they_are_marked) {
  FimRules how = rules();
  how.split = ends_fragment;
  how.fragment_rate = 1;
  const auto tokens = tokens_of(how, 7);
  const auto behind = std::ranges::find(tokens, eod) + 1;
  EXPECT_EQ(*behind, prefix);
  const auto mark = std::find(behind, tokens.end(), ends_fragment);
  ASSERT_NE(mark, tokens.end());
  EXPECT_EQ(*(mark + 1), prefix);
}

TEST(Fim, keeps_the_length_of_a_sample_that_got_shorter) {
  FimRules how = rules();
  how.prefix = how.middle = how.suffix = 301;
  how.eod = 1000;  // one document of 41 tokens, two of which are no text: three markers more
  EXPECT_EQ(std::ssize(tokens_of(how, 2)), length + 1);
  how.eod = ends_fragment;  // an empty document behind every mark goes with it
  EXPECT_EQ(std::ssize(tokens_of(how, 2)), length + 1);
}

TEST(Fim, chooses_by_the_number_of_the_sample_alone) {
  EXPECT_EQ(tokens_of(rules(), 9), tokens_of(rules(), 9));
  FimRules other = rules();
  other.seed = 5;
  EXPECT_NE(tokens_of(rules(), 9), tokens_of(other, 9));
}

TEST(Fim, refuses_pieces_that_are_counted_by_document) {
  GptRows rows = Letters::rows();
  rows.between_documents = true;
  EXPECT_THAT(
      [&] { filled_in_the_middle(nullptr, nullptr, rules(), rows); },
      ThrowsMessage<Error>("{data.fim.on} makes other pieces of documents than {data.between_documents} "
                           "counts: leave one of them out"));
}
