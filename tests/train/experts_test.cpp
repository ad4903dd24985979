// Runs of mixtures of experts: saved and taken up under other layouts, begun as dense models, and told of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/event_file.h"
#include "tests/support/few_experts.h"
#include "tests/support/refused.h"
#include "tests/support/temporary.h"
#include "tests/support/tiny.h"
#include "tests/train/tiny_run.h"
#include "weft/checkpoint/find.h"
#include "weft/checkpoint/save.h"
#include "weft/report/jsonl.h"
#include "weft/report/line.h"
#include "weft/report/tensorboard.h"
#include "weft/train/resume_weights.h"
#include "weft/train/stages.h"

using namespace weft;
using namespace weft::testing;
using support::TemporaryDirectory;
using ::testing::HasSubstr;

namespace {

TrainConfig dense_run() {
  TrainConfig c = tiny_run();
  c.model.gated = true;
  c.model.activation = Activation::silu;
  c.model.linear_bias = c.model.qkv_bias = false;
  c.model.ffn_hidden = 24;
  c.model.init.std = 0.2;
  c.eval.interval = 0;
  return c;
}

TrainConfig experts_run() {
  TrainConfig c = dense_run();
  c.model.experts.count = 4;
  c.model.experts.router = learning_router();
  c.model.experts.router.capacity = 1.0;
  c.model.exact = true;
  c.eval.interval = 2;
  return c;
}

TrainConfig over(TrainConfig c, const ParallelConfig& parallel) {
  c.parallel = parallel;
  c.run.ranks = parallel.tp * parallel.cp * parallel.pp * parallel.dp;
  return completed(c);
}

/// What a step is told as, by tag.
class Records final : public report::Sink {
 public:
  explicit Records(std::vector<report::StepRecord>& into) : into_(into) {}
  const char* name() const override { return "records"; }
  void write(const report::StepRecord& step) override { into_.push_back(step); }
  void write(const report::Evaluation&) override {}

 private:
  std::vector<report::StepRecord>& into_;
};

double told(const report::StepRecord& record, const std::string& tag) {
  for (const auto& [name, value] : record.experts)
    if (name == tag) return value;
  ADD_FAILURE() << "nothing is told of " << tag;
  return -1;
}

/// What is told of a run; in TensorBoard's files too, where a folder is given.
std::vector<report::StepRecord> records_of(const TrainConfig& config,
                                           const std::filesystem::path& events = {}) {
  std::vector<report::StepRecord> out;
  const RunData data = open_run_data(config);
  std::vector<std::unique_ptr<report::Sink>> sinks;
  sinks.push_back(std::make_unique<Records>(out));
  if (!events.empty()) sinks.push_back(report::tensorboard_sink({.directory = events}));
  {
    report::Outlet outlet(std::move(sinks), 1000, [](const std::string&) {});
    const Log log(-1, {.stamped = false});
    const ParallelConfig& p = config.parallel;
    const ParallelLayout layout({.tp = p.tp, .cp = p.cp, .dp = p.dp, .pp = p.pp, .ep = p.ep, .etp = p.etp});
    run_as_threads(layout.world(), [&](Communicator& world) {
      const auto device =
          open_device("cpu", {.threads = 1, .exact = config.model.exact, .trials = weft::testing::trials()});
      const ProcessMesh mesh(layout, world);
      Trainer trainer(
          config, data,
          {.device = *device, .mesh = mesh, .log = log, .outlet = world.rank() == 0 ? &outlet : nullptr});
      (void)trainer.run();
    });
  }
  return out;
}

}  // namespace

// Biases, moments and every expert come back, whoever held them.
TEST(ExpertRuns, go_on_under_another_layout_with_the_same_bits) {
  const TemporaryDirectory whole, halves;
  const TrainConfig one = over(experts_run(), {.dp = 1});
  const Told unbroken = train(saving(one, whole.path()));
  TrainConfig first = saving(over(experts_run(), {.dp = 2, .ep = 2, .zero = 1}), halves.path());
  first.exit.interval = 3;
  const Told before = train(first);
  TrainConfig second =
      going_on(saving(over(experts_run(), {.tp = 2, .dp = 2, .ep = 4, .etp = 1}), halves.path()));
  const Told after = train(second);
  EXPECT_EQ(joined(before.losses, after.losses), unbroken.losses);
  EXPECT_EQ(joined(before.norms, after.norms), unbroken.norms);
  EXPECT_EQ(after.validations.back(), unbroken.validations.back());
  EXPECT_EQ(tensors_of(halves / "step_00000006"), tensors_of(whole / "step_00000006"));
}

