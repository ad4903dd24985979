// Every scalar under its name, and again over the samples consumed, as Megatron writes them.
#include "weft/report/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "weft/base/file.h"

namespace weft::report {
namespace {

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::filesystem::path event_file(const std::filesystem::path& directory) {
  make_directories(directory);
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return directory /
         fmt::format("events.out.tfevents.{}.{}.{}.0", std::int64_t(wall_time()), host.data(), getpid());
}

class TensorBoard final : public Sink {
 public:
  explicit TensorBoard(const TensorBoardOptions& options)
      : options_(options), file_(event_file(options.directory), Open::create) {
    file_.write(events::record(events::opening(wall_time())));
  }
  const char* name() const override { return "TensorBoard"; }

  void write(const StepRecord& step) override {
    if (!tells_of_one_step(step.span) || step.iteration % options_.interval != 0) return;
    if (options_.learning_rate && step.learning_rate) both(step, "learning-rate", *step.learning_rate);
    both(step, "batch-size", double(step.global_batch));
    for (const auto& [name, value] : step.losses) both(step, name, value);
    for (const auto& [name, value] : step.experts) add(step.iteration, name, value);
    if (options_.loss_scale) both(step, "loss-scale", step.loss_scale);
    if (options_.world_size) both(step, "world-size", double(step.world_size));
    if (step.sequence_length) add(step.iteration, "seqlen/curriculum_seqlen", double(*step.sequence_length));
    if (step.reserved_length)
      add(step.iteration, "seqlen/random_ltd_reserved_length", double(*step.reserved_length));
    if (step.actual_length) add(step.iteration, "seqlen/actual_seq_length", double(*step.actual_length));
    if (step.grad_norm) both(step, "grad-norm", *step.grad_norm);
    if (step.zeros) both(step, "num-zeros", double(*step.zeros));
    if (step.params_norm) both(step, "params-norm", *step.params_norm);
    if (step.greatest_score) add(step.iteration, "max_attention_logit", *step.greatest_score);
    if (step.skipped_samples > 0) add(step.iteration, "skipped-train-samples", double(step.skipped_samples));
    if (options_.timers) add(step.iteration, "iteration-time", step.milliseconds / 1000);
    if (step.teraflops) add(step.iteration, "throughput", *step.teraflops);
    if (options_.memory)
      for (const auto& [tag, bytes] : step.memory) add(step.iteration, tag, double(bytes));
  }

  void write(const Evaluation& evaluation) override {
    for (const auto& [name, loss] : evaluation.losses) {
      add(evaluation.iteration, name + " validation" + evaluation.set, loss);
      add(evaluation.consumed_samples, name + " validation" + evaluation.set + " vs samples", loss);
      if (!options_.perplexity) continue;
      add(evaluation.iteration, name + " validation" + evaluation.set + " ppl", perplexity(loss));
      add(evaluation.consumed_samples, name + " validation" + evaluation.set + " ppl vs samples",
          perplexity(loss));
    }
  }

  void write(const Timers& timers) override {
    if (!options_.timers) return;
    for (const auto& [name, ms] : timers.milliseconds)
      add(timers.iteration, name + "-time", std::ranges::max(ms) / 1000);
  }
  void flush() override { file_.sync(); }

 private:
  void both(const StepRecord& step, const std::string& tag, double value) {
    add(step.iteration, tag, value);
    add(step.consumed_samples, tag + " vs samples", value);
  }
  void add(std::int64_t at, const std::string& tag, double value) {
    file_.write(events::record(events::scalar(wall_time(), at, tag, float(value))));
  }

  TensorBoardOptions options_;
  File file_;
};

}  // namespace

std::unique_ptr<Sink> tensorboard_sink(const TensorBoardOptions& options) {
  return std::make_unique<TensorBoard>(options);
}

}  // namespace weft::report
