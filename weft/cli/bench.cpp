// weft bench: what a configuration reaches here, beside what this machine can do.
#include <algorithm>
#include <charconv>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

#include "weft/backend/open.h"
#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/cli/bench_train.h"
#include "weft/cli/dialect.h"
#include "weft/cli/dialect/spelling.h"
#include "weft/cli/train_command.h"
#include "weft/cli/verbs.h"
#include "weft/model/count.h"
#include "weft/model/kinds.h"
#include "weft/train/resume.h"

namespace weft::cli {
namespace {

using Json = nlohmann::ordered_json;
using Words = std::vector<std::string_view>;

constexpr int usual_steps = 5;

/// Takes `--bench-steps N`, or with an equals sign, out of the words.
int take_steps(Words& words) {
  constexpr std::string_view name = "--bench-steps", joined = "--bench-steps=";
  const auto flag =
      std::ranges::find_if(words, [&](std::string_view w) { return w == name || w.starts_with(joined); });
  if (flag == words.end()) return usual_steps;
  const bool alone = *flag == name;
  const auto behind = flag + 1, end = alone && behind != words.end() ? behind + 1 : behind;
  const std::string_view given = !alone ? flag->substr(joined.size()) : behind == end ? "" : *behind;
  int steps = 0;
  const auto [rest, error] = std::from_chars(given.data(), given.data() + given.size(), steps);
  if (error != std::errc() || rest != given.data() + given.size() || steps < 1)
    fail(Kind::usage, "bench train: --bench-steps takes a number of steps, not '", given, "'");
  words.erase(flag, end);
  return steps;
}

/// What training must be told and measuring need not.
void take_usual(TrainConfig& config) {
  DataConfig& data = config.data;
  const bool named = !data.paths.empty() || !data.paths_file.empty() || !data.per_split_file.empty() ||
                     !data.train_paths.empty() || !data.valid_paths.empty() || !data.test_paths.empty();
  if (!named) data.mock = true;
  if (!config.rate.peak) config.rate.peak = 1e-4;
  LengthConfig& length = config.length;
  if (length.iterations == 0 && length.samples == 0 && length.tokens == 0) length.iterations = 10;
  config.eval.iterations = 0;  // steps alone: evaluations take neither time nor memory
  config.eval.whole_set = false;
}

double theory_of(Use use, const ModelConfig& model, std::int64_t micro_batch) {
  const auto parameters = double(count_parameters(model).total());
  const bool half = model.precision != Precision::f32;
  switch (use) {
    case Use::weights:
      return parameters * (half ? 2 : 4);
    case Use::gradients:
      return parameters * 4;
    case Use::optimizer:
      return parameters * (half ? 12 : 8);
    case Use::activations:
      return activation_bound(model, micro_batch);
    default:
      return 0;
  }
}

std::string fixed(double x, int digits) {
  std::array<char, 64> room{};
  const auto end = std::to_chars(room.data(), room.data() + room.size(), x, std::chars_format::fixed, digits);
  return {room.data(), end.ptr};
}

std::string padded(const std::string& x, std::size_t width) {
  return x.size() < width ? std::string(width - x.size(), ' ') + x : x;
}

/// A line of right-aligned columns after a name.
std::string line(std::string_view name, const std::vector<std::string>& columns) {
  std::string out(name);
  out.resize(std::max<std::size_t>(out.size(), 20), ' ');
  for (const std::string& column : columns) out += padded(column, 14);
  return out + "\n";
}

double sum_of(std::span<const double> seconds) { return std::reduce(seconds.begin(), seconds.end()); }

/// What each rank waits for; nothing where there is one.
std::string waits_text(const TrainBench& b) {
  if (b.ranks.size() < 2) return {};
  const double all = sum_of(b.timed);
  const auto told = [&](double seconds) {
    return seconds < 1e-9 ? std::string("-")
                          : fixed(1e3 * seconds / double(b.timed.size()), 1) + " (" +
                                fixed(100 * seconds / all, 0) + " %)";
  };
  std::vector<std::string> heads{"in kernels"};
  for (int i = 0; i < kinds_of_partners; ++i) heads.emplace_back(name(Partners(i)));
  std::string out = line("ms a step, waits for", heads);
  for (std::size_t r = 0; r < b.ranks.size(); ++r) {
    const auto& [tp, cp, dp, pp] = b.ranks[r].place;
    std::vector<std::string> columns{told(b.ranks[r].work)};
    for (const double seconds : b.ranks[r].waits) columns.push_back(told(seconds));
    out += line(text("rank ", r, ": tp", tp, " cp", cp, " dp", dp, " pp", pp), columns);
  }
  return out + "\n";
}

std::string times_text(const TrainBench& b) {
  const auto steps = double(b.timed.size());
  const double all = sum_of(b.timed) * double(b.ranks.size());
  std::string out = line("kind of work", {"calls", "ms", "of the step", "GFLOP/s", "of the limit", "GB/s"});
  for (int i = 0; i < works; ++i) {
    const auto& [seconds, calls, counted] = b.kinds[std::size_t(i)];
    if (calls == 0) continue;
    const double flops = double(counted.flops) / seconds * double(b.ranks.size());
    out += line(name(Work(i)), {fixed(double(calls) / steps, 0), fixed(1e3 * seconds / steps, 1),
                                fixed(100 * seconds / all, 1) + " %", fixed(flops / 1e9, 1),
                                fixed(100 * flops / b.limits.product_flops, 1) + " %",
                                fixed(double(counted.bytes) / seconds / 1e9, 2)});
  }
  double rest = all;
  for (const RankBench& rank : b.ranks) rest -= rank.work + sum_of(rank.waits);
  return out + line("between kernels", {"", fixed(1e3 * rest / steps, 1), fixed(100 * rest / all, 1) + " %"});
}

std::string bytes_text(const ModelConfig& model, std::int64_t micro_batch, const TrainBench& b) {
  // Theory knows no layout: what one rank would hold that had all.
  std::string out = line("memory", {"most held", b.ranks.size() > 1 ? "of one rank" : "theory"});
  for (int i = 0; i < uses; ++i) {
    const std::int64_t held = b.memory.peak[std::size_t(i)];
    const double theory = theory_of(Use(i), model, micro_batch);
    if (held == 0 && theory == 0) continue;
    out += line(name(Use(i)), {human_bytes(held), theory > 0 ? human_bytes(std::int64_t(theory)) : "-"});
  }
  return out + line("together", {human_bytes(b.memory.total_peak)});
}

std::string told(const ModelConfig& model, const BatchConfig& batch, const TrainBench& b) {
  const auto [least, most] = std::ranges::minmax(b.steps);
  return text(model.kind, " with ", human_count(double(count_parameters(model).total())), " parameters, ",
              batch.global, " x ", kind_of(model).samples(model).tokens(), " tokens a step, ",
              b.ranks.size() > 1 ? text(b.ranks.size(), " ranks of ") : "",
              names_gpu(b.device) ? b.device : text(b.threads, " threads"), "\n", "step                ",
              fixed(b.median(), 3), " s (", fixed(least, 3), " to ", fixed(most, 3), " over ", b.steps.size(),
              " steps; the first took ", fixed(b.first, 3), " s)\n", "speed               ",
              fixed(b.tokens_per_second(), 1), " tokens/s\n", "limit               ",
              fixed(b.limits.product_flops / 1e9, 1), " GFLOP/s in products, ",
              fixed(b.limits.copy_bytes / 1e9, 2),
              " GB/s in copies, measured here: ", fixed(b.tokens * b.limits.product_flops / b.flops, 1),
              " tokens/s\n", "share of the limit  ", fixed(100 * b.share(), 1), " %\n\n", times_text(b), "\n",
              waits_text(b), bytes_text(model, batch.micro, b),
              "blocks asked of the system in these steps: ", b.fresh_blocks, "\n");
}

Json json_of(const ModelConfig& model, std::int64_t micro_batch, const TrainBench& b) {
  Json out{{"tokens_per_second", b.tokens_per_second()},
           {"share_of_product_rate", b.share()},
           {"step_seconds", b.steps},
           {"first_step_seconds", b.first},
           {"timed_step_seconds", b.timed},
           {"tokens", b.tokens},
           {"flops", b.flops},
           {"device", b.device},
           {"threads", b.threads},
           {"product_flops", b.limits.product_flops},
           {"copy_bytes", b.limits.copy_bytes},
           {"fresh_blocks", b.fresh_blocks},
           {"loss", b.loss}};
  for (const RankBench& rank : b.ranks) {
    Json one{{"place",
              {{"tp", rank.place[0]}, {"cp", rank.place[1]}, {"dp", rank.place[2]}, {"pp", rank.place[3]}}},
             {"work_seconds", rank.work}};
    for (int i = 0; i < kinds_of_partners; ++i) one["waits"][name(Partners(i))] = rank.waits[std::size_t(i)];
    out["ranks"].push_back(std::move(one));
  }
  for (int i = 0; i < works; ++i) {
    const KindBench& kind = b.kinds[std::size_t(i)];
    out["work"][name(Work(i))] = {{"seconds", kind.seconds},
                                  {"calls", kind.calls},
                                  {"flops", kind.counted.flops},
                                  {"bytes", kind.counted.bytes}};
  }
  for (int i = 0; i < uses; ++i)
    out["memory"][name(Use(i))] = {{"peak", b.memory.peak[std::size_t(i)]},
                                   {"theory", theory_of(Use(i), model, micro_batch)}};
  return out;
}

int run_bench(Args args) {
  if (args.empty() || args[0] != "train")
    fail(Kind::usage, "bench: name what is measured: weft bench train gpt …");
  if (args.size() < 2 || !find_kind(args[1]))
    fail(Kind::usage, "bench train: name the model: weft bench train gpt …");
  Words words(args.begin() + 2, args.end());
  const int steps = take_steps(words);
  const auto command = read_command(words, settings_of_checkpoint);
  if (!command->others.empty())
    fail(Kind::usage, "bench train: '", command->others[0], "' follows no flag that takes it");
  if (command->dry_run) fail(Kind::usage, "bench train: --dry-run measures nothing; use weft train for it");
  TrainConfig& config = command->config;
  config.model.kind = args[1];
  take_usual(config);
  in_words_of(*command, [&] { finish(*command, {}); });
  for (const std::string& notice : command->notices) std::cerr << notice << "\n";
  const TrainBench measured = bench_training(config, steps, limit_sizes(config.run.device));
  if (command->json)
    std::cout << json_of(config.model, config.batch.micro, measured).dump() << "\n";
  else
    std::cout << told(config.model, config.batch, measured);
  return static_cast<int>(Exit::done);
}

VerbHelp about_bench() {
  return {.usage = text("weft bench train ", kinds_to_choose(),
                        " [flags of weft train] [--bench-steps N] [--json]"),
          .examples = {{"weft bench train gpt --config examples/gpt2_124m.yaml --vocab-size 50257",
                        "tokens a second, the share of this machine's limit, and where the time goes"},
                       {"weft bench train gpt --config examples/gpt2_124m.yaml --bf16 --device cuda",
                        "the same of a GPU, which times its kernels itself in three steps more"},
                       {"weft bench train gpt --num-experts 4 --expert-model-parallel-size 2 --ranks 2 …",
                        "and for whom each rank of a layout waits; a script's flags of data, evaluation and "
                        "saving may stay: steps alone are measured"}},
          .topics = {{"This command",
                      {{"--bench-steps", "N", "steps that are measured, after two that are not; 5"},
                       {"--no-memory-check", "", "start even where memory seems too little"},
                       {"--json", "", "print one JSON object"}}}}};
}

}  // namespace

Verb bench_verb() {
  return {"bench", "measures training here against this machine's limits", run_bench, about_bench};
}

}  // namespace weft::cli
