// Smaller microbatches, recomputation, and states that are cut or lie in files.
#include "weft/plan/changes.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>

#include "weft/base/error.h"
#include "weft/train/ranks.h"
#include "weft/train/settings.h"
#include "weft/train/validate.h"

namespace weft {
namespace {

/// Nobody is told to take what a run would refuse: some optimizers want whole gradients, or states in memory.
bool accepted(TrainConfig c) {
  if (c.optimizer.offload.directory.empty()) c.optimizer.offload.directory = "DIR";
  std::vector<std::string> notices;
  try {
    validate::optimizer(c);
    validate::offload(c, notices);
    validate::precision(c, notices);
  } catch (const Error&) {  // is the answer
    return false;
  }
  return true;
}

/// Who gave evaluations no microbatch of their own has them follow that of training.
bool evaluates_apart(const TrainConfig& c) { return evaluates(c) && c.eval.micro != c.batch.micro; }

/// What divides it, the largest first, without itself.
std::vector<std::int64_t> smaller_divisors(std::int64_t n) {
  std::vector<std::int64_t> all;
  for (std::int64_t d = 1; d * d <= n; ++d)
    if (n % d == 0) all.insert(all.end(), {d, n / d});
  std::ranges::sort(all, std::ranges::greater());
  all.erase(all.begin(), std::ranges::find_if(all, [n](std::int64_t d) { return d < n; }));
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

Changes smaller_evaluations(const TrainConfig& from) {
  Changes out;
  if (!evaluates_apart(from)) return out;
  for (const std::int64_t micro : smaller_divisors(from.eval.micro)) {
    TrainConfig c = from;
    c.eval.micro = micro;
    out.push_back({text("{eval.micro} ", micro), c});
  }
  return out;
}

Changes smaller_microbatches(const TrainConfig& from, const std::string& with = "") {
  Changes out;
  const bool apart = evaluates_apart(from);
  for (const std::int64_t micro : smaller_divisors(from.batch.micro)) {
    TrainConfig c = from;
    c.batch.micro = micro;
    if (!apart) c.eval.micro = micro;
    out.push_back({text("{batch.micro} ", micro, with), c});
  }
  if (!apart) return out;
  TrainConfig c = from;
  c.batch.micro = c.eval.micro = 1;
  out.push_back({text("{batch.micro} 1 {eval.micro} 1", with), c});
  return out;
}

std::optional<TrainConfig> recomputing(const TrainConfig& from) {
  if (from.model.recompute.what == Recompute::full) return std::nullopt;
  TrainConfig c = from;
  c.model.recompute = {
      .what = Recompute::full, .method = RecomputeMethod::uniform, .layers = 1, .modules = {}};
  return c;
}

Changes fewer_groups(const TrainConfig& from) {
  TrainConfig c = from;
  c.parallel.shard_groups = 1;
  return from.parallel.shard_groups > 1 ? Changes{{"{parallel.shard_groups} 1", c}} : Changes();
}

Changes no_second_copy(const TrainConfig& from) {
  TrainConfig c = from;
  c.parallel.near_ranks = 0;
  return from.parallel.near_ranks > 0 ? Changes{{"{parallel.near_ranks} 1", c}} : Changes();
}

bool may_cut(const TrainConfig& c) { return c.parallel.zero < 3 && data_ranks(c.parallel) > 1; }

Changes more_cut(const TrainConfig& from) {
  Changes out;
  for (TrainConfig c = from; may_cut(c);) {
    ++c.parallel.zero;
    out.push_back({text("{parallel.zero=", c.parallel.zero, "}"), c});
  }
  return out;
}

bool spill(TrainConfig& c) {
  if (c.optimizer.offload.on) return false;
  c.optimizer.offload.on = true;
  return true;
}

/// Layers of a GPU read no files.
bool reads_files(const TrainConfig& c) { return !c.run.device.starts_with("cuda"); }

bool spill_weights(TrainConfig& c) {
  if (c.optimizer.offload.weights || !c.optimizer.offload.on || !reads_files(c)) return false;
  c.optimizer.offload.weights = true;
  return true;
}

constexpr std::string_view in_files = "{optimizer.offload.on} {optimizer.offload.directory} DIR",
                           weights_too = "{optimizer.offload.weights}";

Changes spilled(const TrainConfig& from) {
  Changes out;
  TrainConfig c = from;
  std::string flags;
  if (spill(c)) {
    flags = in_files;
    out.push_back({flags, c});
    if (may_cut(c)) {
      c.parallel.zero = 3;
      flags = text("{parallel.zero=3} ", in_files);
      out.push_back({flags, c});
    }
  }
  if (spill_weights(c)) out.push_back({text(flags, flags.empty() ? "" : " ", weights_too), c});
  return out;
}

/// Asked for before files are: what stands first is left out first.
bool with_files(TrainConfig& c) {
  const bool some_are_cut = data_ranks(c.parallel) > 1 && (c.parallel.zero == 1 || c.parallel.zero == 2);
  if (c.optimizer.offload.weights || some_are_cut || !reads_files(c)) return false;
  c.optimizer.offload.weights = true;
  return true;
}

Means first_of(Changes (*changes)(const TrainConfig&), std::string flags) {
  return {std::move(flags), [changes](TrainConfig& c) {
            const Changes all = changes(c);
            if (!all.empty()) c = all.front().config;
            return !all.empty();
          }};
}

Means stage(int zero) {
  return {text("{parallel.zero=", zero, "}"), [zero](TrainConfig& c) {
            if (!may_cut(c) || c.parallel.zero >= zero) return false;
            c.parallel.zero = zero;
            return true;
          }};
}

Means microbatches_of(std::int64_t samples) {
  return {text("{batch.micro} ", samples), [samples](TrainConfig& c) {
            if (c.batch.micro <= samples) return false;
            c.batch.micro = c.eval.micro = samples;
            return true;
          }};
}

/// The least first; of those that evaluations do not follow, one.
void add_microbatches(std::vector<Means>& to, const TrainConfig& c) {
  if (evaluates_apart(c)) {
    to.push_back(microbatches_of(1));
    if (c.eval.micro > 1) to.back().flags += " {eval.micro} 1";
    return;
  }
  std::vector<std::int64_t> sizes = smaller_divisors(c.batch.micro);
  std::ranges::reverse(sizes);
  for (const std::int64_t samples : sizes) to.push_back(microbatches_of(samples));
}

bool in_bf16(TrainConfig& c) {
  if (c.model.precision != Precision::f32) return false;
  c.model.precision = Precision::bf16;
  return true;
}

bool sums_in_bf16(TrainConfig& c) {
  if (c.scaling.sum_in_bf16) return false;
  c.scaling.sum_in_bf16 = true;
  return true;
}

bool recompute(TrainConfig& c) {
  const auto less = recomputing(c);
  if (less) c = *less;
  return less.has_value();
}

}  // namespace

std::vector<Changes> changes_of_means(const TrainConfig& c) {
  std::vector<Changes> out{smaller_evaluations(c), smaller_microbatches(c)};
  if (const auto less = recomputing(c)) {
    out.push_back({{"{model.recompute.what=full}", *less}});
    out.push_back(smaller_microbatches(*less, " {model.recompute.what=full}"));
  }
  for (Changes some : {no_second_copy(c), fewer_groups(c), more_cut(c), spilled(c)})
    out.push_back(std::move(some));
  for (Changes& some : out)
    std::erase_if(some, [](const Change& change) { return !accepted(change.config); });
  return out;
}

std::vector<Means> means_that_keep_the_model(const TrainConfig& c) {
  std::vector<Means> out{{"{model.precision=bf16}", in_bf16},
                         {std::string(weights_too), with_files},
                         {std::string(in_files), spill},
                         {"{model.recompute.what=full}", recompute},
                         {"{scaling.sum_in_bf16=true}", sums_in_bf16}};
  add_microbatches(out, c);
  out.push_back(first_of(fewer_groups, "{parallel.shard_groups} 1"));
  out.push_back(first_of(no_second_copy, "{parallel.near_ranks} 1"));
  for (const int zero : {3, 2, 1}) out.push_back(stage(zero));
  return out;
}

Change with_all(const TrainConfig& from, std::span<const Means> means) {
  Change out{.flags = {}, .config = from};
  for (const Means& some : means) {
    TrainConfig c = out.config;
    if (!some.take(c) || !accepted(c)) continue;
    out.config = c;
    out.flags += text(out.flags.empty() ? "" : " ", some.flags);
  }
  return out;
}

}  // namespace weft
