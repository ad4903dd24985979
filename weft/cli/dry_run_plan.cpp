// A table of memory, with a column for every use that has any.
#include "weft/cli/dry_run_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "weft/backend/open.h"
#include "weft/base/format.h"
#include "weft/cli/gpu_run.h"
#include "weft/cli/train_run.h"
#include "weft/model/kinds.h"
#include "weft/train/stages.h"

namespace weft::cli {
namespace {

using Json = nlohmann::ordered_json;

std::int64_t tokens_of_a_step(const TrainConfig& c) {
  return c.batch.global * kind_of(c.model).samples(c.model).tokens();
}

bool used(const Plan& plan, int use) {
  return std::ranges::any_of(plan.kinds,
                             [&](const KindOfRank& k) { return k.memory.peak[std::size_t(use)] > 0; });
}

std::string stages(const KindOfRank& kind) {
  return kind.first == kind.last ? fmt::format("stage {}", kind.first)
                                 : fmt::format("stages {} to {}", kind.first, kind.last);
}

std::string_view ranks_of(Partners partners) {
  switch (partners) {
    case Partners::data:
      return "to data-parallel ranks";
    case Partners::tensor:
      return "to tensor-parallel ranks";
    case Partners::context:
      return "to context-parallel ranks";
    case Partners::pipeline:
      return "to other stages";
    case Partners::experts:
      return "to ranks with other experts";
    case Partners::several:
      return "else";
  }
  return "";
}

/// "    each sends 1.2 GiB in a step: 1 GiB to data-parallel ranks (…)"; nothing where nobody else is there.
std::string sent(const Volumes& sends) {
  if (sends.total() == 0) return "";
  std::string parts;
  for (int i = 0; i < kinds_of_partners; ++i) {
    const Sent& to = sends[Partners(i)];
    if (to.total() == 0) continue;
    parts +=
        fmt::format("{}{} {}", parts.empty() ? "" : ", ", human_bytes(to.total()), ranks_of(Partners(i)));
    if (Partners(i) == Partners::data && to.of(Traffic::gathered) > 0)
      parts += fmt::format(" ({} of gradients, {} of weights)",
                           human_bytes(to.of(Traffic::sums) + to.of(Traffic::traded)),
                           human_bytes(to.of(Traffic::gathered)));
  }
  return fmt::format("    each sends {} in a step: {}\n", human_bytes(sends.total()), parts);
}

Json json_of(const Volumes& sends) {
  Json out;
  for (int i = 0; i < kinds_of_partners; ++i) {
    const Sent& to = sends[Partners(i)];
    out[std::string(name(Partners(i)))] = {{"sums", to.of(Traffic::sums)},
                                           {"gathered", to.of(Traffic::gathered)},
                                           {"traded", to.of(Traffic::traded)},
                                           {"handed_on", to.of(Traffic::handed_on)}};
  }
  return out;
}

std::string table(const TrainConfig& c, const Plan& plan) {
  const std::string_view spilled =
      c.optimizer.offload.weights ? "weights and optimizer states" : "optimizer states";
  std::string head = fmt::format("  {:<16}{:>7}", "most memory of", "ranks"), rows;
  for (int use = 0; use < uses; ++use)
    if (used(plan, use)) head += fmt::format("{:>16}", name(Use(use)));
  for (const KindOfRank& kind : plan.kinds) {
    rows += fmt::format("  {:<16}{:>7}", stages(kind), kind.ranks);
    for (int use = 0; use < uses; ++use)
      if (used(plan, use)) rows += fmt::format("{:>16}", human_bytes(kind.memory.peak[std::size_t(use)]));
    rows += fmt::format("{:>16}\n", human_bytes(kind.memory.total_peak));
    if (kind.on_disk > 0)
      rows += fmt::format("    and {} of {} of each rank in a file\n", human_bytes(kind.on_disk), spilled);
    if (kind.copied > 0)
      rows += fmt::format("    and {} of each rank for the copy that is written in the background\n",
                          human_bytes(kind.copied));
    rows += sent(kind.sends);
    if (kind.training < kind.memory.total_peak)
      rows += fmt::format("    while it evaluates; {} while it trains\n", human_bytes(kind.training));
    if (kind.crowded > 0)
      rows += fmt::format("    with even loads of experts; {} where all tokens go to one rank's\n",
                          human_bytes(kind.crowded));
  }
  return head + fmt::format("{:>16}\n", "at once") + rows;
}

std::string in_files(const Room& room, const TrainConfig& c, const Plan& plan) {
  const std::int64_t on_disk = disk_here(plan, c.parallel, room.ranks);
  if (on_disk == 0) return "";
  return fmt::format("  and {} in files, the disk of {} has {} left: {}\n", human_bytes(on_disk),
                     c.optimizer.offload.directory, human_bytes(room.free.on_disk),
                     on_disk <= room.free.on_disk ? "they fit" : "they do not fit");
}

std::string said_of(const Room& room, const TrainConfig& c, const Plan& plan, const Launched& launched) {
  const auto& [here, free] = room;
  const std::int64_t need = bytes_here(plan, c.parallel, here);
  const std::string crowded = crowded_out(plan, c.parallel, here, free);
  const std::string verdict =
      need > free.bytes ? "it does not fit; " + what_would_fit(c, here, free, counter_of(c, launched))
                        : "it fits" + (crowded.empty() ? "" : "; but " + crowded);
  const int ranks = here.count();
  return fmt::format("  {} on {} needs {}, {} leaves {}: {}\n",
                     ranks == 1 ? "a run" : fmt::format("a run of {} ranks", ranks),
                     here.gpu.empty() ? "this machine" : "a GPU", human_bytes(need), free.by,
                     human_bytes(free.bytes), verdict) +
         in_files(room, c, plan);
}

std::string rooms_text(const TrainConfig& c, const Plan& plan, const Launched& launched) {
  std::string out;
  for (const Room& room : rooms_here(c, launched)) out += said_of(room, c, plan, launched);
  return out.empty() ? fmt::format("  no GPU is here to compare with: device {}, counted as for an H100\n",
                                   c.run.device)
                     : out;
}

Json json_of(const Room& room, const TrainConfig& c, const Plan& plan) {
  const auto& [here, free] = room;
  Json out{{"needs", bytes_here(plan, c.parallel, here)}, {"free", free.bytes}, {"by", free.by}};
  const bool travels = std::ranges::any_of(plan.kinds, [](const KindOfRank& k) { return k.crowded > 0; });
  if (travels) out["needs_if_crowded"] = bytes_here_if_crowded(plan, c.parallel, here);
  if (const std::int64_t on_disk = disk_here(plan, c.parallel, here); on_disk > 0) {
    out["needs_on_disk"] = on_disk;
    out["free_on_disk"] = free.on_disk;
  }
  return out;
}

/// Of several memories the one that is nearest to its end.
std::optional<Json> fullest_room(const TrainConfig& c, const Plan& plan, const Launched& launched) {
  std::optional<Json> out;
  std::int64_t least = 0;
  for (const Room& room : rooms_here(c, launched)) {
    const std::int64_t left = room.free.bytes - bytes_here(plan, c.parallel, room.ranks);
    if (out && left >= least) continue;
    least = left;
    out = json_of(room, c, plan);
  }
  return out;
}

}  // namespace

FreeMemory free_here(const TrainConfig& config) {
  FreeMemory free = free_memory();
  if (config.optimizer.offload.on) free.on_disk = free_disk(config.optimizer.offload.directory);
  return free;
}

OpenCounter counter_of(const TrainConfig& config, const Launched& launched) {
  const int ranks = layout_of(config.parallel).world();
  const DeviceOptions options{.threads = threads_of_a_rank(config.run, launched, ranks),
                              .exact = config.model.exact,
                              .trials = new_trials(),
                              .counts_for = counted_gpu(config.run.device)};
  return {[options] { return open_device("meta", options); }, spoken_by(config, launched)};
}

RanksHere ranks_here(const ParallelConfig& parallel, const Launched& launched) {
  const int world = layout_of(parallel).world();
  if (!launched.processes()) return {.first = 0, .last = world - 1, .one_process = true};
  const int first = launched.rank / launched.on_this_machine * launched.on_this_machine;
  return {
      .first = first, .last = std::min(first + launched.on_this_machine, world) - 1, .one_process = false};
}

std::string plan_text(const TrainConfig& c, const Launched& launched) {
  const double flops = double(c.batch.global) * training_flops(c.model, c.model.sequence);
  const std::string step = fmt::format("a step learns from {} tokens in {:.3g} floating-point operations\n",
                                       tokens_of_a_step(c), flops);
  if (!countable(c))
    return fmt::format("about {} parameters; {}  more than {} of memory\n",
                       human_count(training_flops(c.model, 1) / 6), step,
                       human_bytes(std::int64_t(std::min(bytes_at_least(c), 9e18))));
  const Plan plan = plan_run(c, counter_of(c, launched), PlanFor::messages);
  const ParameterCount& count = plan.parameters;
  const std::string active =
      count.idle > 0 ? fmt::format(", {} of them active for a token", human_count(double(count.active())))
                     : std::string();
  return fmt::format("{} parameters ({}){}; {}{}{}", human_count(double(count.total())), count.total(),
                     active, step, table(c, plan), rooms_text(c, plan, launched));
}

nlohmann::ordered_json plan_json(const TrainConfig& c, const Launched& launched) {
  Json out;
  out["tokens"] = tokens_of_a_step(c);
  out["flops"] = double(c.batch.global) * training_flops(c.model, c.model.sequence);
  if (!countable(c)) {
    out["bytes_at_least"] = bytes_at_least(c);
    return out;
  }
  const Plan plan = plan_run(c, counter_of(c, launched), PlanFor::messages);
  out["parameters"] = plan.parameters.total();
  if (plan.parameters.idle > 0) out["active_parameters"] = plan.parameters.active();
  out["memory"] = Json::array();
  for (const KindOfRank& kind : plan.kinds) {
    Json bytes;
    for (int use = 0; use < uses; ++use) bytes[name(Use(use))] = kind.memory.peak[std::size_t(use)];
    out["memory"].push_back({{"first_stage", kind.first},
                             {"last_stage", kind.last},
                             {"ranks", kind.ranks},
                             {"bytes", bytes},
                             {"at_once", kind.memory.total_peak},
                             {"at_once_in_training", kind.training}});
    out["memory"].back()["sends"] = json_of(kind.sends);
    if (kind.on_disk > 0) out["memory"].back()["on_disk"] = kind.on_disk;
    if (kind.copied > 0) out["memory"].back()["copied_by_a_save"] = kind.copied;
    if (kind.crowded > 0) out["memory"].back()["at_once_if_crowded"] = kind.crowded;
  }
  if (const auto here = fullest_room(c, plan, launched)) out["here"] = *here;
  return out;
}

}  // namespace weft::cli
