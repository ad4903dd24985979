// docs/flags.md against the program: every value of every flag, as a reader of the page would try it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/cli/told.h"
#include "tests/support/source_dir.h"
#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/cli/dialect.h"

using namespace weft;
using namespace weft::cli;
using testing::HasSubstr;

namespace {

struct Line {
  std::string flag, treatment, text;
  std::vector<std::string> values;  // that the page lists; a placeholder such as N is none
  bool takes_a_value = false;
};

/// "| `--flag a\|b` | honored | text |"
Line read_line(const std::string& from) {
  const std::string mark = "` | ";
  const auto end = from.find(mark), next = from.find(" | ", end + mark.size());
  std::string head = from.substr(5, end - 5);
  Line line{.treatment = from.substr(end + mark.size(), next - end - mark.size()),
            .text = from.substr(next + 3, from.size() - next - 5)};
  const auto space = head.find(' ');
  line.flag = head.substr(0, space);
  line.takes_a_value = space != std::string::npos;
  if (!line.takes_a_value) return line;
  std::string listed = head.substr(space + 1);
  for (std::size_t at = 0; (at = listed.find("\\|", at)) != std::string::npos;) listed.erase(at, 1);
  for (const std::string_view value : split(listed, '|'))
    if (std::any_of(value.begin(), value.end(), [](char c) { return c >= 'a' && c <= 'z'; }) ||
        value.find_first_of("0123456789") != std::string_view::npos)
      line.values.emplace_back(value);
  return line;
}

std::vector<Line> page() {
  std::ifstream in(WEFT_SOURCE_DIR "/docs/flags.md");
  std::vector<Line> out;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("## Rules of Megatron-LM")) break;
    if (line.starts_with("| `--")) out.push_back(read_line(line));
  }
  return out;
}

/// What the reader of a command line says to the flag alone: a refusal, notices, or nothing.
std::string said_to(const std::string& flag, const std::string& value) {
  const std::string word = value.empty() ? text("--", flag) : text("--", flag, "=", value);
  const std::vector<std::string_view> words = {word};
  try {
    const auto command = read_command(words);
    return join(command->notices, "");
  } catch (const Error& e) {
    return e.what();
  }
}

/// "x refused: reason; y refused: reason: help" as pairs.
std::vector<std::pair<std::string, std::string>> refusals(const Line& line) {
  std::vector<std::pair<std::string, std::string>> out;
  const std::string mark = " refused: ";
  for (std::size_t at = 0; (at = line.text.find(mark, at)) != std::string::npos; at += mark.size()) {
    const auto word = line.text.find_last_of(' ', at - 1) + 1;
    const auto reason = at + mark.size(),
               end = std::min(line.text.find_first_of(";:", reason), line.text.size());
    out.emplace_back(line.text.substr(word, at - word), line.text.substr(reason, end - reason));
  }
  return out;
}

}  // namespace

TEST(Page, lists_values_that_the_program_takes) {
  int tried = 0;
  for (const Line& line : page()) {
    if (line.treatment != "honored") continue;
    if (!line.takes_a_value) {
      EXPECT_EQ(said_to(line.flag, ""), "") << line.flag;
    }
    for (const std::string& value : line.values) {
      EXPECT_EQ(said_to(line.flag, value), "") << line.flag << " " << value;
      ++tried;
    }
  }
  EXPECT_GT(tried, 60);
}

TEST(Page, says_which_values_are_refused_and_why) {
  int tried = 0;
  for (const Line& line : page())
    for (const auto& [value, reason] : refusals(line)) {
      const std::string word = value == "values" ? "nothing-of-the-kind" : value;
      EXPECT_THAT(said_to(line.flag, word), HasSubstr(text("weft cannot do this yet: ", reason)))
          << line.flag;
      ++tried;
    }
  EXPECT_GT(tried, 17);
}

TEST(Page, says_what_becomes_of_every_other_flag) {
  for (const Line& line : page()) {
    const std::string bare = said_to(line.flag, ""),
                      said = bare.find("needs ") != std::string::npos ? said_to(line.flag, "1") : bare;
    if (line.treatment == "no effect here") {
      EXPECT_EQ(said, text("no effect here: --", line.flag, " (", line.text, ")"));
    } else if (line.treatment == "refused" || line.treatment == "foreign") {
      EXPECT_EQ(said, text("weft cannot do this yet: ", line.text, ": --", line.flag));
    } else if (line.treatment == "gone") {
      EXPECT_THAT(said, HasSubstr("is gone from Megatron-LM"));
    }
  }
}
