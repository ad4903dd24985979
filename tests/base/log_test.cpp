#include "weft/base/log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "tests/support/says.h"
#include "tests/support/temporary.h"
#include "weft/base/file.h"
#include "weft/base/format.h"

using namespace weft;
using support::says;
using support::TemporaryDirectory;

namespace {

const Event loss = {
    .level = Level::warning,
    .rank = 3,
    .seconds = 1769864707.25,
    .sentence = "loss is \"not\" finite",
    .facts = {{"step", 7}, {"loss", std::nan("")}, {"where", "a\tb"}, {"skipped", true}, {"rate", 0.1}}};

Log::Options quiet(const std::string& json, Level least = Level::info) {
  return {.least = least, .console = false, .json_path = json, .now = [] { return 1.0; }};
}

}  // namespace

TEST(Event, is_a_line_with_its_time_its_rank_and_its_facts) {
  EXPECT_EQ(line_of(loss),
            "2026-01-31 13:05:07.250 [3] warning: loss is \"not\" finite (step=7, loss=nan, where=a\tb, "
            "skipped=yes, "
            "rate=0.1)");
  EXPECT_EQ(line_of({.seconds = 0.9999, .sentence = "ready"}), "1970-01-01 00:00:00.999 [0] ready");
}

TEST(Event, is_an_object_that_programs_can_read) {
  EXPECT_EQ(
      json_of(loss),
      R"({"time":1769864707.250,"rank":3,"level":"warning","event":"loss is \"not\" finite","step":7,"loss":null,)"
      R"("where":"a\tb","skipped":true,"rate":0.1})");
  const auto read = nlohmann::json::parse(json_of({.sentence = "bad byte \xff here"}));
  EXPECT_EQ(read["event"], "bad byte \xEF\xBF\xBD here");
}

TEST(Event, prints_numbers_that_give_their_bits_back) {
  for (const double x : {0.1, 1.0 / 3, 6.02214076e23, -5e-324, 3.0, std::numeric_limits<double>::max()}) {
    const auto read = nlohmann::json::parse(json_of({.facts = {{"x", x}}}));
    EXPECT_EQ(read["x"].get<double>(), x);
  }
}

TEST(Level, has_a_word_for_each) {
  EXPECT_EQ(word(Level::debug), "debug");
  EXPECT_EQ(word(Level::info), "info");
  EXPECT_EQ(word(Level::warning), "warning");
  EXPECT_EQ(word(Level::error), "error");
}

TEST(Log, writes_lines_for_people_to_standard_error) {
  testing::internal::CaptureStderr();
  const Log log(2, {.stamped = false});
  log.info("reading", {{"files", 3}});
  log.debug("not asked for");
  log.error("lost a rank");
  log.flush();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "reading (files=3)\nerror: lost a rank\n");
}

TEST(Log, stamps_lines_unless_told_otherwise) {
  testing::internal::CaptureStderr();
  Log(2, {.now = [] { return 86400.5; }}).info("ready");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "1970-01-02 00:00:00.500 [2] ready\n");
}

TEST(Log, appends_objects_to_a_file_and_drops_what_is_below_its_level) {
  const TemporaryDirectory dir;
  const std::string path = dir / "log.jsonl";
  Log(0, quiet(path, Level::warning)).warning("one");
  {
    const Log log(1, quiet(path));
    EXPECT_TRUE(log.wants(Level::info));
    EXPECT_FALSE(log.wants(Level::debug));
    log.debug("nothing");
    log.info("two", {{"x", std::int64_t{1} << 40}});
  }
  EXPECT_EQ(read_file(path),
            "{\"time\":1.000,\"rank\":0,\"level\":\"warning\",\"event\":\"one\"}\n"
            "{\"time\":1.000,\"rank\":1,\"level\":\"info\",\"event\":\"two\",\"x\":1099511627776}\n");
}

TEST(Log, has_written_a_warning_before_it_returns) {
  const TemporaryDirectory dir;
  const std::string path = dir / "log.jsonl";
  const Log log(0, quiet(path));
  log.warning("about to die");
  EXPECT_NE(read_file(path).find("about to die"), std::string::npos);
  log.info("later");
  log.flush();
  EXPECT_NE(read_file(path).find("later"), std::string::npos);
}

TEST(Log, keeps_lines_of_many_threads_whole) {
  const TemporaryDirectory dir;
  const std::string path = dir / "log.jsonl";
  {
    const Log log(0, quiet(path));
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([mine = log, thread] {
        for (int i = 0; i < 200; ++i) mine.info("step", {{"thread", thread}, {"i", i}});
      });
    }
  }
  std::set<std::pair<int, int>> seen;
  const std::string written = read_file(path);
  for (const auto line : split(trim(written), '\n')) {
    const auto event = nlohmann::json::parse(line);
    seen.emplace(event["thread"], event["i"]);
  }
  EXPECT_EQ(seen.size(), 800u);
}

TEST(Log, says_nothing_when_it_was_given_nothing) {
  testing::internal::CaptureStderr();
  const Log log;
  log.error("unheard");
  log.flush();
  EXPECT_FALSE(log.wants(Level::error));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Log, names_the_file_it_cannot_write) {
  const TemporaryDirectory dir;
  const std::string said = says([&] { Log(0, {.json_path = dir.path().string()}); });
  EXPECT_TRUE(said.starts_with("data: log: " + dir.path().string() + " cannot be written: ")) << said;
  EXPECT_NE(said.find("Is a directory"), std::string::npos) << said;
}
