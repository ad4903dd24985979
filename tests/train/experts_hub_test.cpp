// Mixtures that transformers trained for ten steps, from the same directory: tests/golden/experts says how.
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/source_dir.h"
#include "tests/train/tiny_run.h"
#include "weft/base/fields.h"
#include "weft/train/describe.h"
#include "weft/train/resume.h"
#include "weft/train/resume_theirs.h"

using namespace weft;
using namespace weft::testing;

namespace {

const std::filesystem::path folder = std::filesystem::path(WEFT_SOURCE_DIR) / "tests/golden/experts/hub";

/// The settings that stand in steps.json.
TrainConfig run_of(const std::string& name, const ParallelConfig& parallel,
                   const std::filesystem::path& cache) {
  TrainConfig c;
  c.model.sequence = 48;
  Fields fields(c);
  from_json(fields, settings_of_theirs(folder / name, true), Origin::checkpoint);
  c.model.hidden_dropout = c.model.attention_dropout = 0;
  c.model.experts.router.coefficients = {0};
  c.checkpoint.load = (folder / name).string();
  c.checkpoint.finetune = true;
  c.data.paths = {(folder / "tokens").string()};
  c.data.split = "100,0,0";
  c.data.cache = cache.string();
  c.batch.micro = 2;
  c.batch.global = 8;
  c.length.iterations = 10;
  c.rate.peak = 5e-3;
  c.rate.floor = 5e-4;
  c.rate.style = RateStyle::cosine;
  c.rate.warmup_iterations = 3;
  c.rate.decay_iterations = 10;
  c.optimizer.beta2 = 0.95;
  c.optimizer.weight_decay = 0.1;
  c.eval.iterations = 0;
  c.log.interval = 1;
  c.parallel = parallel;
  c.run.ranks = parallel.tp * parallel.dp;
  return completed(c);
}

class ExpertsOfHub : public ::testing::TestWithParam<const char*> {};

}  // namespace

// f32 on both sides, sums in another order.
TEST_P(ExpertsOfHub, train_for_ten_steps_as_transformers_does) {
  const auto steps = nlohmann::json::parse(std::ifstream(folder / "steps.json"))["runs"][GetParam()];
  for (const ParallelConfig& parallel :
       {ParallelConfig{.dp = 1}, {.tp = 2, .dp = 2, .ep = 4, .etp = 1, .sequence = true, .zero = 1}}) {
    const support::TemporaryDirectory cache;
    const Told told = train(run_of(GetParam(), parallel, cache.path()));
    ASSERT_EQ(told.losses.size(), steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const double loss = steps[i]["lm_loss"], norm = steps[i]["grad_norm"];
      EXPECT_NEAR(told.losses[i], loss, 1e-5 * loss) << "step " << i + 1;
      EXPECT_NEAR(told.norms[i], norm, 1e-5 * norm) << "step " << i + 1;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ExpertsOfHub, ::testing::Values("mixtral", "qwen2_moe"),
                         [](const auto& test) { return std::string(test.param); });
