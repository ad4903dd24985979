// Jinja, a construct each: what transformers' own environment makes of it lies in
// tests/golden/text/jinja.json.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/source_dir.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/text/chat.h"

namespace weft {
namespace {

using ::testing::ThrowsMessage;
using Json = nlohmann::ordered_json;

const Json& jinja_golden() {
  static const Json all = Json::parse(read_file(WEFT_SOURCE_DIR "/tests/golden/text/jinja.json"));
  return all;
}

ChatTemplate jinja_of(const std::string& jinja) {
  return ChatTemplate({.jinja = jinja, .tokens = {{"bos_token", "<s>"}}, .name = "t"});
}

std::string jinja_text(const std::string& jinja, const ChatOptions& options = {}) {
  return jinja_of(jinja).write(jinja_golden()["messages"], options).text;
}

auto jinja_refusal(const std::string& jinja, const ChatOptions& options = {}) {
  return [jinja, options] { (void)jinja_text(jinja, options); };
}

TEST(Jinja, every_construct_writes_what_transformers_writes) {
  for (const Json& one : jinja_golden()["cases"])
    EXPECT_EQ(jinja_text(one["template"].get<std::string>()), one["text"].get<std::string>())
        << one["name"] << ": " << one["template"];
}

TEST(Jinja, line_ends_of_other_systems_are_line_ends) {
  EXPECT_EQ(jinja_text("a\r\nb\rc\r\n"), "a\nb\nc");
  EXPECT_EQ(jinja_text("{% if true %}\r\nx{% endif %}"), "x");
}

TEST(Jinja, a_clock_that_was_given_is_the_clock) {
  const ChatOptions options{.now = 1722000000};
  EXPECT_EQ(jinja_text("{{ strftime_now('%d %b %Y %H:%M:%S %A %j %%') }}", options),
            "26 Jul 2024 13:20:00 Friday 208 %");
  EXPECT_THAT(jinja_text("{{ strftime_now('%Y') }}"), ::testing::MatchesRegex("2[0-9][0-9][0-9]"));
}

TEST(Jinja, answers_are_bytes_of_the_text_in_the_order_of_writing) {
  const ChatText written =
      jinja_of(
          "é{% generation %}ü{% endgeneration %}"
          "{% for m in messages %}-{% generation %}{{ m.role }}{% endgeneration %}{% endfor %}")
          .write(jinja_golden()["messages"]);
  std::vector<std::string> parts;
  for (const ByteRange& one : written.answers)
    parts.push_back(written.text.substr(one.begin, one.end - one.begin));
  EXPECT_EQ(written.text, "éü-system-user-assistant");
  EXPECT_THAT(parts, ::testing::ElementsAre("ü", "system", "user", "assistant"));
}

TEST(Jinja, many_threads_write_by_one_template) {
  const ChatTemplate chat = jinja_of(
      "{% set ns = namespace(n=0) %}{% for i in range(200) %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n "
      "}}");
  std::vector<std::string> said(8);
  std::vector<std::thread> threads;
  for (std::string& one : said)
    threads.emplace_back([&one, &chat] { one = chat.write(jinja_golden()["messages"]).text; });
  for (std::thread& one : threads) one.join();
  EXPECT_THAT(said, ::testing::Each(::testing::Eq("19900")));
}

// What is refused when a template is read, and when it is run; both say where.
TEST(Jinja, what_is_no_template_is_refused_with_its_line) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"a\n{% if true %}",
       "t: line 2: the template ends where {% elif %} or {% else %} or {% endif %} was expected"},
      {"{% frob %}", "t: line 1: expected a tag that Jinja has, found 'frob'"},
      {"\n{% include 'x' %}", "t: line 2: weft has no {% include %}"},
      {"{% block x %}", "t: line 1: weft has no {% block %}"},
      {"{% for x in y recursive %}", "t: line 1: weft has no loop that is recursive"},
      {"{% break %}", "t: line 1: {% break %} outside of a loop"},
      {"{% for x in y %}{% macro m() %}{% continue %}", "t: line 1: {% continue %} outside of a loop"},
      {"{{ 1 + }}", "t: line 1: expected a value, found }}"},
      {"{{ a b }}", "t: line 1: expected }}, found 'b'"},
      {"{{ (1 }}", "t: line 1: '}' where ')' was expected"},
      {"{{ 1 ] }}", "t: line 1: ']' closes nothing"},
      {"{{ 'a }}", "t: line 1: a text has no end '"},
      {"{{ a", "t: line 1: a tag has no end }}"},
      {"{# a", "t: line 1: a comment has no end #}"},
      {"{% raw %}a", "t: line 1: raw has no endraw"},
      {"{{ a ! b }}", "t: line 1: '!' is nothing that Jinja has here"},
      {"{{ 0x1f }}", "t: line 1: '0x1f' is no number that weft reads"},
      {"{{ 9999999999999999999 }}", "t: line 1: 9999999999999999999 is beyond 64 bits"},
      {"{{ '\\N{DASH}' }}", "t: line 1: weft knows no \\N{…} in a text"},
      {"{{ '\\ud800' }}", "t: line 1: '\\d800' in a text is no character"},
      {"{{ f(a=1, 2) }}", "t: line 1: an argument without a name stands behind one that has one"},
      {"{{ 1 is odd is even }}", "t: line 1: two tests stand behind each other"},
      {"{% set true = 1 %}", "t: line 1: 'true' cannot be set"},
      {"{% set 1 = 1 %}", "t: line 1: expected a name to set, found '1'"},
      {"{% macro m(a=1, b) %}", "t: line 1: 'b' needs a value, as the parameter before it has one"},
      {"{% call 1 %}", "t: line 1: {% call %} without a call"},
      {"{% print 1, 2 %}", "t: line 1: weft has no {% print %} with a comma"},
      {"\xff", "t: is no UTF-8"}};
  for (const auto& [jinja, sentence] : cases)
    EXPECT_THAT(jinja_refusal(jinja), ThrowsMessage<Error>(sentence)) << jinja;
}

