// A table of memory, with a column for every use that has any.
#include "weft/cli/dry_run_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/backend/open.h"
#include "weft/base/format.h"
#include "weft/cli/train_run.h"
#include "weft/train/stages.h"

namespace weft::cli {
namespace {

bool countable(const TrainConfig& c) { return bytes_at_least(c) <= most_that_can_be_counted; }

bool used(const Plan& plan, int use) {
  return std::ranges::any_of(plan.kinds,
                             [&](const KindOfRank& k) { return k.memory.peak[std::size_t(use)] > 0; });
}

std::string stages(const KindOfRank& kind) {
  return kind.first == kind.last ? fmt::format("stage {}", kind.first)
                                 : fmt::format("stages {} to {}", kind.first, kind.last);
}

std::string table(const Plan& plan) {
  std::string head = fmt::format("  {:<16}{:>7}", "most memory of", "ranks"), rows;
  for (int use = 0; use < uses; ++use)
    if (used(plan, use)) head += fmt::format("{:>16}", name(Use(use)));
  for (const KindOfRank& kind : plan.kinds) {
    rows += fmt::format("  {:<16}{:>7}", stages(kind), kind.ranks);
    for (int use = 0; use < uses; ++use)
      if (used(plan, use)) rows += fmt::format("{:>16}", human_bytes(kind.memory.peak[std::size_t(use)]));
    rows += fmt::format("{:>16}\n", human_bytes(kind.memory.total_peak));
  }
  return head + fmt::format("{:>16}\n", "at once") + rows;
}

std::string room_here(const TrainConfig& c, const Plan& plan, const Launched& launched) {
  const RanksHere here = ranks_here(c, launched);
  const FreeMemory free = free_memory();
  const std::int64_t need = bytes_here(plan, c.parallel, here);
  const int ranks = here.last - here.first + 1;
  return fmt::format("  {} on this machine needs {}, {} leaves {}: {}\n",
                     ranks == 1 ? "a run" : fmt::format("a run of {} ranks", ranks), human_bytes(need),
                     free.by, human_bytes(free.bytes), need <= free.bytes ? "it fits" : "it does not fit");
}

}  // namespace

OpenCounter counter_of(const TrainConfig& config, const Launched& launched) {
  const int ranks = layout_of(config.parallel).world();
  const DeviceOptions options{.threads = threads_of_a_rank(config.run, launched, ranks),
                              .exact = config.model.exact,
                              .trials = new_trials()};
  return [options] { return open_device("meta", options); };
}

RanksHere ranks_here(const TrainConfig& config, const Launched& launched) {
  const int world = layout_of(config.parallel).world();
  if (!launched.processes()) return {.first = 0, .last = world - 1, .one_process = true};
  const int first = launched.rank / launched.on_this_machine * launched.on_this_machine;
  return {
      .first = first, .last = std::min(first + launched.on_this_machine, world) - 1, .one_process = false};
}

std::string plan_text(const TrainConfig& c, const Launched& launched) {
  const double flops = double(c.batch.global) * training_flops(c.model, c.model.sequence);
  const std::string step = fmt::format("a step learns from {} tokens in {:.3g} floating-point operations\n",
                                       c.batch.global * c.model.sequence, flops);
  if (!countable(c))
    return fmt::format(
        "about {} parameters; {}  more than {} of memory for weights, gradients and optimizer\n",
        human_count(training_flops(c.model, 1) / 6), step,
        human_bytes(std::int64_t(std::min(bytes_at_least(c), 9e18))));
  const Plan plan = plan_run(c, counter_of(c, launched));
  return fmt::format("{} parameters ({}); {}{}{}", human_count(double(plan.parameters.total())),
                     plan.parameters.total(), step, table(plan), room_here(c, plan, launched));
}

nlohmann::ordered_json plan_json(const TrainConfig& c, const Launched& launched) {
  using Json = nlohmann::ordered_json;
  Json out;
  out["tokens"] = c.batch.global * c.model.sequence;
  out["flops"] = double(c.batch.global) * training_flops(c.model, c.model.sequence);
  if (!countable(c)) {
    out["bytes_at_least"] = bytes_at_least(c);
    return out;
  }
  const Plan plan = plan_run(c, counter_of(c, launched));
  out["parameters"] = plan.parameters.total();
  out["memory"] = Json::array();
  for (const KindOfRank& kind : plan.kinds) {
    Json bytes;
    for (int use = 0; use < uses; ++use) bytes[name(Use(use))] = kind.memory.peak[std::size_t(use)];
    out["memory"].push_back({{"first_stage", kind.first},
                             {"last_stage", kind.last},
                             {"ranks", kind.ranks},
                             {"bytes", bytes},
                             {"at_once", kind.memory.total_peak}});
  }
  const FreeMemory free = free_memory();
  out["here"] = {{"needs", bytes_here(plan, c.parallel, ranks_here(c, launched))},
                 {"free", free.bytes},
                 {"by", free.by}};
  return out;
}

}  // namespace weft::cli
