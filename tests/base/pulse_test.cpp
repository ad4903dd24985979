#include "weft/base/pulse.h"

#include <gtest/gtest.h>

#include "tests/support/says.h"
#include "tests/support/temporary.h"
#include "weft/base/error.h"

using namespace weft;

TEST(Pulse, is_read_from_another_mapping_of_its_board) {
  const support::TemporaryDirectory folder;
  const PulseBoard board = PulseBoard::make(folder / "pulse");
  EXPECT_TRUE(board.read().empty());
  const PulseBoard worker = PulseBoard::open(folder / "pulse");
  Pulse pulse = worker.pulse(3);
  pulse.begin(11, 2);
  const int seat = pulse.sits_in(77, 1, 4);
  pulse.enter(Section::saving);
  pulse.spoke(seat);
  pulse.waits({.word = Spoken::all_gather, .circle = seat, .number = 0});
  const auto read = board.read();
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].rank, 11);
  EXPECT_EQ(read[0].kin, 2);
  EXPECT_EQ(read[0].section, Section::saving);
  EXPECT_EQ(read[0].word, Spoken::all_gather);
  ASSERT_EQ(read[0].circles.size(), 1u);
  EXPECT_EQ(read[0].circles[0].id, 77u);
  EXPECT_EQ(read[0].circles[0].words, 1u);
  EXPECT_EQ(read[0].circles[0].place, 1);
}

TEST(Pulse, is_not_written_on_another_wefts_board) {
  const support::TemporaryDirectory folder;
  const std::string file = folder / "pulse";
  { const PulseBoard board = PulseBoard::make(file); }
  std::filesystem::resize_file(file, 4096);
  const std::string sentence = support::says([&] { static_cast<void>(PulseBoard::open(file)); });
  EXPECT_TRUE(sentence.starts_with("usage: " + file + " has 4096 bytes, and ")) << sentence;
  EXPECT_TRUE(
      sentence.ends_with(" were expected: weft was replaced while its launcher ran; start the job again"))
      << sentence;
}

TEST(Pulse, counts_work_without_waiting_once_the_first_steps_are_over) {
  PulseLines lines{};
  Pulse pulse(&lines);
  pulse.begin(0, 0);
  for (int step = 1; step <= 4; ++step) {
    pulse.begin_step(step);
    { const Waiting waiting(&pulse, {.word = Spoken::barrier}); }
    pulse.end_step();
  }
  EXPECT_EQ(lines.steps_done, 2);
  EXPECT_EQ(lines.step, 4);
  EXPECT_GT(lines.longest_step, 0u);
  EXPECT_LT(lines.worked, 2 * lines.longest_step);
}

TEST(Pulse, remembers_how_often_and_how_long_it_was_in_a_section) {
  PulseLines lines{};
  Pulse pulse(&lines);
  for (int step = 1; step <= 3; ++step) {
    pulse.begin_step(step);
    pulse.end_step();
    pulse.enter(Section::saving);
  }
  const auto saving = std::size_t(Section::saving);
  EXPECT_EQ(lines.left[saving], 2u);
  EXPECT_GT(lines.longest_in[saving], 0u);
  EXPECT_EQ(lines.left[std::size_t(Section::training)], 3u);
}

TEST(Pulse, nobody_watches_where_there_are_no_lines) {
  Pulse pulse;
  pulse.begin(0, 0);
  pulse.begin_step(1);
  pulse.end_step();
  EXPECT_EQ(pulse.sits_in(1, 0, 2), -1);
  const Waiting waiting(&pulse, {.word = Spoken::barrier});
}

TEST(Pulse, a_circle_too_many_is_forgotten) {
  PulseLines lines{};
  Pulse pulse(&lines);
  for (std::size_t i = 0; i < PulseLines::most_circles; ++i) EXPECT_EQ(pulse.sits_in(i, 0, 2), int(i));
  EXPECT_EQ(pulse.sits_in(99, 0, 2), -1);
  pulse.spoke(-1);
  EXPECT_EQ(lines.circles, PulseLines::most_circles);
}

TEST(Pulse, a_board_that_is_not_there_is_said) {
  const support::TemporaryDirectory folder;
  EXPECT_THROW(PulseBoard::open(folder / "none"), Error);
}
