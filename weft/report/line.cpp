// Formats that other people's scripts read are spelled out here and nowhere else.
#include "weft/report/line.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>

#include "weft/base/format.h"

namespace weft::report {
namespace {

using Line = std::back_insert_iterator<std::string>;

void append_losses(Line out, const StepRecord& step) {
  // Megatron leaves out averages that are negative or no number.
  for (const auto& [name, value] : step.losses)
    if (value >= 0) fmt::format_to(out, " {}: {:.6E} |", name, value);
}

void append_norms(Line out, const StepRecord& step, LineForm form) {
  fmt::format_to(out, " loss scale: {:.1f} |", step.loss_scale);
  if (step.grad_norm) fmt::format_to(out, " grad norm: {:.3f} |", *step.grad_norm);
  if (step.zeros)
    fmt::format_to(out, " num zeros: {}{} |", *step.zeros, form == LineForm::deepspeed ? ".0" : "");
  if (step.params_norm) fmt::format_to(out, " params norm: {:.3f} |", *step.params_norm);
  if (step.greatest_score) fmt::format_to(out, " max attention logit: {:.3f} |", *step.greatest_score);
  if (step.sequence_length) fmt::format_to(out, " curriculum seqlen: {:5d} |", *step.sequence_length);
  if (step.reserved_length)
    fmt::format_to(out, " random ltd reserved length: {:5d} |", *step.reserved_length);
}

void append_counts(Line out, const StepRecord& step) {
  fmt::format_to(out, " number of skipped iterations: {:3d} | number of nan iterations: {:3d} |",
                 step.skipped, step.not_finite);
}

const char* heading(TimerForm form) {
  switch (form) {
    case TimerForm::max:
      return "max time across ranks (ms):";
    case TimerForm::minmax:
      return "(min, max) time across ranks (ms):";
    case TimerForm::all:
      return "times across ranks (ms):";
  }
  return "";
}

std::string timer_row(const std::string& name, const std::vector<double>& of_ranks, TimerForm form) {
  const auto [least, most] = std::ranges::minmax(of_ranks);
  const std::string padded = fmt::format("\n    {:.<48}", name + " ");
  if (form == TimerForm::max) return fmt::format("{}: {:.2f}", padded, most);
  if (form == TimerForm::minmax) return fmt::format("{}: ({:.2f}, {:.2f})", padded, least, most);
  std::string rows = fmt::format("\n  {}:", name);
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank)
    rows += fmt::format("\n     rank {:2d}: {:.2f}", rank, of_ranks[rank]);
  return rows;
}

}  // namespace

double perplexity(double loss) { return std::exp(std::min(20.0, loss)); }

std::string iteration_line(const StepRecord& step, const std::string& when) {
  std::string line;
  const Line out(line);
  fmt::format_to(out, " [{}] iteration {:8d}/{:8d} | consumed samples: {:12d} |", when, step.iteration,
                 step.iterations, step.consumed_samples);
  if (step.consumed_tokens) fmt::format_to(out, " consumed tokens: {:12d} |", *step.consumed_tokens);
  if (step.skipped_samples > 0) fmt::format_to(out, " skipped samples: {:12d} |", step.skipped_samples);
  fmt::format_to(out, " elapsed time per iteration (ms): {:.1f} |", step.milliseconds);
  if (step.teraflops) fmt::format_to(out, " throughput per GPU (TFLOP/s/GPU): {:.1f} |", *step.teraflops);
  if (step.learning_rate) fmt::format_to(out, " learning rate: {:.6E} |", *step.learning_rate);
  fmt::format_to(out, " global batch size: {:5d} |", step.global_batch);
  append_losses(out, step);
  append_norms(out, step, LineForm::megatron);
  append_counts(out, step);
  return line;
}

