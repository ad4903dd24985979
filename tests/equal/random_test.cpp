// Layouts that nobody thought of: drawn at random, each against one rank. And mistakes planted, each of which
// must be seen.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tests/equal/run.h"
#include "weft/base/error.h"

using namespace weft;
using namespace weft::testing;

namespace {

/// WEFT_LAYOUTS=500 draws more of them.
int cases() {
  const char* asked = std::getenv("WEFT_LAYOUTS");
  return asked != nullptr ? std::atoi(asked) : 16;
}

struct Drawn {
  ModelConfig model;
  Cut cut;
};

class Lottery {
 public:
  explicit Lottery(std::uint32_t seed) : random_(seed) {}

  Drawn draw() {
    Drawn out;
    ParallelConfig& p = out.cut.parallel;
    out.cut.steps = 5;
    p.tp = one_of({1, 1, 2, 4});
    p.pp = one_of({1, 2, 2, 3, 4});
    p.dp = one_of({1, 1, 2});
    if (p.tp * p.pp * p.dp > 12) p.tp = 1;
    p.sequence = p.tp > 1 && coin();
    p.zero = p.dp > 1 && coin();
    p.overlap_reduce = p.dp > 1 && coin();
    p.bucket_elements = p.overlap_reduce ? one_of({0, 100, 1000}) : 0;
    out.cut.micro_batch = one_of({1, 2, 8 / p.dp});
    out.cut.per_token = coin();
    pipeline(p, 8 / p.dp / int(out.cut.micro_batch));
    const int layers = cut_layers(p);
    out.model = shape_of(coin() ? "gpt2" : "llama", layers);
    out.model.hidden_dropout = out.model.attention_dropout = coin() ? 0.1 : 0;
    out.model.qk_norm = coin();
    if (coin()) out.model.recompute = {.what = Recompute::full, .layers = one_of({1, 2})};
    return out;
  }

 private:
  int one_of(std::initializer_list<int> list) { return list.begin()[random_() % list.size()]; }
  bool coin() { return random_() % 2 == 0; }

  void pipeline(ParallelConfig& p, int microbatches) {
    if (p.pp == 1) return;
    const int kind = one_of({0, 1, 2, 3, 4});
    const bool interleaves = microbatches >= p.pp && microbatches % p.pp == 0;
    if (kind == 4 && interleaves) {
      p.virtual_stages = one_of({2, 3});
    } else if (kind == 3) {
      p.schedule = "zb-v";
      p.virtual_stages = 2;
    } else {
      p.schedule = kind == 2 ? "zb-h1" : kind == 1 ? "gpipe" : "1f1b";
    }
  }
  /// Evenly, or a layout of a random number of layers a stage; returns how many there are.
  int cut_layers(ParallelConfig& p) {
    const int stages = p.pp * std::max(p.virtual_stages, 1);
    if (p.pp == 1) return one_of({1, 2, 3});
    if (coin()) return stages;
    int layers = 0;
    p.layout = "E";
    for (int stage = 0; stage < stages; ++stage) {
      const int here = stage + 1 == stages && layers == 0 ? 1 : one_of({0, 1, 2});
      layers += here;
      p.layout += (stage > 0 ? "|" : "") + std::string(std::size_t(here), 't');
    }
    p.layout += "L";
    return layers;
  }

  std::mt19937 random_;
};

Cut one_rank(const Cut& cut) {
  return {.parallel = {.dp = 1}, .micro_batch = 8, .steps = cut.steps, .per_token = cut.per_token};
}

std::string with_fault(Fault fault) {
  Cut cut{{.tp = 2, .pp = 2, .dp = 1, .sequence = true}, 2, 5};
  const ModelConfig config = shape_of("gpt2", 2);
  const Curve one = train(config, one_rank(cut));
  cut.fault = fault;
  return difference(train(config, cut), one);
}

}  // namespace

// The objective is a mean over microbatches, so that its bits hold however they are cut: all samples count
// equally many tokens here.
TEST(RandomLayouts, train_as_one_rank_does) {
  for (int number = 0; number < cases(); ++number) {
    const Drawn drawn = Lottery(std::uint32_t(number)).draw();
    const std::string name =
        text("number ", number, ": ", drawn.model.layers, " layers, ", name_of(drawn.cut));
    SCOPED_TRACE(name);
    ASSERT_EQ(difference(train(drawn.model, drawn.cut), train(drawn.model, one_rank(drawn.cut))), "");
  }
}

TEST(PlantedFaults, none_is_seen_where_none_is) { EXPECT_EQ(with_fault(Fault::none), ""); }

TEST(PlantedFaults, are_all_seen) {
  EXPECT_NE(with_fault(Fault::tied_copies_not_added), "");
  EXPECT_NE(with_fault(Fault::norm_counts_copies), "");
  EXPECT_NE(with_fault(Fault::weight_gradient_dropped), "");
  EXPECT_NE(with_fault(Fault::sequence_parts_not_added), "");
}
