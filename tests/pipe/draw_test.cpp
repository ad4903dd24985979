// Pictures of schedules.
#include "weft/pipe/draw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/pipe/choose.h"

using namespace weft::pipe;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

std::string drawn(const Schedule& s, const DrawOptions& options = {}, const Costs& costs = {}) {
  return draw_text(s, rehearse(with_transfers(s), costs), options);
}

}  // namespace

TEST(Draw, shows_what_every_rank_does_when) {
  EXPECT_EQ(drawn(one_f_one_b(2, 3)),
            "time    0              5              10\n"
            "rank 0  F0 F1 ·  ·  B0─── F2 B1─── ·  B2───\n"
            "rank 1  ·  F0 B0─── F1 B1─── F2 B2─── ·  ·\n");
}

TEST(Draw, names_halves_and_the_stage_where_a_rank_holds_several) {
  EXPECT_EQ(drawn(zero_bubble_v(2, 2)),
            "time    0                   5                   10\n"
            "rank 0  F0a F1a ·   F0b I0b W0b F1b I1b W1b I0a W0a ·   I1a W1a\n"
            "rank 1  ·   F0a F0b F1a F1b I0b W0b I0a W0a I1b W1b I1a W1a ·\n");
}

TEST(Draw, goes_on_below_where_a_picture_is_too_long) {
  EXPECT_EQ(drawn(one_f_one_b(1, 3), {.columns = 23}),
            "time    0\n"
            "rank 0  F0 B0─── F1 B1\n"
            "\n"
            "time    5\n"
            "rank 0  ── F2 B2───\n");
}

TEST(Draw, draws_costs_to_scale_with_no_wasted_columns) {
  EXPECT_EQ(drawn(one_f_one_b(1, 2), {}, {.forward = 4, .backward_input = 2, .backward_weight = 2}),
            "time    0\nrank 0  F0 B0 F1 B1\n");
}

TEST(Draw, paints_for_a_terminal) {
  const std::string picture = drawn(one_f_one_b(1, 1), {.paint = Paint::colored});
  EXPECT_THAT(picture, HasSubstr("\033[30;44mF0\033[0m"));
  EXPECT_THAT(picture, HasSubstr("\033[30;42mB0   \033[0m"));
}

TEST(Draw, makes_a_picture_with_a_legend_of_what_occurs) {
  const Schedule s = zero_bubble_h1(2, 2);
  const std::string picture = draw_svg(s, rehearse(with_transfers(s)));
  EXPECT_THAT(picture, HasSubstr("zb-h1: 2 ranks, 2 microbatches, 14.3 % bubble"));
  EXPECT_THAT(picture, HasSubstr("input gradient"));
  EXPECT_THAT(picture, Not(HasSubstr(">backward<")));
  EXPECT_THAT(picture, HasSubstr("</svg>"));
}