TEST(ExpertRuns, name_an_expert_that_a_checkpoint_has_not_got) {
  const TemporaryDirectory folder;
  const auto device = open_device("cpu", {.threads = 1});
  const ModelConfig config = tiny_mixture();
  SoloCommunicator world;
  const ProcessMesh mesh(ParallelLayout({.etp = 1}), world);
  Replica replica({.model = config}, {*device, mesh});
  auto all = named_weights(replica.weights());
  std::erase_if(all, [](const auto& named) { return named.name == "layers.1.experts.5.down.weight"; });
  checkpoint::save(checkpoint::step_directory(folder.path(), 1), all, "{}", world);
  const std::string said =
      refused([&] { (void)load_weights(folder.path() / "step_00000001", replica.weights(), world); });
  EXPECT_THAT(said, HasSubstr("holds no layers.1.experts.5.down.weight among its "));
}

// Weights of two like experts add up to one, so a model whose experts are all the old MLP is the old model.
TEST(ExpertRuns, begin_where_a_model_without_experts_ended) {
  const TemporaryDirectory folder;
  train(saving(completed(dense_run()), folder.path()));
  TrainConfig dense = dense_run();
  dense.checkpoint.load = folder.path().string();
  dense.checkpoint.finetune = true;
  TrainConfig experts = dense_run();
  experts.model.experts.count = 4;
  experts.checkpoint.load = folder.path().string();
  experts.checkpoint.upcycle = true;
  const double before = train(completed(dense)).losses.front();
  const Told upcycled = train(completed(experts));
  EXPECT_NEAR(upcycled.losses.front(), before, 1e-5 * before);
  EXPECT_EQ(upcycled.said.find("another model"), std::string::npos) << upcycled.said;
  experts.model.norm_epsilon = 1e-3;
  EXPECT_THAT(
      train(completed(experts)).said,
      HasSubstr("to which they meant something else: model.norm_epsilon is 1e-05 there and 0.001 here"));
}

TEST(ExpertRuns, make_experts_of_experts_for_nobody) {
  const TemporaryDirectory folder;
  train(saving(completed(experts_run()), folder.path()));
  TrainConfig again = experts_run();
  again.checkpoint.load = folder.path().string();
  again.checkpoint.upcycle = true;
  EXPECT_THAT(refused([&] { train(completed(again)); }),
              HasSubstr("step_00000006: has experts already, and {checkpoint.upcycle} makes them of MLPs: "
                        "leave it out to go on from there"));
}

TEST(ExpertRuns, refuse_what_is_no_beginning) {
  TrainConfig c = experts_run();
  c.checkpoint.upcycle = true;
  EXPECT_EQ(refused([&] { completed(c); }),
            "{checkpoint.upcycle} needs {checkpoint.load}: the model without experts to start from");
  c.checkpoint.load = "somewhere";
  c.model.experts.latent = 8;
  EXPECT_EQ(refused([&] { completed(c); }),
            "{checkpoint.upcycle}: experts that work on fewer channels are no MLPs: leave "
            "{model.experts.latent} out");
  c.model.experts = {};
  EXPECT_EQ(refused([&] { completed(c); }),
            "{checkpoint.upcycle} makes experts of MLPs, and the model has none: say {model.experts.count}");
}

