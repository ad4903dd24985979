// How a model is cut along its depth.
#include "weft/model/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/refused.h"

using namespace weft;
using ::testing::ElementsAre;

namespace {

std::vector<int> counts(int layers, const StageCut& cut) {
  std::vector<int> out;
  for (const StagePart& part : cut_stages(layers, cut)) out.push_back(part.layers);
  return out;
}

std::string no(int layers, const StageCut& cut) {
  return refused([&] { (void)cut_stages(layers, cut); });
}

}  // namespace

TEST(Partition, gives_every_stage_the_layers_after_those_of_the_one_before) {
  EXPECT_THAT(
      cut_stages(6, {.ranks = 3}),
      ElementsAre(StagePart{0, 2, true, false}, StagePart{2, 2, false, false}, StagePart{4, 2, false, true}));
  EXPECT_THAT(cut_stages(4, {}), ElementsAre(StagePart{0, 4, true, true}));
  EXPECT_THAT(counts(8, {.ranks = 2, .chunks = 2}), ElementsAre(2, 2, 2, 2));
}

TEST(Partition, counts_embedding_and_output_as_layers) {
  EXPECT_THAT(counts(7, {.ranks = 4, .count_embedding = true}), ElementsAre(1, 2, 2, 2));
  EXPECT_THAT(counts(6, {.ranks = 4, .count_embedding = true, .count_loss = true}), ElementsAre(1, 2, 2, 1));
  EXPECT_THAT(counts(6, {.ranks = 2, .chunks = 2, .count_embedding = true, .count_loss = true}),
              ElementsAre(1, 2, 2, 1));
  EXPECT_EQ(no(8, {.ranks = 4, .count_loss = true}),
            "9 layers, embedding and output counted, cannot be shared evenly by 4 pipeline stages; "
            "{parallel.first_stage_layers} and {parallel.last_stage_layers} cut them unevenly");
}

TEST(Partition, gives_first_and_last_rank_other_numbers) {
  EXPECT_THAT(counts(10, {.ranks = 4, .first_layers = 1, .last_layers = 3}), ElementsAre(1, 3, 3, 3));
  EXPECT_THAT(counts(7, {.ranks = 3, .first_layers = 1}), ElementsAre(1, 3, 3));
  EXPECT_THAT(counts(5, {.ranks = 2, .first_layers = 2, .last_layers = 3}), ElementsAre(2, 3));
  EXPECT_THAT(counts(12, {.ranks = 3, .chunks = 2, .first_layers = 2, .last_layers = 4}),
              ElementsAre(1, 3, 2, 1, 3, 2));
  EXPECT_EQ(no(10, {.ranks = 4, .first_layers = 1, .last_layers = 2}),
            "of 10 layers, 1 on the first and 2 on the last of 4 pipeline ranks leave 7 that 2 others cannot "
            "share evenly");
  EXPECT_EQ(no(5, {.ranks = 2, .first_layers = 2, .last_layers = 2}),
            "of 5 layers, 2 on the first and 2 on the last of 2 pipeline ranks leave 1 that 0 others cannot "
            "share evenly");
  EXPECT_EQ(no(7, {.ranks = 3, .chunks = 2, .first_layers = 1}),
            "1 layers of pipeline rank 0 cannot be shared by 2 virtual stages");
  EXPECT_EQ(no(7, {.ranks = 3, .first_layers = 1, .count_loss = true}),
            "an uneven first or last stage says how many layers stand there: leave "
            "{parallel.count_embedding} and {parallel.count_loss} out");
}

TEST(Partition, reads_layouts) {
  const auto laid = [](int layers, int ranks, const std::string& layout) {
    return counts(layers, {.ranks = ranks, .layout = layout});
  };
  EXPECT_THAT(laid(4, 2, "Ett|ttL"), ElementsAre(2, 2));
  EXPECT_THAT(laid(10, 2, "Et*3|(tt|)*2t*3,L"), ElementsAre(3, 2, 2, 3));
  EXPECT_THAT(laid(6, 4, "E|(t|)*6L"), ElementsAre(0, 1, 1, 1, 1, 1, 1, 0));
  EXPECT_THAT(laid(4, 1, "E t*4 L"), ElementsAre(4));
  EXPECT_THAT(laid(8, 2, "Et|((tt|)*2t|)|ttL"), ElementsAre(1, 2, 2, 1, 0, 2));
  EXPECT_THAT(counts(4, {.ranks = 2, .layout = "Ettt|tm*2L", .ahead = 2}), ElementsAre(3, 1));
}

TEST(Partition, refuses_layouts_that_say_something_else) {
  const auto at = [](int layers, int ranks, const std::string& layout) {
    return no(layers, {.ranks = ranks, .layout = layout});
  };
  const std::string tail = "; stages stand between |, made of E, t, m and L, repeated by *n or (…)*n";
  const auto named = [](const std::string& layout) { return "{parallel.layout} '" + layout + "': "; };
  EXPECT_EQ(at(4, 2, "tt|ttL"), named("tt|ttL") + "E, the embedding, must stand first, and only there");
  EXPECT_EQ(at(4, 2, "Ett|tt"), named("Ett|tt") + "L, the loss, must stand last, and only there");
  EXPECT_EQ(at(5, 2, "Ett|ttL"), named("Ett|ttL") + "it holds 4 layers, {model.layers} says 5");
  EXPECT_EQ(at(4, 2, "Ett|t|tL"), named("Ett|t|tL") + "its 3 stages cannot be shared by 2 pipeline ranks");
  EXPECT_EQ(at(4, 2, "Ett|txL"), named("Ett|txL") + "'x' at character 6" + tail);
  EXPECT_EQ(at(4, 2, "E(tt|ttL"), named("E(tt|ttL") + "a '(' that nothing closes at character 9" + tail);
  EXPECT_EQ(at(4, 2, "Ett)|ttL"), named("Ett)|ttL") + "a ')' that closes nothing at character 4" + tail);
  EXPECT_EQ(at(4, 2, "Et*|L"), named("Et*|L") + "no number after * at character 4" + tail);
  EXPECT_EQ(at(4, 2, "Et*99999|L"), named("Et*99999|L") + "too many repetitions at character 8" + tail);
  EXPECT_EQ(at(4, 2, "E(t*999)*999|L"), named("E(t*999)*999|L") + "too many stages at character 13" + tail);
  const std::string deep = "E" + std::string(200'000, '(');
  EXPECT_EQ(at(4, 2, deep), named(deep) + "more than 100 '(' within each other at character 102" + tail);
  EXPECT_EQ(at(4, 2, "Ett|ttmL"),
            named("Ett|ttmL") + "it holds 1 layers of further tokens, {model.ahead.depths} says 0");
  EXPECT_EQ(no(4, {.ranks = 2, .layout = "Ett|mttL", .ahead = 1}),
            named("Ett|mttL") + "m, a layer of further tokens, must stand between the last t and L");
  EXPECT_EQ(no(4, {.ranks = 3, .layout = "Ett|ttm|L", .ahead = 1}),
            named("Ett|ttm|L") + "m, a layer of further tokens, must stand between the last t and L");
}
