#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/refused.h"
#include "weft/base/file.h"
#include "weft/report/chart.h"
#include "weft/report/console.h"
#include "weft/report/jsonl.h"
#include "weft/report/line.h"
#include "weft/report/outlet.h"
#include "weft/report/progress.h"
#include "weft/report/tensorboard.h"

using namespace weft;
using namespace weft::report;

namespace {

StepRecord some_step() {
  StepRecord step;
  step.iteration = 10;
  step.iterations = 100;
  step.consumed_samples = 80;
  step.milliseconds = 123.45;
  step.learning_rate = 0.00015;
  step.global_batch = 8;
  step.losses = {{"lm loss", 10.5}};
  step.grad_norm = 1.25;
  step.tokens_per_second = 2048;
  return step;
}

/// A folder that is gone when the test is.
class Folder : public ::testing::Test {
 protected:
  Folder() {
    path_ = std::filesystem::temp_directory_path() /
            ("weft_report_" + std::to_string(::getpid()) +
             ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(path_);
  }
  ~Folder() override { std::filesystem::remove_all(path_); }
  std::filesystem::path path_;
};
using Jsonl = Folder;
using TensorBoard = Folder;
using ProgressLog = Folder;

/// Remembers what it was told; fails from the given entry on.
class Remembering final : public Sink {
 public:
  Remembering(std::vector<std::int64_t>& seen, std::int64_t fails_at) : seen_(seen), fails_at_(fails_at) {}
  const char* name() const override { return "memory"; }
  void write(const StepRecord& step) override {
    if (step.iteration == fails_at_) fail(Kind::data, "no room left");
    seen_.push_back(step.iteration);
  }
  void write(const Evaluation&) override {}

