// 8-bit products by blocks: what is said of layouts that cut them.
#include "tests/train/completing.h"

using namespace weft;
using namespace weft::testing;

namespace {

std::vector<std::string> said_of_blocks(const Change& change) {
  TrainConfig c = good();
  c.model.fp8 = {.format = Fp8Format::e4m3, .recipe = Fp8Recipe::blockwise};
  change(c);
  std::vector<std::string> out;
  for (const std::string& notice : complete(c, 0))
    if (notice.starts_with("{model.fp8.recipe}")) out.push_back(notice);
  return out;
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ValidateBlocks, says_which_layouts_cut_them) {
  EXPECT_THAT(said_of_blocks([](TrainConfig&) {}), IsEmpty());
  EXPECT_THAT(
      said_of_blocks([](TrainConfig& c) { c.parallel.tp = 2; }),
      ElementsAre("{model.fp8.recipe}: {parallel.tp} 2 leaves ranks 32 channels of heads, which are no "
                  "whole blocks of 128: they round otherwise than one rank would"));
  EXPECT_THAT(said_of_blocks([](TrainConfig& c) {
                c.parallel.tp = 2;
                c.model.fp8.recipe = Fp8Recipe::mxfp8;
              }),
              IsEmpty());
  EXPECT_THAT(
      said_of_blocks([](TrainConfig& c) {
        c.parallel.tp = 2;
        c.model.fp8.recipe = Fp8Recipe::mxfp8;
        c.model.ffn_hidden = 96;
      }),
      ElementsAre("{model.fp8.recipe}: {parallel.tp} 2 leaves ranks 48 channels of an MLP, which are no "
                  "whole blocks of 32: they round otherwise than one rank would"));
  EXPECT_THAT(
      said_of_blocks([](TrainConfig& c) { c.parallel.cp = 2; }),
      ElementsAre("{model.fp8.recipe}: {parallel.cp} 2 leaves ranks pieces of 32 tokens, which are no "
                  "whole blocks of 128: they round otherwise than one rank would"));
  EXPECT_THAT(said_of_blocks([](TrainConfig& c) {
                c.parallel.tp = 2;
                c.model.fp8.recipe = Fp8Recipe::tensorwise;
              }),
              IsEmpty());
}

}  // namespace
