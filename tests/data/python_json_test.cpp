// Lines that Python's json and simdjson judge differently; what is expected here Python 3.11 gave.
#include "weft/data/python_json.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <nlohmann/json.hpp>

#include "tests/data/refusal.h"
#include "weft/data/json_texts.h"

using namespace weft;
using namespace weft::data;

namespace {

const std::string nothing = "(nothing)";

// The text that a line gives, by the strict way and the one that Python goes.
std::string read_line(std::string_view line) {
  JsonTexts reader({"text"});
  const auto& texts = reader.read(line)[0];
  return texts.empty() ? nothing : std::string(texts.front());
}
std::string read_as_python(std::string_view line) {
  const auto texts = texts_as_python_reads(line, {"text"})[0];
  return texts.empty() ? nothing : texts.front();
}
std::string refused_line(std::string_view line) {
  return refusal([&] { (void)read_line(line); });
}

}  // namespace

TEST(PythonJson, of_a_key_given_twice_the_last_counts) {
  for (const auto read : {read_line, read_as_python}) {
    EXPECT_EQ(read(R"({"text":"a","text":"b"})"), "b");
    EXPECT_EQ(read(R"({"text":5,"te\u0078t":"b"})"), "b");
    EXPECT_EQ(read(R"({"text":"a","text":[]})"), nothing);
  }
  EXPECT_EQ(refused_line(R"({"text":"a","text":5})"), "key \"text\" is neither a text nor a list of texts");
}

TEST(PythonJson, lets_pass_what_python_lets_pass_beside_the_text) {
  for (const char* value :
       {"NaN", "Infinity", "-Infinity", "1e999", "-1E-999", "123456789012345678901234567890", R"("\ud800")",
        R"("\udc00x")", R"({"\ud800": [NaN]})", R"(["\ud83d", {"a": 1}])"}) {
    EXPECT_EQ(read_line(text(R"({"s":)", value, R"(,"text":"a"})")), "a") << value;
    EXPECT_EQ(read_line(text(R"({"text":"a","s":)", value, "}")), "a") << value;
  }
  EXPECT_EQ(read_line(R"({"\udc00":"","text":["a", "b"]})"), "a");
  EXPECT_EQ(read_line("{\"s\":NaN,\"text\":\r\"a\"}\r"), "a");
  EXPECT_EQ(read_line("{\"s\":" + std::string(900, '[') + std::string(900, ']') + ",\"text\":\"a\"}"), "a");
}

TEST(PythonJson, reads_every_escape) {
  const std::string line = R"({"s":NaN,"text":"\/\b\f\n\r\t\"\\\u00e9\u20ac\ud83d\ude00\u0000"})";
  EXPECT_EQ(read_line(line), std::string("/\b\f\n\r\t\"\\\u00e9\u20ac\U0001F600\0", 18));
}

TEST(PythonJson, says_of_half_a_surrogate_pair_that_it_is_no_character) {
  for (const char* line :
       {R"({"text":"\ud800"})", R"({"text":"\udc00"})", R"({"text":"\ud800x"})", R"({"text":"\ud800\u0041"})",
        R"({"text":"a\ud800\ud83d\ude00"})", R"({"text":["a","\ude00\ud83d"]})"})
    EXPECT_EQ(refused_line(line),
              "key \"text\" holds half of a surrogate pair (\\ud800 to \\udfff), which is no character")
        << line;
}

TEST(PythonJson, says_where_a_line_stops_being_json) {
  EXPECT_EQ(refused_line("  "), "not JSON: a blank line, expected an object");
  EXPECT_EQ(refused_line("\xEF\xBB\xBF{\"text\":\"a\"}"),
            "not JSON: begins with a byte-order mark; write the file without one");
  EXPECT_EQ(refused_line("{\"text\":\"a\xff\"}"), "not JSON: not UTF-8");
  const std::vector<std::pair<const char*, const char*>> wrong{
      {R"({"text":"a"}x)", "13: expected nothing behind the value"},
      {"{\"text\":\"a\x01\"}", "11: expected no control character within a text"},
      {R"({"text":"a",})", "13: expected a name in quotes"},
      {R"({"text":"a","s":01})", "18: expected ',' or '}'"},
      {R"({"text":"a","s":-})", "17: expected a value"},
      {R"({"text":"a","s":1.})", "18: expected ',' or '}'"},
      {R"({"text":"a","s":-NaN})", "17: expected a value"},
      {R"({"text":"a","s":tru})", "17: expected a value"},
      {R"({"text" "a"})", "9: expected ':'"},
      {R"({"text":"a")", "12: expected ',' or '}'"},
      {R"({"text":"a)", "9: expected an end of the text that begins here"},
      {R"({"text":["a" "b"]})", "14: expected ',' or ']'"},
      {R"({"text":"\x"})", "10: expected one of \" \\ / b f n r t u behind the backslash"},
      {R"({"text":"\u004"})", "10: expected four hexadecimal digits behind \\u"}};
  for (const auto& [line, sentence] : wrong)
    EXPECT_EQ(refused_line(line), text("not JSON: column ", sentence)) << line;
  EXPECT_EQ(refused_line("{\"text\":\"a\",\"s\":" + std::string(100000, '[')),
            "not JSON: nested more than 1000 levels deep");
}

TEST(PythonJson, agrees_with_simdjson_where_both_read) {
  EXPECT_TRUE(rc::check([] {
    nlohmann::json object{{"s", {1.5, nullptr, true, {{"b", "c"}}}}};
    object["text"] = *rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127));
    const std::string line = object.dump(*rc::gen::inRange(-1, 3));
    RC_ASSERT(read_line(line) == read_as_python(line));
  }));
}
