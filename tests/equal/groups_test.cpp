// Fewer key groups than tensor-parallel ranks: neighbours hold one key, and it stays one.
#include <gtest/gtest.h>

#include "tests/equal/run.h"
#include "tests/support/refused.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary.h"
#include "tests/train/tiny_run.h"
#include "weft/checkpoint/save.h"
#include "weft/model/gpt/gpt.h"
#include "weft/train/resume_weights.h"

using namespace weft;
using namespace weft::testing;

namespace {

/// Four heads; "gpt2" has biases, "llama" norms of single heads.
ModelConfig grouped(const std::string& name, int groups, int layers = 2) {
  ModelConfig config = shape_of(name, layers);
  config.groups = groups;
  config.qk_norm = name == "llama";
  complete(config);
  return config;
}

struct Case {
  int groups;
  Cut cut;
};

class FewGroups : public ::testing::TestWithParam<std::tuple<std::string, Case>> {};

const std::vector<Case> all_cases = {
    {1, {{.tp = 2, .dp = 1}, 2, rounds(10)}},
    {1, {{.tp = 4, .dp = 1}, 2, rounds(10)}},
    {2, {{.tp = 4, .dp = 1}, 2, rounds(10)}},
    {2, {{.tp = 4, .dp = 1, .sequence = true}, 2, rounds(10)}},
    {1, {{.tp = 2, .dp = 2, .sequence = true, .zero = 1, .bucket_elements = 300}, 1, rounds(10)}},
    {2, {{.tp = 4, .dp = 2, .zero = 1, .overlap_reduce = true}, 2, rounds(10)}},
    {1, {{.tp = 2, .pp = 2, .dp = 1}, 2, rounds(10)}},
    {2, {{.tp = 4, .pp = 2, .dp = 1, .sequence = true, .schedule = "zb-h1"}, 2, rounds(10)}},
    {1, {{.tp = 2, .cp = 2, .dp = 1}, 2, rounds(10)}},
    {2, {{.tp = 4, .cp = 2, .dp = 1, .context = ContextForm::gather}, 2, rounds(10)}}};

std::vector<Case> cases() { return some_of(all_cases, 3); }

/// What four ranks, two of which hold the same key, leave after six steps; two such halves of a batch.
TrainConfig run_on_eight(const std::filesystem::path& folder) {
  TrainConfig config = saving(tiny_run(), folder);
  config.model.groups = 2;
  config.eval.interval = 0;
  config.parallel.tp = 4;
  config.parallel.dp = 2;
  config.run.ranks = 8;
  return completed(config);
}

struct Target {
  ParallelLayout::Degrees degrees;
  bool zero = false;
};

/// A step's weights and moments, loaded by ranks that are cut in another way, and saved by them.
void save_again(const std::filesystem::path& from, const std::filesystem::path& to, const ModelConfig& config,
                const Target& target) {
  const ParallelLayout layout(target.degrees);
  run_as_threads(layout.world(), [&](Communicator& world) {
    const ProcessMesh mesh(layout, world);
    const auto device = open_device("cpu", {.threads = 1});
    const ParallelConfig cut{.zero = target.zero ? 1 : 0, .bucket_elements = 700};
    Replica replica({.model = config, .parallel = cut}, {*device, mesh});
    std::vector<checkpoint::Named> all = named_weights(replica.weights());
    for (checkpoint::Named& state : named_states(replica.optimizer())) all.push_back(std::move(state));
    const std::string facts = checkpoint::load(from, all, world);
    checkpoint::save(to, named_to_save(replica.weights(), replica.optimizer()), facts, world);
  });
}

}  // namespace

TEST_P(FewGroups, train_as_one_rank_does_and_copies_agree) {
  const auto& [name, c] = GetParam();
  const ModelConfig config = grouped(name, c.groups, c.cut.parallel.pp > 1 ? 4 : 2);
  EXPECT_EQ(difference(train(config, c.cut),
                       train(config, {.parallel = {.dp = 1}, .micro_batch = 8, .steps = c.cut.steps})),
            "");
}

TEST_P(FewGroups, hold_what_the_counting_device_counts) {
  const auto& [name, c] = GetParam();
  EXPECT_EQ(memory_difference(grouped(name, c.groups, c.cut.parallel.pp > 1 ? 4 : 2), c.cut), "");
}

TEST(FewGroupsCheckpoint, is_the_same_bits_after_a_journey_through_other_layouts) {
  const support::TemporaryDirectory run, folder;
  const TrainConfig config = run_on_eight(run.path());
  train(config);
  const auto trained = tensors_of(run / "step_00000006");
  ASSERT_EQ(trained.at("layers.1.attention.qkv.weight.v").size(), std::size_t((4 + 2 * 2) * 4 * 16));
  std::filesystem::path from = run / "step_00000006";
  const Target targets[] = {{{.tp = 1}}, {{.tp = 4, .dp = 2}, true}, {{.tp = 2}}, {{.tp = 4, .dp = 2}}, {{}}};
  for (const Target& target : targets) {
    const std::filesystem::path to = folder / ("step_0000001" + std::to_string(&target - targets));
    save_again(from, to, config.model, target);
    EXPECT_EQ(tensors_of(to), trained) << to;
    from = to;
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, FewGroups,
                         ::testing::Combine(::testing::Values("gpt2", "llama"), ::testing::ValuesIn(cases())),
                         [](const auto& test) {
                           const Case& c = std::get<1>(test.param);
                           return std::get<0>(test.param) + "_g" + std::to_string(c.groups) + "_" +
                                  name_of(c.cut);
                         });