 private:
  std::vector<std::int64_t>& seen_;
  std::int64_t fails_at_;
};

}  // namespace

TEST(Line, is_megatrons_to_the_character) {
  EXPECT_EQ(
      iteration_line(some_step(), "2026-01-31 10:00:00.000000"),
      " [2026-01-31 10:00:00.000000] iteration       10/     100 | consumed samples:           80 | elapsed "
      "time per iteration (ms): 123.5 | learning rate: 1.500000E-04 | global batch size:     8 | lm loss: "
      "1.050000E+01 | loss scale: 1.0 | grad norm: 1.250 | number of skipped iterations:   0 | number of nan "
      "iterations:   0 |");
}

TEST(Line, has_its_optional_parts_in_megatrons_places) {
  StepRecord step = some_step();
  step.skipped_samples = 16;
  step.teraflops = 0.25;
  step.zeros = 7;
  step.params_norm = 99.5;
  step.greatest_score = 12.25;
  step.consumed_tokens = 640;
  step.sequence_length = 64;
  const std::string line = iteration_line(step, "t");
  EXPECT_NE(line.find("80 | consumed tokens:          640 | skipped samples:           16 | elapsed"),
            std::string::npos)
      << line;
  EXPECT_NE(line.find("123.5 | throughput per GPU (TFLOP/s/GPU): 0.2 | learning"), std::string::npos) << line;
  EXPECT_NE(
      line.find(
          "grad norm: 1.250 | num zeros: 7 | params norm: 99.500 | max attention logit: 12.250 | curriculum "
          "seqlen:    64 | number"),
      std::string::npos)
      << line;
  EXPECT_NE(json_line(step).find("\"max_attention_logit\":12.25,"), std::string::npos);
}

TEST(Line, is_megatron_deepspeeds_to_the_character) {
  StepRecord step = some_step();
  step.sequence = 32;
  step.world_size = 2;
  step.teraflops = 1.5;
  step.zeros = 7;
  EXPECT_EQ(
      deepspeed_lines(step),
      "steps: 10 loss: 10.5000 iter time (s): 0.123 samples/sec: 64.804\n"
      " iteration       10/     100 | consumed samples:           80 | consumed tokens:         2560 | "
      "elapsed "
      "time per iteration (ms): 123.5 | learning rate: 1.500E-04 | global batch size:     8 | lm loss: "
      "1.050000E+01 | loss scale: 1.0 | grad norm: 1.250 | num zeros: 7.0 | actual seqlen:    32 | number of "
      "skipped iterations:   0 | number of nan iterations:   0 | samples per second: 64.804 | tokens per gpu "
      "per "
      "second (tgs): 1036.857 | TFLOPs: 1.50 |");
}

TEST(Line, tells_of_samples_that_grow_and_of_tokens_that_pass_layers_by_as_megatron_deepspeed) {
  StepRecord step = some_step();
  step.sequence = 32;
  step.sequence_length = 24;
  EXPECT_THAT(
      deepspeed_lines(step),
      testing::HasSubstr("grad norm: 1.250 | curriculum seqlen:    24 | actual seqlen:    24 | number of"));
  step.reserved_length = 16;
  step.actual_length = 20;
  EXPECT_THAT(
      deepspeed_lines(step),
      testing::HasSubstr("grad norm: 1.250 | curriculum seqlen:    24 | random ltd reserved length:    16 | "
                         "actual seqlen:    20 | number of skipped iterations:   0 | number of nan "
                         "iterations:   0 | samples per second: 64.804 | tokens per gpu per second (tgs): "
                         "1296.071 |"));
  EXPECT_THAT(iteration_line(step, "t"),
              testing::HasSubstr("random ltd reserved length:    16 | number of skipped"));
  EXPECT_THAT(json_line(step), testing::HasSubstr("\"actual_length\":20"));
  EXPECT_THAT(json_line(step), testing::HasSubstr("\"reserved_length\":16"));
}

TEST(JsonLines, say_how_far_a_step_came_out_otherwise_when_it_was_computed_twice) {
  StepRecord step = some_step();
  EXPECT_THAT(json_line(step), testing::Not(testing::HasSubstr("rerun")));
  step.reruns = {{"lm loss rerun difference", 0.5},
                 {"grad norm rerun difference", std::numeric_limits<double>::infinity()}};
  EXPECT_THAT(json_line(step),
              testing::HasSubstr("\"lm_loss_rerun_difference\":0.5,\"grad_norm_rerun_difference\":null"));
}

TEST(Line, of_deepspeeds_engine_may_stand_by_itself) {
  StepRecord step = some_step();
  const std::string both = deepspeed_lines(step);
  step.engine_apart = true;
  EXPECT_EQ(engine_line(step), "steps: 10 loss: 10.5000 iter time (s): 0.123 samples/sec: 64.804");
  EXPECT_EQ(engine_line(step) + "\n" + deepspeed_lines(step), both);
}

// Written first, and the cursor goes back up: what others say stands behind the live line, as without
// experts.
TEST(Terminal, tells_below_the_live_line_how_evenly_experts_were_chosen) {
  StepRecord step{.iteration = 2, .iterations = 4, .tokens_per_second = 1000, .losses = {{"lm loss", 2.5}}};
  step.milliseconds = 500;
  const auto said = [&] {
    testing::internal::CaptureStderr();
    console_sink(Console::live, LineForm::megatron)->write(step);
    return testing::internal::GetCapturedStderr();
  };
  const std::string line = "\r\x1b[K" + live_line(step);
  EXPECT_EQ(said(), line);
  step.experts = {{"moe/busiest_expert", 1.5},
                  {"moe/load_entropy", 0.875},
                  {"moe/dropped_share", 0.25},
                  {"moe/busiest_expert_layer_0", 2}};
  const std::string below =
      "\n\x1b[Kexperts  busiest_expert 1.5000  load_entropy 0.8750  dropped_share 0.2500\x1b[A";
  EXPECT_EQ(said(), below + line);
  step.iteration = 4;
  EXPECT_TRUE(said().ends_with("\n\n"));
}

TEST(Line, of_an_evaluation_stands_between_dashes_of_its_length) {
  const std::string line =
      " validation loss at iteration 5 | lm loss value: 2.000000E+00 | lm loss PPL: 7.389056E+00 | ";
  const std::string rule(line.size() + 1, '-');
  EXPECT_EQ(evaluation_lines({.of = "iteration 5", .losses = {{"lm loss", 2.0}}}),
            rule + "\n" + line + "\n" + rule);
}

TEST_F(Jsonl, begins_a_line_of_its_own_behind_one_that_was_cut_short) {
  std::ofstream(path_ / "log") << "{\"iteration\":1,\"lm_lo";
  jsonl_sink(path_ / "log")->write(some_step());
  EXPECT_EQ(read_curve(read_file(path_ / "log"), "iteration").size(), 1U);
}

TEST_F(Jsonl, keeps_every_bit_of_a_number_and_appends) {
  StepRecord step = some_step();
  step.losses = {{"lm loss", 0.1 + 0.2}};
  jsonl_sink(path_ / "log")->write(step);
  jsonl_sink(path_ / "log")->write(step);
  const std::string written = read_file(path_ / "log");
  const auto first = nlohmann::json::parse(written.substr(0, written.find('\n')));
  EXPECT_EQ(double(first["lm_loss"]), 0.1 + 0.2);
  EXPECT_EQ(first["iteration"], 10);
  EXPECT_EQ(std::ranges::count(written, '\n'), 2);
}

TEST(Events, have_the_published_checksum_of_crc32c) {
  const std::string digits = "123456789";
  const std::uint32_t plain = 0xE3069283U;  // the check value of CRC-32C
  EXPECT_EQ(events::masked_crc(digits), ((plain >> 15U) | (plain << 17U)) + 0xA282EAD8U);
}

TEST(Events, are_framed_by_length_and_two_checksums) {
  const std::string record = events::record("abc");
  EXPECT_EQ(record.size(), 8U + 4 + 3 + 4);
  EXPECT_EQ(record.substr(0, 8), std::string("\3\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(events::scalar(0, 3, "a", 1).substr(9), std::string("\x10\x03\x2a\x0a\x0a\x08\x0a\x01"
                                                                "a\x15\0\0\x80\x3f",
                                                                14));
}

TEST_F(TensorBoard, writes_each_scalar_over_steps_and_over_samples) {
  {
    const auto sink = tensorboard_sink({.directory = path_ / "runs"});
    sink->write(some_step());
  }
  const auto file = std::filesystem::directory_iterator(path_ / "runs")->path();
  const std::string bytes = read_file(file);
  for (const char* tag : {"learning-rate", "lm loss vs samples", "grad-norm", "batch-size", "loss-scale"})
    EXPECT_NE(bytes.find(tag), std::string::npos) << tag;
  EXPECT_EQ(bytes.find("world-size"), std::string::npos);
}

TEST(Outlet, writes_everything_in_order_before_it_closes) {
  std::vector<std::int64_t> seen;
  {
    std::vector<std::unique_ptr<Sink>> sinks;
    sinks.push_back(std::make_unique<Remembering>(seen, -1));
    Outlet outlet(std::move(sinks), 100, [](const std::string&) {});
    for (std::int64_t i = 0; i < 50; ++i) {
      StepRecord step;
      step.iteration = i;
      outlet.write(step);
    }
  }
  ASSERT_EQ(seen.size(), 50U);
  EXPECT_TRUE(std::ranges::is_sorted(seen));
}

TEST(Outlet, tells_once_of_a_sink_that_fails_and_goes_on_without_it) {
  std::vector<std::int64_t> bad, good;
  std::vector<std::string> said;
  {
    std::vector<std::unique_ptr<Sink>> sinks;
    sinks.push_back(std::make_unique<Remembering>(bad, 2));
    sinks.push_back(std::make_unique<Remembering>(good, -1));
    Outlet outlet(std::move(sinks), 100, [&](const std::string& s) { said.push_back(s); });
    for (std::int64_t i = 0; i < 5; ++i) {
      StepRecord step;
      step.iteration = i;
      outlet.write(step);
    }
  }
  EXPECT_EQ(bad.size(), 2U);
  EXPECT_EQ(good.size(), 5U);
  EXPECT_EQ(said, std::vector<std::string>{"memory is not written any more: no room left"});
}

TEST(Chart, draws_a_falling_curve_from_the_upper_left_to_the_lower_right) {
  const std::vector<Point> points{{0, 4}, {1, 2}, {2, 0}};
  const std::string chart = text_chart(points, {.title = "loss", .columns = 3, .rows = 2});
  EXPECT_EQ(chart, "loss\n    4.000 │▀▄ \n    0.000 │  ▄\n          └───\n           0 2\n");
}

TEST(Chart, as_a_picture_has_round_numbers_at_its_axes) {
  const std::vector<Point> points{{1, 7.63}, {100, 4.67}};
  const std::string picture = svg_chart(points, {.title = "lm loss"});
  for (const char* label : {">5<", ">6<", ">7<", ">20<", ">100<", ">lm loss<", ">iteration<"})
    EXPECT_NE(picture.find(label), std::string::npos) << label;
  EXPECT_NE(picture.find("M60.0 40.0 L700.0 280.0"), std::string::npos);
}

TEST(Line, of_one_of_several_validation_sets_names_it) {
  const Evaluation evaluation{
      .of = "iteration 5", .set = "-web", .iteration = 5, .losses = {{"lm loss", 2.0}}};
  EXPECT_NE(
      evaluation_lines(evaluation).find(" validation-web loss at iteration 5 | lm loss value: 2.000000E+00"),
      std::string::npos);
  EXPECT_EQ(json_line(evaluation),
            R"({"evaluation":"iteration 5","iteration":5,"consumed_samples":0,"set":"web","lm_loss":2.0})");
}

TEST_F(TensorBoard, and_json_lines_hold_steps_and_no_means) {
  std::filesystem::create_directories(path_);
  StepRecord step = some_step();
  {
    const auto lines = jsonl_sink(path_ / "lines");
    const auto events = tensorboard_sink({.directory = path_ / "runs", .interval = 2});
    for (std::int64_t n = 1; n <= 3; ++n) {
      for (const RecordScope span : {RecordScope::step, RecordScope::interval, RecordScope::engine}) {
        step.iteration = n;
        step.span = span;
        lines->write(step);
        events->write(step);
      }
    }
  }
  const std::string lines = read_file(path_ / "lines");
  EXPECT_EQ(std::ranges::count(lines, '\n'), 3);
  const std::string events = read_file(std::filesystem::directory_iterator(path_ / "runs")->path());
  const auto first = events.find("grad-norm vs samples");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(events.find("grad-norm vs samples", first + 1), std::string::npos);
}

TEST(TimerLines, tell_of_ranks_as_megatron_does) {
  Timers timers{.iteration = 5,
                .milliseconds = {{"forward-backward", {12.5, 20}}, {"forward-recv", {7.504, 0}}}};
  EXPECT_EQ(timer_lines(timers),
            "(min, max) time across ranks (ms):\n"
            "    forward-backward ...............................: (12.50, 20.00)\n"
            "    forward-recv ...................................: (0.00, 7.50)");
  timers.form = TimerForm::max;
  EXPECT_EQ(timer_lines(timers),
            "max time across ranks (ms):\n"
            "    forward-backward ...............................: 20.00\n"
            "    forward-recv ...................................: 7.50");
  timers.form = TimerForm::all;
  EXPECT_EQ(timer_lines(timers),
            "times across ranks (ms):\n"
            "  forward-backward:\n     rank  0: 12.50\n     rank  1: 20.00\n"
            "  forward-recv:\n     rank  0: 7.50\n     rank  1: 0.00");
}

TEST_F(ProgressLog, tells_of_jobs_and_checkpoints_and_of_the_time_since_the_first_with_as_many_ranks) {
  const auto file = path_ / "run" / "progress.txt";
  double now = 1e9;
  const auto job = [&](int ranks, const std::string& name) {
    return progress_sink({.file = file, .ranks = ranks, .job = name, .now = [&now] { return now; }});
  };
  job(4, "6")->write(Saved{.iteration = 5, .flops = 4e13, .flops_before_job = 0, .tokens = 5e7});
  now += 10;
  {
    const auto first = job(2, "7");
    now += 10;
    first->write(Saved{.iteration = 10, .flops = 8e13, .flops_before_job = 4e13, .tokens = 1e8});
  }
  now += 20;
  const auto second = job(2, "");
  now += 10;
  second->write(Saved{.iteration = 20, .flops = 1.6e14, .flops_before_job = 8e13, .tokens = 2.5e9});
  std::vector<std::string> told;
  std::istringstream in(read_file(file));
  for (std::string line; std::getline(in, line);) told.push_back(line.substr(line.find('\t') + 1));
  EXPECT_EQ(told,
            (std::vector<std::string>{
                "Job ID: 6\t# GPUs: 4\tStarting job",
                "Job ID: 6\t# GPUs: 4\tSaved checkpoint\tIteration: 5\tJob throughput: 0.0 TFLOP/s/GPU\t"
                "Cumulative throughput: 0.0 TFLOP/s/GPU\tFloating-point operations: 4.00e+13\t"
                "Tokens (in billions): 0.05",
                "Job ID: 7\t# GPUs: 2\tStarting job",
                "Job ID: 7\t# GPUs: 2\tSaved checkpoint\tIteration: 10\tJob throughput: 2.0 TFLOP/s/GPU\t"
                "Cumulative throughput: 2.0 TFLOP/s/GPU\tFloating-point operations: 8.00e+13\t"
                "Tokens (in billions): 0.10",
                "Job ID: \t# GPUs: 2\tStarting job",
                "Job ID: \t# GPUs: 2\tSaved checkpoint\tIteration: 20\tJob throughput: 4.0 TFLOP/s/GPU\t"
                "Cumulative throughput: 1.5 TFLOP/s/GPU\tFloating-point operations: 1.60e+14\t"
                "Tokens (in billions): 2.50"}));
}

TEST_F(ProgressLog, passes_over_lines_that_it_cannot_read) {
  const auto file = path_ / "progress.txt";
  write_atomically(file, "\tx\n\t\t# GPUs: 1\tStarting job\n");
  const auto sink = progress_sink({.file = file, .ranks = 1, .job = {}, .now = [] { return 5e8; }});
  sink->write(Saved{.iteration = 1, .flops = 1e12});
  EXPECT_NE(read_file(file).find("Iteration: 1\tJob throughput: 0.0"), std::string::npos);
}

TEST(Chart, reads_a_key_from_json_lines_and_passes_over_evaluations) {
  const auto points =
      read_curve("{\"iteration\":1,\"lm_loss\":3.5}\n{\"evaluation\":\"x\",\"lm_loss\":1}\n", "lm_loss");
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(points[0].y, 3.5);
  EXPECT_EQ(refused([] { (void)read_curve("{}\nnot json\n", "a"); }), "plot: line 2 is not a JSON object");
  EXPECT_EQ(read_curve("{\"iteration\": 1, \"a\": 2}\n{\"iterat\n{\"iteration\": 2, \"a\": 3}\n", "a").size(),
            2U);
}
