// What there is to say about a step, an evaluation and a run: plain numbers, whoever writes them down.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::report {

/// What a record is about: one step, the steps since the last line, or, where every step has a line, both; or
/// those since the last line of DeepSpeed's engine, where that has lines at steps of its own.
enum class RecordScope : std::uint8_t { both, step, interval, engine };
constexpr bool tells_of_one_step(RecordScope scope) {
  return scope == RecordScope::both || scope == RecordScope::step;
}
constexpr bool tells_of_an_interval(RecordScope scope) {
  return scope == RecordScope::both || scope == RecordScope::interval;
}

/// Whose lines a run writes: a step as Megatron tells it, or as Megatron-DeepSpeed does.
enum class LineForm : std::uint8_t { megatron, deepspeed };
constexpr std::array<std::string_view, 2> words(LineForm) { return {"megatron", "deepspeed"}; }

/// A step, or the means since the last line. Lines for people are of intervals; files for programs are of
/// steps.
struct StepRecord {
  RecordScope span = RecordScope::both;
  bool engine_apart = false;  // the engine's line comes in a record of its own
  std::int64_t iteration = 0, iterations = 0;
  std::int64_t consumed_samples = 0, skipped_samples = 0;
  std::optional<std::int64_t> consumed_tokens, sequence_length;  // where samples grow
  std::optional<std::int64_t> reserved_length, actual_length;  // where tokens pass layers by: what these see,
                                                               // and what of a sample counts
  double milliseconds = 0;                                     // a step
  std::optional<double> teraflops;                             // a second and rank
  double tokens_per_second = 0;
  std::optional<double> learning_rate;
  std::int64_t global_batch = 0;
  std::int64_t sequence = 0;                           // tokens of a sample
  std::vector<std::pair<std::string, double>> losses;  // "lm loss"
  /// Of a step that was computed twice, how far each came out otherwise: "lm loss rerun difference".
  std::vector<std::pair<std::string, double>> reruns;
  double loss_scale = 1;
  std::optional<double> grad_norm;
  std::optional<std::int64_t> zeros;
  std::optional<double> params_norm;
  std::optional<double> greatest_score;      // of attention
  std::int64_t skipped = 0, not_finite = 0;  // steps since the last line
  std::int64_t world_size = 1;
  std::map<std::string, std::int64_t> memory;  // bytes, by TensorBoard's tag
  /// Of a mixture of experts, in the last step: how evenly they were chosen, by TensorBoard's tag.
  std::vector<std::pair<std::string, double>> experts;
  /// And where it was asked for, the rows of each expert of a layer.
  std::vector<std::pair<std::string, std::vector<double>>> expert_rows;
};

struct Evaluation {
  std::string of;   // "iteration 100", "iteration 100 on test set"
  std::string set;  // "-0": which of several validation sets; empty where there is one
  std::int64_t iteration = 0, consumed_samples = 0;
  std::vector<std::pair<std::string, double>> losses;
};

/// Of which ranks the times are told: the slowest, the fastest and the slowest, all.
enum class TimerForm : std::uint8_t { max, minmax, all };
constexpr std::array<std::string_view, 3> words(TimerForm) { return {"max", "minmax", "all"}; }

/// Milliseconds a step of the parts of the work, by name and rank.
struct Timers {
  std::int64_t iteration = 0;
  TimerForm form = TimerForm::minmax;
  std::vector<std::pair<std::string, std::vector<double>>> milliseconds;
};

/// A checkpoint that survives a power cut, and the work of the run up to it.
struct Saved {
  std::int64_t iteration = 0;
  double flops = 0, flops_before_job = 0, tokens = 0;
};

/// exp of a loss, cut off where nobody reads it any more.
double perplexity(double loss);

}  // namespace weft::report
