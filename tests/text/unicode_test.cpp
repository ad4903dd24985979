// Unicode: reading, repairing and normalizing.
#include "weft/text/unicode.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/text/random_text.h"

namespace weft::unicode {
namespace {

TEST(Unicode, broken_bytes_become_one_replacement_for_every_maximal_part) {
  // As Python's bytes.decode("utf-8", "replace") and Rust's from_utf8_lossy.
  EXPECT_EQ(repaired("a\xff z"), "a\xef\xbf\xbd z");
  EXPECT_EQ(repaired("\xe4\xb8"), "\xef\xbf\xbd");
  EXPECT_EQ(repaired("\xe4\xb8z"), "\xef\xbf\xbdz");
  EXPECT_EQ(repaired("\xc0\x80"), "\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(repaired("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(repaired("\xf0\x9f\x99\xf0\x9f\x99\x82"), "\xef\xbf\xbd\xf0\x9f\x99\x82");
  EXPECT_EQ(repaired("\xf5\x80"), "\xef\xbf\xbd\xef\xbf\xbd");
}

RC_GTEST_PROP(Unicode, any_bytes_are_valid_once_repaired, (const std::string& bytes)) {
  const std::string text = repaired(bytes);
  RC_ASSERT(valid(text));
  if (valid(bytes)) RC_ASSERT(text == bytes);
}

RC_GTEST_PROP(Unicode, text_survives_code_points_and_back, ()) {
  const std::string text = *weft::testing::random_text();
  std::string back;
  for (const char32_t code : decoded(text)) append(back, code);
  RC_ASSERT(valid(text));
  RC_ASSERT(back == text);
  RC_ASSERT(repaired(text) == text);
}

TEST(Unicode, normal_forms_compose_decompose_and_fold_compatibility) {
  EXPECT_EQ(normalized("e\xcc\x81", Form::nfc), "\xc3\xa9");
  EXPECT_EQ(normalized("\xc3\xa9", Form::nfd), "e\xcc\x81");
  EXPECT_EQ(normalized("\xef\xac\x81", Form::nfkc), "fi");
  EXPECT_EQ(normalized("\xef\xac\x81", Form::nfc), "\xef\xac\x81");
  EXPECT_EQ(normalized("\xef\xbc\xa1\xcc\x8a", Form::nfkd), "A\xcc\x8a");
  EXPECT_EQ(normalized("", Form::nfkd), "");
}

TEST(Unicode, a_vowel_separator_is_no_white_space) {
  EXPECT_FALSE(is_space(0x180e));
  EXPECT_TRUE(is_space(0x85));
  EXPECT_FALSE(is_space(0x1c));
}

TEST(Unicode, classes_agree_with_the_functions_for_every_code_point) {
  const Classes classes;
  for (char32_t code = 0; code < 0x110000; ++code) {
    const auto bits = classes.of(code);
    ASSERT_EQ((bits & Classes::letter) != 0, is_letter(code)) << std::hex << static_cast<unsigned>(code);
    ASSERT_EQ((bits & Classes::number) != 0, is_number(code)) << std::hex << static_cast<unsigned>(code);
    ASSERT_EQ((bits & Classes::space) != 0, is_space(code)) << std::hex << static_cast<unsigned>(code);
  }
}

TEST(Unicode, a_dotted_capital_i_is_two_code_points_in_lower_case) {
  std::string out;
  append_lower(out, 0x130);
  append_lower(out, 'Q');
  append_lower(out, 0x3a3);
  EXPECT_EQ(out, "i\xcc\x87q\xcf\x83");
}

}  // namespace
}  // namespace weft::unicode