TEST(ExpertRuns, refuse_layouts_that_experts_do_not_fit) {
  const auto said = [](void (*change)(TrainConfig&), const ParallelConfig& parallel) {
    TrainConfig c = experts_run();
    c.model.exact = false;
    change(c);
    return refused([&] { over(c, parallel); });
  };
  const auto nothing = [](TrainConfig&) {};
  EXPECT_EQ(said(nothing, {.dp = 3, .ep = 3}), "4 experts cannot be shared by {parallel.ep} 3 ranks");
  EXPECT_EQ(said(nothing, {.tp = 2, .dp = 1, .ep = 4}),
            "the 2 ranks of a pipeline stage (tensor 2, context 1, data 1) cannot be cut into {parallel.ep} "
            "4 times "
            "{parallel.etp} 2: take degrees whose product divides 2");
  EXPECT_EQ(said([](TrainConfig& c) { c.model.experts.ffn_hidden = 15; }, {.tp = 2, .dp = 1}),
            "an expert's width 15 cannot be shared by {parallel.etp} 2 ranks");
  EXPECT_EQ(said([](TrainConfig& c) { c.model.linear_bias = true; }, {.tp = 2, .dp = 1}),
            "experts with biases are not cut: take {parallel.etp} 1, or {model.linear_bias=false}");
  EXPECT_EQ(said([](TrainConfig& c) { c.model.experts.shared_hidden = 15; }, {.tp = 2, .dp = 1, .etp = 1}),
            "the shared experts' width 15 cannot be shared by 2 tensor-parallel ranks");
  EXPECT_EQ(said([](TrainConfig& c) { c.model.experts = {}; }, {.dp = 2, .ep = 2}),
            "{parallel.ep} 2 shares experts out, and the model has none");
  EXPECT_EQ(said([](TrainConfig& c) { c.model.experts.count = 2048; }, {.dp = 1}),
            "2048 experts of a rank are more than 1024: take a larger {parallel.ep}");
}

TEST(ExpertRuns, are_told_what_is_a_sequences_in_exact_mode) {
  const auto told = [](void (*change)(TrainConfig&)) {
    TrainConfig c = experts_run();
    c.batch.micro = 2;
    c.model.experts.router.capacity.reset();
    change(c);
    complete(c.model);
    return exact_experts(c.model, c.batch);
  };
  constexpr auto nothing = [](TrainConfig&) {};
  constexpr auto aux_loss = [](TrainConfig& c) {
    c.model.experts.router.balancing = {Balancing::aux_loss};
    c.model.experts.router.capacity = 1.0;
  };
  EXPECT_EQ(told(nothing), "");
  EXPECT_EQ(
      told(aux_loss),
      "exact mode: load_balancing_loss and the room of experts are over the tokens of each sequence, as "
      "with {batch.micro} 1, whatever {batch.micro} 2 puts together");
  EXPECT_EQ(told([](TrainConfig& c) { c.model.experts.router = {.balancing = {Balancing::sinkhorn}}; }),
            "exact mode: sinkhorn's choice is over the tokens of each sequence, as with {batch.micro} 1, "
            "whatever {batch.micro} 2 puts together");
  EXPECT_EQ(told([](TrainConfig& c) {
              c.model.experts.router.capacity = 1.0;
              c.batch.micro = 1;
            }),
            "");
}

TEST(ExpertRuns, refuse_what_has_no_forwards_beside_backwards) {
  const auto said = [](ParallelConfig parallel, bool mixture = true) {
    TrainConfig c = mixture ? experts_run() : dense_run();
    c.model.exact = false;
    parallel.overlap_experts = true;
    return refused([&] { over(c, parallel); });
  };
  EXPECT_EQ(said({.dp = 2}, false),
            "{parallel.overlap_experts}: the model has no experts, whose rows could travel");
  EXPECT_EQ(said({.dp = 2}),
            "{parallel.overlap_experts}: every rank holds all experts whole, so no rows travel: take "
            "{parallel.ep} 2 or more");
  const std::string none =
      " of 2 ranks has no forwards beside backwards: {parallel.overlap_experts} needs {parallel.pp} 1, or "
      "{parallel.virtual_stages} 2 or more";
  EXPECT_EQ(said({.pp = 2, .dp = 2, .ep = 2}), "pipeline schedule 1f1b" + none);
  EXPECT_EQ(said({.pp = 2, .dp = 2, .ep = 2, .schedule = "zb-h1"}), "pipeline schedule zb-h1" + none);
  TrainConfig c = experts_run();
  EXPECT_EQ(refused([&] { over(c, {.dp = 2, .ep = 2, .delay_weight_grads = true}); }),
            "{parallel.delay_weight_grads} fills the time in which rows of experts travel, and needs "
            "{parallel.overlap_experts}");
}