TEST(Jinja, what_cannot_be_run_is_refused_with_its_line) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"a\n{{ raise_exception('Roles must alternate') }}",
       "t: line 2: the template refuses this conversation: Roles must alternate"},
      {"{{ missing.x }}", "t: line 1: 'missing' is undefined"},
      {"{{ messages[0].x.y }}", "t: line 1: a dict has no 'x'"},
      {"{{ missing + 1 }}", "t: line 1: 'missing' is undefined"},
      {"{{ missing() }}", "t: line 1: 'missing' is undefined"},
      {"{{ 'a' + 1 }}", "t: line 1: '+' does not go between a text and a whole number"},
      {"{{ 1 < 'a' }}", "t: line 1: a whole number and a text have no order"},
      {"{{ 1 / 0 }}", "t: line 1: division by zero"},
      {"{{ 2 ** 64 }}", "t: line 1: a whole number outgrows 64 bits"},
      {"{{ 9223372036854775807 + 1 }}", "t: line 1: a whole number outgrows 64 bits"},
      {"{{ 1 in 'a' }}", "t: line 1: a text holds texts, and no whole number"},
      {"{{ 1 in none }}", "t: line 1: none holds nothing that 'in' could find"},
      {"{{ -'a' }}", "t: line 1: '-' does not go before a text"},
      {"{{ messages[0][1:] }}", "t: line 1: a dict has no part [from:to]"},
      {"{{ 'ab'[::0] }}", "t: line 1: a slice's step is 0"},
      {"{% set l = [] %}{{ l.append(1) }}",
       "t: line 1: a list cannot be changed: templates have no 'append'"},
      {"{{ {}.update({}) }}", "t: line 1: a dict cannot be changed: templates have no 'update'"},
      {"{{ 'a'.encode() }}", "t: line 1: weft has no 'encode' of a text"},
      {"{{ 1 | pprint }}", "t: line 1: weft knows no filter 'pprint'"},
      {"{{ 1 is foo }}", "t: line 1: weft knows no test 'foo'"},
      {"{{ [1] | map('foo') | list }}", "t: line 1: weft knows no filter 'foo'"},
      {"{{ 'a' | trim(1) }}", "t: line 1: trim: 'chars' is a whole number, expected a text"},
      {"{{ 'a' | replace('a') }}", "t: line 1: replace was not given its 'new'"},
      {"{{ 'a' | upper(1) }}", "t: line 1: upper takes 0 arguments and was given 1"},
      {"{{ 'a'.strip(x=1) }}", "t: line 1: strip takes no argument 'x'"},
      {"{% for x in 1 %}{% endfor %}", "t: line 1: a whole number cannot be walked over"},
      {"{% for a, b in [1] %}{% endfor %}", "t: line 1: a whole number cannot be walked over"},
      {"{% set a, b = [1] %}", "t: line 1: a list of 1 is taken apart to 2 names"},
      {"{% set x = 1 %}{% set x.a = 1 %}",
       "t: line 1: 'x' is a whole number, and only parts of a namespace can be set"},
      {"{% set n = namespace(_a=1) %}",
       "t: line 1: a namespace takes no '_a': names with _ in front are Python's own"},
      {"{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}",
       "t: line 1: the macro 'm' takes 1 arguments and was given 2"},
      {"{% macro m(a) %}{% endmacro %}{{ m(b=2) }}", "t: line 1: the macro 'm' takes no argument 'b'"},
      {"{% for x in [1] %}{{ loop.changed(x) }}{% endfor %}", "t: line 1: weft has no loop.changed"},
      {"{{ range(1000000) }}", "t: line 1: range: more than 100000 numbers"},
      {"{{ missing | tojson }}", "t: line 1: tojson: something undefined is nothing that JSON has"},
      {"{{ [1] | select }}", "t: line 1: a stream cannot be printed; the filter list makes a list"},
      {"{{ strftime_now('%f') }}", "t: line 1: strftime_now: weft knows no '%f'"},
      {"{{ '%q' % 1 }}", "t: line 1: weft formats nothing as 'q'"},
      {"{{ '%s %s' % 1 }}", "t: line 1: format: too few values"},
      {"{{ {[]: 1} }}", "t: line 1: a list cannot be a key"}};
  for (const auto& [jinja, sentence] : cases)
    EXPECT_THAT(jinja_refusal(jinja), ThrowsMessage<Error>(sentence)) << jinja;
}