std::string engine_line(const StepRecord& step) {
  const double seconds = step.milliseconds / 1000;
  return fmt::format("steps: {} loss: {:.4f} iter time (s): {:.3f} samples/sec: {:.3f}", step.iteration,
                     step.losses.front().second, seconds, double(step.global_batch) / seconds);
}

std::string deepspeed_lines(const StepRecord& step) {
  std::string line;
  const Line out(line);
  const double seconds = step.milliseconds / 1000, samples = double(step.global_batch) / seconds;
  const std::int64_t length = step.actual_length.value_or(step.sequence_length.value_or(step.sequence));
  if (!step.losses.empty() && !step.engine_apart) line = engine_line(step) + "\n";
  fmt::format_to(out, " iteration {:8d}/{:8d} | consumed samples: {:12d} | consumed tokens: {:12d} |",
                 step.iteration, step.iterations, step.consumed_samples,
                 step.consumed_tokens.value_or(step.consumed_samples * step.sequence));
  fmt::format_to(out, " elapsed time per iteration (ms): {:.1f} |", step.milliseconds);
  if (step.learning_rate) fmt::format_to(out, " learning rate: {:.3E} |", *step.learning_rate);
  fmt::format_to(out, " global batch size: {:5d} |", step.global_batch);
  append_losses(out, step);
  append_norms(out, step, LineForm::deepspeed);
  fmt::format_to(out, " actual seqlen: {:5d} |", length);
  append_counts(out, step);
  fmt::format_to(out, " samples per second: {:.3f} | tokens per gpu per second (tgs): {:.3f} |", samples,
                 samples * double(length) / double(step.world_size));
  if (step.teraflops) fmt::format_to(out, " TFLOPs: {:.2f} |", *step.teraflops);
  return line;
}

std::string experts_line(const StepRecord& step) {
  if (step.experts.empty()) return {};
  std::string line = "     experts |";
  for (const auto& [name, value] : step.experts)
    if (name.find("_layer_") == std::string::npos) fmt::format_to(Line(line), " {}: {:.4f} |", name, value);
  return line;
}

std::string evaluation_lines(const Evaluation& evaluation) {
  std::string line = fmt::format(" validation{} loss at {} | ", evaluation.set, evaluation.of);
  for (const auto& [name, loss] : evaluation.losses)
    line += fmt::format("{} value: {:.6E} | {} PPL: {:.6E} | ", name, loss, name, perplexity(loss));
  const std::string rule(line.size() + 1, '-');
  return fmt::format("{}\n{}\n{}", rule, line, rule);
}

std::string live_line(const StepRecord& step) {
  const double left = double(step.iterations - step.iteration) * step.milliseconds / 1000;
  std::string line = fmt::format("step {}/{}", step.iteration, step.iterations);
  for (const auto& [name, value] : step.losses) line += fmt::format("  {} {:.4f}", name, value);
  if (step.learning_rate) line += fmt::format("  rate {:.2e}", *step.learning_rate);
  line += fmt::format("  {} tokens/s  {} left", human_count(step.tokens_per_second), human_duration(left));
  return line;
}

std::string live_experts_line(const StepRecord& step) {
  constexpr std::string_view group = "moe/";
  if (step.experts.empty()) return {};
  std::string line = "experts";
  for (const auto& [name, value] : step.experts)
    if (name.starts_with(group) && name.find("_layer_") == std::string::npos)
      line += fmt::format("  {} {:.4f}", name.substr(group.size()), value);
  return line;
}

std::string now_text() {
  const auto now = std::chrono::system_clock::now();
  const auto micros =
      std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count() % 1'000'000;
  return fmt::format("{:%Y-%m-%d %H:%M:%S}.{:06d}", fmt::localtime(std::chrono::system_clock::to_time_t(now)),
                     micros);
}

std::string timer_lines(const Timers& timers) {
  std::string lines = heading(timers.form);
  for (const auto& [name, of_ranks] : timers.milliseconds) lines += timer_row(name, of_ranks, timers.form);
  return lines;
}

}  // namespace weft::report
