// Need against what is left, and the smallest change that would do.
#include "weft/plan/fit.h"

#include <functional>
#include <optional>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/format.h"

namespace weft {
namespace {

std::string human(double bytes) { return human_bytes(std::int64_t(std::min(bytes, 9e18))); }

/// What is known of a need that cannot be counted is more than anybody has.
std::optional<std::int64_t> need_of(const TrainConfig& c, const RanksHere& here, const OpenCounter& open) {
  if (bytes_at_least(c) > most_that_can_be_counted) return std::nullopt;
  return bytes_here(plan_run(c, open), c.parallel, here);
}

/// A configuration that needs less, and how a person asks for it. Those that train the same come first.
struct Change {
  std::string flags;
  TrainConfig config;
};

void smaller_microbatches(std::vector<Change>& out, const TrainConfig& from, const std::string& with) {
  for (std::int64_t micro = from.batch.micro / 2; micro >= 1; --micro) {
    if (from.batch.micro % micro != 0) continue;
    TrainConfig c = from;
    c.batch.micro = c.eval.micro = micro;
    out.push_back({text("{batch.micro} ", micro, with), c});
  }
}

std::optional<TrainConfig> recomputing(const TrainConfig& from) {
  if (from.model.recompute.what == Recompute::full) return std::nullopt;
  TrainConfig c = from;
  c.model.recompute = {
      .what = Recompute::full, .method = RecomputeMethod::uniform, .layers = 1, .modules = {}};
  return c;
}

void smaller_models(std::vector<Change>& out, const TrainConfig& from) {
  const bool even = from.parallel.layout.empty() && from.parallel.first_stage_layers == 0 &&
                    from.parallel.last_stage_layers == 0 && from.model.window_layers.empty();
  const int unit = from.parallel.pp * std::max(from.parallel.virtual_stages, 1);
  for (int layers = from.model.layers / 2 / unit * unit; even && layers >= unit;
       layers = layers / 2 / unit * unit) {
    TrainConfig c = from;
    c.model.layers = layers;
    out.push_back({text("{model.layers} ", layers), c});
  }
  const std::int64_t step = std::int64_t{8} * from.model.heads;
  for (std::int64_t hidden = from.model.hidden / 2 / step * step; hidden >= step;
       hidden = hidden / 2 / step * step) {
    TrainConfig c = from;
    const auto scaled = [&](std::int64_t width, std::int64_t of) {
      const auto part = std::int64_t(double(width) * double(hidden) / double(from.model.hidden));
      return std::max(part / of * of, of);
    };
    c.model.hidden = hidden;
    c.model.ffn_hidden = scaled(from.model.ffn_hidden, std::int64_t{8} * from.parallel.tp);
    c.model.channels = scaled(from.model.channels, 8);
    out.push_back({text("{model.hidden} ", hidden), c});
  }
}

std::vector<Change> changes(const TrainConfig& c) {
  std::vector<Change> out;
  smaller_microbatches(out, c, "");
  if (const auto less = recomputing(c)) {
    out.push_back({"{model.recompute.what=full}", *less});
    smaller_microbatches(out, *less, " {model.recompute.what=full}");
  }
  for (int zero = c.parallel.zero + 1; zero <= 3 && c.parallel.dp * c.parallel.cp > 1; ++zero) {
    TrainConfig cut = c;
    cut.parallel.zero = zero;
    out.push_back({text("{parallel.zero=", zero, "}"), cut});
  }
  smaller_models(out, c);
  return out;
}

std::string advice(const TrainConfig& c, const RanksHere& here, const FreeMemory& free,
                   const OpenCounter& open) {
  for (const Change& change : changes(c)) {
    if (bytes_at_least(change.config) > double(free.bytes)) continue;
    const auto need = need_of(change.config, here, open);
    if (need && *need <= free.bytes) return text(change.flags, " would need ", human_bytes(*need));
  }
  return "take a smaller model, or more machines";
}

std::string categories(const Plan& plan, const ParallelConfig& parallel, const RanksHere& here) {
  MemoryMeter most;
  for (const KindOfRank& kind : plan.kinds)
    if (kind.memory.total_peak > most.total_peak) most = kind.memory;
  std::string out = here.last > here.first || parallel.pp > 1 ? "of the largest rank " : "";
  bool first = true;
  for (int use = 0; use < uses; ++use) {
    if (most.peak[std::size_t(use)] == 0) continue;
    out += text(first ? "" : ", ", human_bytes(most.peak[std::size_t(use)]), " ", name(Use(use)));
    first = false;
  }
  return out;
}

}  // namespace

std::int64_t bytes_here(const Plan& plan, const ParallelConfig& parallel, const RanksHere& here) {
  const int processes = here.one_process ? 1 : here.last - here.first + 1;
  return bytes_of_ranks(plan, parallel, here.first, here.last) + processes * overhead_of_a_process();
}

void must_fit(const TrainConfig& c, const RanksHere& here, const FreeMemory& free, const OpenCounter& open) {
  const int ranks = here.last - here.first + 1;
  const std::string who =
      ranks == 1 ? "this run needs " : text("the ", ranks, " ranks on this machine need ");
  std::string need;
  if (bytes_at_least(c) > most_that_can_be_counted) {
    need = text("more than ", human(bytes_at_least(c)), " of memory for weights, gradients and optimizer");
  } else {
    const Plan plan = plan_run(c, open);
    const std::int64_t bytes = bytes_here(plan, c.parallel, here);
    if (bytes <= free.bytes) return;
    need = text(human_bytes(bytes), " of memory (", categories(plan, c.parallel, here), ")");
  }
  fail(Kind::usage, who, need, ", and ", free.by, " leaves ", human_bytes(free.bytes), "; ",
       advice(c, here, free, open), "; {no_memory_check} starts all the same");
}

}  // namespace weft
