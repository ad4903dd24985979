// Splitters: the scanners against PCRE2, and both against what the originals gave.
#include "weft/text/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/source_dir.h"
#include "tests/text/random_text.h"
#include "weft/base/error.h"

namespace weft {
namespace {

std::vector<std::string> pieces_of(const Splitter& splitter, const std::string& text) {
  std::vector<std::string> pieces;
  for (const ByteRange& piece : splitter.all(text))
    pieces.push_back(text.substr(piece.begin, piece.end - piece.begin));
  return pieces;
}

nlohmann::json golden() {
  std::ifstream file(WEFT_SOURCE_DIR "/tests/golden/text/gpt2_bpe.json");
  return nlohmann::json::parse(file);
}

void expect_golden(std::string_view pattern, const char* list) {
  const auto splitter = make_scanner(pattern);
  ASSERT_NE(splitter, nullptr);
  const auto cases = golden().at(list);
  ASSERT_GE(cases.size(), 10u);
  for (const auto& one : cases) {
    EXPECT_EQ(pieces_of(*splitter, one.at("text")), one.at("pieces").get<std::vector<std::string>>());
  }
}

TEST(Splitter, cuts_as_gpt2_did) { expect_golden(gpt2_pattern(), "pretokenize_gpt2"); }
TEST(Splitter, cuts_as_megatrons_first_pattern_did) {
  expect_golden(megatron_v1_pattern(), "pretokenize_tiktoken_v1");
}
TEST(Splitter, cuts_as_megatrons_second_pattern_did) {
  expect_golden(megatron_v2_pattern(), "pretokenize_tiktoken_v2");
}

// What the distribution's PCRE2 and utf8proc class differently (they follow different years of Unicode) is
// left out.
class Agreed {
 public:
  Agreed() {
    const auto letters = make_regex_splitter(R"(\p{L})", Dialect::rust);
    const auto numbers = make_regex_splitter(R"(\p{N})", Dialect::rust);
    const auto marks = make_regex_splitter(R"(\p{M})", Dialect::rust);
    const auto capitals = make_regex_splitter(R"([\p{Lu}\p{Lt}])", Dialect::rust);
    const auto small = make_regex_splitter(R"(\p{Ll})", Dialect::rust);
    const unicode::Classes classes;
    for (char32_t code = 0; code < 0x110000; ++code) {
      if (code >= 0xd800 && code < 0xe000) continue;
      std::string text;
      unicode::append(text, code);
      const auto is = [&](const auto& pattern) { return !pattern->all(text).empty(); };
      const auto bits = classes.of(code);
      const bool capital = (bits & unicode::Classes::upper) != 0 && (bits & unicode::Classes::lower) == 0;
      const bool little = (bits & unicode::Classes::upper) == 0 && (bits & unicode::Classes::lower) != 0;
      const bool same = is(letters) == unicode::is_letter(code) && is(numbers) == unicode::is_number(code) &&
                        is(marks) == unicode::is_mark(code) && is(capitals) == capital && is(small) == little;
      if (!same) differing_.push_back(code);
    }
  }
  [[nodiscard]] std::size_t differing() const { return differing_.size(); }
  [[nodiscard]] std::string only(const std::string& text) const {
    std::string out;
    for (const char32_t code : unicode::decoded(text)) {
      if (!std::binary_search(differing_.begin(), differing_.end(), code)) unicode::append(out, code);
    }
    return out;
  }