// The layers of further tokens have routers too, and Megatron's mean is over all of them.
TEST(ExpertRuns, tell_the_mean_of_a_balancing_loss_over_the_layers_of_further_tokens_too) {
  TrainConfig c = experts_run();
  c.model.ahead = {.depths = 2};
  c.log.experts_by_layer = true;
  c.eval.interval = 0;
  const report::StepRecord step = records_of(over(c, {.dp = 1})).front();
  double sum = 0;
  for (const char* layer : {"0", "1", "2", "3"})
    sum += told(step, std::string("moe/seq_load_balancing_loss_layer_") + layer);
  const auto found =
      std::ranges::find(step.losses, "seq_load_balancing_loss", [](const auto& l) { return l.first; });
  ASSERT_NE(found, step.losses.end());
  EXPECT_NEAR(found->second, sum / 4, 1e-6 * sum);
}

TEST(ExpertRuns, tell_how_evenly_experts_are_chosen) {
  TrainConfig c = experts_run();
  c.model.experts.router.capacity = 0.5;
  c.log.experts_by_layer = true;
  c.eval.interval = 0;
  const auto one = records_of(over(c, {.dp = 1})), many = records_of(over(c, {.dp = 2, .ep = 2}));
  ASSERT_EQ(one.size(), 6U);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i].experts, many[i].experts) << i;
  const report::StepRecord& last = one.back();
  EXPECT_GE(told(last, "moe/busiest_expert"), 1);
  EXPECT_LE(told(last, "moe/load_entropy"), 1);
  EXPECT_GE(told(last, "moe/dropped_share"), 0.5 - 1e-9);  // an expert takes half of an even share
  double sum = 0;
  for (const char* layer : {"0", "1"})
    sum += told(last, std::string("moe/seq_load_balancing_loss_layer_") + layer);
  const auto& [name, mean] = last.losses[1];
  EXPECT_EQ(name, "seq_load_balancing_loss");
  EXPECT_NEAR(sum / 2, mean, 1e-6 * mean);
  EXPECT_THAT(report::experts_line(last), HasSubstr("     experts | moe/busiest_expert: "));
  EXPECT_THAT(report::json_line(last), HasSubstr("\"moe_dropped_share_layer_1\":"));
  const auto& [of, rows] = last.expert_rows.at(1);
  EXPECT_EQ(of, "moe/rows_layer_1");
  ASSERT_EQ(rows.size(), 4U);
  const double kept = rows[0] + rows[1] + rows[2] + rows[3], asked = 8 * 8 * 2;  // samples, tokens, choices
  EXPECT_DOUBLE_EQ(1 - kept / asked, told(last, "moe/dropped_share_layer_1"));
  EXPECT_THAT(report::json_line(last), HasSubstr("\"moe_rows_layer_1\":["));
}

// The tags are written out, because people's dashboards know them by name.
TEST(ExpertRuns, write_tensorboards_tags_of_every_step_and_of_layers_where_asked_for) {
  const std::vector<std::string> of_all{"moe/busiest_expert", "moe/load_entropy", "moe/dropped_share"};
  const std::vector<std::string> of_a_layer{"moe/busiest_expert_layer_", "moe/load_entropy_layer_",
                                            "moe/dropped_share_layer_", "moe/seq_load_balancing_loss_layer_"};
  for (const bool by_layer : {false, true}) {
    std::vector<std::string> wanted = of_all;
    for (const char* layer : {"0", "1"})
      for (const std::string& tag : of_a_layer)
        if (by_layer) wanted.push_back(tag + layer);
    TrainConfig c = experts_run();
    c.eval.interval = 0;
    c.log.experts_by_layer = by_layer;
    const TemporaryDirectory folder;
    const auto records = records_of(over(c, {.dp = 2, .ep = 2}), folder / "events");
    std::vector<EventScalar> seen = scalars_in(folder / "events"), expected;
    std::erase_if(seen, [](const EventScalar& scalar) { return !scalar.tag.starts_with("moe/"); });
    for (const report::StepRecord& record : records)
      for (const std::string& tag : wanted)
        expected.push_back({record.iteration, tag, float(told(record, tag))});
    EXPECT_EQ(seen.size(), expected.size());
    EXPECT_EQ(seen, expected);
    for (const report::StepRecord& record : records) EXPECT_EQ(record.expert_rows.size(), by_layer ? 2U : 0U);
  }
}