TEST(Jinja, no_template_goes_on_or_grows_without_end) {
  const ChatOptions little{.work = 100000};
  EXPECT_THAT(
      jinja_refusal("{% for a in range(1000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}", little),
      ThrowsMessage<Error>("t: line 1: the template does more than 100000 steps"));
  EXPECT_THAT(jinja_refusal("{{ 'a' * 1000000000000 }}", little),
              ThrowsMessage<Error>("t: line 1: the template does more than 100000 steps"));
  EXPECT_THAT(jinja_refusal("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
              ThrowsMessage<Error>("t: line 1: macros call each other deeper than 1000 steps"));
  EXPECT_THAT(jinja_refusal(
                  "{% set n = namespace(x=[]) %}{% for i in range(200) %}{% set n.x = [n.x] %}{% endfor %}"),
              ThrowsMessage<Error>("t: line 1: lists nest deeper than 100 levels"));
  EXPECT_THAT(jinja_refusal("{{ " + std::string(1000, '(') + "1" + std::string(1000, ')') + " }}"),
              ThrowsMessage<Error>("t: line 1: the template nests deeper than 150 levels"));
  std::string sum = "1";
  for (int k = 0; k < 1000; ++k) sum += " + 1";
  EXPECT_THAT(jinja_refusal("{{ " + sum + " }}"),
              ThrowsMessage<Error>("t: line 1: an expression nests deeper than 150 levels"));
}

}  // namespace
}  // namespace weft
