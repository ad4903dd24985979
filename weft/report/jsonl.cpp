// Keys are ours, lower case, and never change their meaning.
#include "weft/report/jsonl.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "weft/base/file.h"

namespace weft::report {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no word for what is not a number.
Json numeric(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

std::string key(std::string name) {
  for (const char c : {' ', '-', '/'}) std::ranges::replace(name, c, '_');
  return name;
}

class JsonLines final : public Sink {
 public:
  // A run that was killed may have left a line unfinished.
  explicit JsonLines(const std::filesystem::path& path) : file_(path, Open::append) {
    std::ifstream before(path, std::ios::binary | std::ios::ate);
    if (before.tellg() <= 0) return;
    before.seekg(-1, std::ios::end);
    if (before.get() != '\n') file_.write("\n");
  }
  const char* name() const override { return "the JSON lines"; }
  void write(const StepRecord& step) override {
    if (tells_of_one_step(step.span)) file_.write(json_line(step) + "\n");
  }
  void write(const Evaluation& evaluation) override { file_.write(json_line(evaluation) + "\n"); }
  void flush() override { file_.sync(); }

 private:
  File file_;
};

}  // namespace

std::string json_line(const StepRecord& step) {
  Json line{{"iteration", step.iteration}, {"consumed_samples", step.consumed_samples}};
  for (const auto& [name, value] : step.losses) line[key(name)] = numeric(value);
  for (const auto& [name, value] : step.reruns) line[key(name)] = numeric(value);
  for (const auto& [name, value] : step.experts) line[key(name)] = numeric(value);
  for (const auto& [name, rows] : step.expert_rows) line[key(name)] = rows;
  if (step.consumed_tokens) line["consumed_tokens"] = *step.consumed_tokens;
  if (step.sequence_length) line["sequence_length"] = *step.sequence_length;
  if (step.reserved_length) line["reserved_length"] = *step.reserved_length;
  if (step.actual_length) line["actual_length"] = *step.actual_length;
  if (step.grad_norm) line["grad_norm"] = numeric(*step.grad_norm);
  if (step.zeros) line["num_zeros"] = *step.zeros;
  if (step.params_norm) line["params_norm"] = numeric(*step.params_norm);
  if (step.greatest_score) line["max_attention_logit"] = numeric(*step.greatest_score);
  if (step.learning_rate) line["learning_rate"] = *step.learning_rate;
  line["loss_scale"] = step.loss_scale;
  line["global_batch_size"] = step.global_batch;
  line["milliseconds"] = step.milliseconds;
  line["tokens_per_second"] = step.tokens_per_second;
  if (step.teraflops) line["teraflops_per_second"] = *step.teraflops;
  line["skipped_iterations"] = step.skipped;
  line["nan_iterations"] = step.not_finite;
  return line.dump();
}

std::string json_line(const Evaluation& evaluation) {
  Json line{{"evaluation", evaluation.of},
            {"iteration", evaluation.iteration},
            {"consumed_samples", evaluation.consumed_samples}};
  if (!evaluation.set.empty()) line["set"] = evaluation.set.substr(1);
  for (const auto& [name, value] : evaluation.losses) line[key(name)] = numeric(value);
  return line.dump();
}

std::unique_ptr<Sink> jsonl_sink(const std::filesystem::path& path) {
  return std::make_unique<JsonLines>(path);
}

}  // namespace weft::report
