#include "weft/base/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/base/error.h"

using namespace weft;
using testing::ElementsAre;
using testing::ThrowsMessage;

namespace {

const std::vector<Flag> known = {{"num-layers"},
                                 {"num-experts"},
                                 {"lr"},
                                 {"lr-decay-style"},
                                 {"use-checkpoint-opt_param-scheduler", Arity::none},
                                 {"data-path", Arity::any},
                                 {"profile-ranks", Arity::some},
                                 {"window-size", Arity::two},
                                 {"config", Arity::maybe_one}};

Split split(std::vector<std::string_view> words) { return split_flags(known, words); }

void refused(std::vector<std::string_view> words, const std::string& sentence) {
  EXPECT_THAT([&] { split(words); }, ThrowsMessage<Error>(sentence));
}

struct Mill {
  int wheel_count = 2;
  bool turning = true;
  std::vector<std::string> flour;
};
template <class Visitor>
void describe(Visitor& v, Mill& c) {
  v("wheel_count", c.wheel_count, "wheels in the stream");
  v("turning", c.turning, "let it turn");
  v("flour", c.flour, "what to grind");
}

}  // namespace

TEST(Flags, take_a_value_after_a_space_or_an_equals_sign) {
  EXPECT_THAT(split({"--num-layers", "12"}).flags[0].words, ElementsAre("12"));
  EXPECT_THAT(split({"--num-layers=12"}).flags[0].words, ElementsAre("12"));
  EXPECT_THAT(split({"--lr="}).flags[0].words, ElementsAre(""));
}

TEST(Flags, are_the_same_with_underscores_and_dashes) {
  EXPECT_EQ(split({"--num_layers", "12"}).flags[0].flag, 0u);
  EXPECT_EQ(split({"--use-checkpoint-opt-param-scheduler"}).flags[0].flag, 4u);
  EXPECT_EQ(split({"--use-checkpoint-opt_param-scheduler"}).flags[0].flag, 4u);
}

TEST(Flags, may_be_cut_short_where_one_is_meant) {
  EXPECT_EQ(split({"--num-l", "12"}).flags[0].flag, 0u);
  EXPECT_EQ(split({"--lr", "1"}).flags[0].flag, 2u);  // a whole name, though another begins with it
  refused({"--num", "12"}, "--num may mean --num-layers, --num-experts");
}

TEST(Flags, never_take_a_number_for_a_flag) {
  EXPECT_THAT(split({"--lr", "-1e-5"}).flags[0].words, ElementsAre("-1e-5"));
  EXPECT_THAT(split({"--window-size", "-1", "-1"}).flags[0].words, ElementsAre("-1", "-1"));
  EXPECT_THAT(split({"--lr", "-5,0"}).flags[0].words, ElementsAre("-5,0"));
  refused({"--lr", "-dir"}, "--lr needs a value, found -dir, which looks like a flag: write --lr=-dir");
}

TEST(Flags, take_as_many_words_as_their_kind_says) {
  EXPECT_THAT(split({"--data-path", "0.3", "a", "0.7", "b", "--lr", "1"}).flags[0].words,
              ElementsAre("0.3", "a", "0.7", "b"));
  EXPECT_TRUE(split({"--data-path"}).flags[0].words.empty());
  EXPECT_TRUE(split({"--config"}).flags[0].words.empty());
  refused({"--lr"}, "--lr needs a value, found the end of the line");
  refused({"--profile-ranks", "--lr", "1"}, "--profile-ranks needs at least one value, found the flag --lr");
  refused({"--window-size", "127"}, "--window-size needs two values, found 1");
  refused({"--use-checkpoint-opt_param-scheduler=1"},
          "--use-checkpoint-opt_param-scheduler is a switch and takes no value, found =1");
}

TEST(Flags, offer_the_nearest_name_for_a_slip) {
  refused({"--num-layesr", "12"}, "--num-layesr is not a flag, did you mean --num-layers");
  refused({"--quite-another-thing"}, "--quite-another-thing is not a flag");
}

TEST(Flags, leave_other_words_and_everything_after_two_dashes) {
  const Split s = split({"gpt", "--lr", "1", "more", "--", "--lr"});
  EXPECT_THAT(s.others, ElementsAre("gpt", "more", "--lr"));
  EXPECT_EQ(s.flags.size(), 1u);
}

TEST(Flags, are_made_from_fields_with_a_twin_for_no) {
  Mill mill;
  Fields fields(mill);
  const std::vector<std::string_view> words = {"grind", "--wheel_count=5", "--no-turning", "--flour", "rye",
                                               "oat"};
  EXPECT_THAT(read_flags(fields, words), ElementsAre("grind"));
  EXPECT_EQ(mill.wheel_count, 5);
  EXPECT_FALSE(mill.turning);
  EXPECT_THAT(mill.flour, ElementsAre("rye", "oat"));
}

TEST(Flags, name_the_flag_whose_value_is_wrong) {
  Mill mill;
  Fields fields(mill);
  const std::vector<std::string_view> words = {"--wheel-count", "x"};
  EXPECT_THAT([&] { read_flags(fields, words); },
              ThrowsMessage<Error>("--wheel-count: 'x' is not a whole number"));
}

TEST(Flags, make_help_from_the_same_list) {
  Mill mill;
  Fields fields(mill);
  EXPECT_EQ(flag_of(fields.at("wheel_count")), "--wheel-count");
  EXPECT_EQ(value_name(fields.at("wheel_count")), "N");
  EXPECT_EQ(value_name(fields.at("turning")), "");
  EXPECT_EQ(value_name(fields.at("flour")), "TEXT ...");
  EXPECT_EQ(help_with_default(fields.at("wheel_count")), "wheels in the stream (default 2)");
}