 private:
  std::vector<char32_t> differing_;
};

TEST(Splitter, every_scanner_agrees_with_pcre2_on_random_text) {
  const Agreed agreed;
  EXPECT_LT(agreed.differing(), 20000u);
  for (const std::string_view pattern : known_patterns()) {
    const auto scanner = make_scanner(pattern);
    const auto oracle = make_regex_splitter(pattern, Dialect::rust);
    EXPECT_TRUE(rc::check(std::string(pattern), [&] {
      const std::string text = agreed.only(*weft::testing::random_text());
      RC_ASSERT(pieces_of(*scanner, text) == pieces_of(*oracle, text));
    }));
  }
}

TEST(Splitter, a_scanner_covers_every_byte) {
  for (const std::string_view pattern : known_patterns()) {
    const auto scanner = make_scanner(pattern);
    EXPECT_TRUE(rc::check(std::string(pattern), [&] {
      const std::string text = *weft::testing::random_text();
      std::string joined;
      for (const auto& piece : pieces_of(*scanner, text)) joined += piece;
      RC_ASSERT(joined == text);
    }));
  }
}

TEST(Splitter, goes_on_where_it_stopped) {
  const auto splitter = make_scanner(gpt2_pattern());
  std::vector<ByteRange> pieces;
  const std::string_view text = "one two three";
  EXPECT_EQ(splitter->split(text, 0, 2, pieces), 7u);
  EXPECT_EQ(splitter->split(text, 7, 2, pieces), text.size());
  EXPECT_THAT(pieces, ::testing::ElementsAre(ByteRange{0, 3}, ByteRange{3, 7}, ByteRange{7, 13}));
}

TEST(Splitter, white_space_in_a_pattern_is_the_property_and_not_the_vowel_separator) {
  const auto splitter = make_splitter(R"(\s+)", Dialect::rust);
  EXPECT_THAT(splitter->all("a\xe1\xa0\x8e"), ::testing::IsEmpty());
  EXPECT_EQ(splitter->all("a \xc2\x85z").size(), 1u);
}

TEST(Splitter, a_dollar_is_the_end_of_the_text_for_rust_and_of_a_line_for_oniguruma) {
  EXPECT_EQ(make_splitter("a$", Dialect::rust)->all("a\na").size(), 1u);
  EXPECT_EQ(make_splitter("a$", Dialect::oniguruma)->all("a\na").size(), 2u);
}

TEST(Splitter, tells_of_matches_of_no_bytes_but_behind_another) {
  const auto told = [](const char* pattern, std::string_view text) {
    return make_splitter(pattern, Dialect::oniguruma, EmptyMatches::told)->all(text);
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(told("b*", "bab"), ElementsAre(ByteRange{0, 1}, ByteRange{2, 3}));
  EXPECT_THAT(told("", "\xc3\xa9z"), ElementsAre(ByteRange{0, 0}, ByteRange{2, 2}, ByteRange{3, 3}));
  EXPECT_THAT(told("$", "ab"), ElementsAre(ByteRange{2, 2}));
  EXPECT_THAT(told("(?=b)", "bab"), ElementsAre(ByteRange{0, 0}, ByteRange{2, 2}));
  EXPECT_THAT(told("", ""), ::testing::IsEmpty());
  EXPECT_THAT(make_splitter("b*", Dialect::oniguruma)->all("ba"), ElementsAre(ByteRange{0, 1}));
  for (const char* pattern : {"", "^", "b*", "(?=b)"})
    EXPECT_TRUE(may_match_nothing(pattern, Dialect::oniguruma)) << pattern;
  EXPECT_FALSE(may_match_nothing("b+", Dialect::oniguruma));
}

TEST(Splitter, refuses_a_pattern_that_is_none) {
  EXPECT_THAT([] { (void)make_splitter("a(", Dialect::rust); },
              ::testing::ThrowsMessage<Error>("pattern: 'a(': missing closing parenthesis at 2"));
  EXPECT_THAT([] { (void)make_splitter("\xff", Dialect::rust); },
              ::testing::ThrowsMessage<Error>("pattern: is not UTF-8"));
  EXPECT_THAT([] { (void)make_splitter("\\h+", Dialect::oniguruma); },
              ::testing::ThrowsMessage<Error>(
                  "pattern: \\h at 0 of '\\h+' means hexadecimal digits; write [0-9a-fA-F]"));
}

}  // namespace
}  // namespace weft
