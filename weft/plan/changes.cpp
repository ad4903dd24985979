// Smaller microbatches, recomputation, and states that are cut or lie in files.
#include "weft/plan/changes.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "weft/base/error.h"
#include "weft/train/settings.h"

namespace weft {
namespace {

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

bool may_cut(const TrainConfig& c) { return c.parallel.zero < 3 && c.parallel.dp * c.parallel.cp > 1; }

Changes more_cut(const TrainConfig& from) {
  Changes out;
  for (TrainConfig c = from; may_cut(c);) {
    ++c.parallel.zero;
    out.push_back({text("{parallel.zero=", c.parallel.zero, "}"), c});
  }
  return out;
}

Changes spilled(const TrainConfig& from) {
  Changes out;
  if (from.optimizer.offload.on || from.optimizer.kind != OptimizerKind::adam) return out;
  TrainConfig c = from;
  c.optimizer.offload.on = true;
  out.push_back({"{optimizer.offload.on} with {optimizer.offload.directory}", c});
  if (!may_cut(c)) return out;
  c.parallel.zero = 3;
  out.push_back({"{parallel.zero=3} {optimizer.offload.on} with {optimizer.offload.directory}", c});
  return out;
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
  return out;
}

}  // namespace weft
