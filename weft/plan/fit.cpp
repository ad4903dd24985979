// Need against what is left, and the smallest change that would do.
#include "weft/plan/fit.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/plan/changes.h"
#include "weft/train/stages.h"

namespace weft {
namespace {

std::string human(double bytes) { return human_bytes(std::int64_t(std::min(bytes, 9e18))); }

/// What a machine has room for.
class Room {
 public:
  Room(const RanksHere& here, const FreeMemory& free, const OpenCounter& open)
      : here_(here), free_(free), open_(open) {}
  struct Found {
    std::ptrdiff_t place = 0;
    std::string said;  // "--micro-batch-size 2 would need 1.3 GiB"
  };
  /// The first that there is room for.
  std::optional<Found> first(const Changes& changes) const {
    if (changes.empty() || !need(changes.back())) return std::nullopt;
    const auto found = std::ranges::partition_point(changes, [this](const Change& c) { return !need(c); });
    return Found{found - changes.begin(), *said(*found)};
  }
  /// If there is room for it.
  std::optional<std::string> said(const Change& change) const {
    const auto bytes = need(change);
    if (!bytes) return std::nullopt;
    return text(change.flags, " would need ", human_bytes(*bytes));
  }

 private:
  /// If it is there.
  std::optional<std::int64_t> need(const Change& change) const {
    const TrainConfig& c = change.config;
    if (!countable(c) || bytes_at_least(c) > double(free_.bytes)) return std::nullopt;
    const std::int64_t bytes = bytes_here(plan_run(c, open_), c.parallel, here_);
    return bytes <= free_.bytes ? std::optional(bytes) : std::nullopt;
  }

  const RanksHere& here_;
  const FreeMemory& free_;
  const OpenCounter& open_;
};

/// All that keeps the model at once, less what can be done without. Weights in bf16 have masters beside them,
/// and may need more where nothing is cut: they are tried, and left out.
std::optional<std::string> together(const TrainConfig& c, const Room& room) {
  const std::vector<Means> all = means_that_keep_the_model(c);
  for (const std::ptrdiff_t left_out : {0, 1}) {
    std::vector<Means> taken(all.begin() + left_out, all.end());
    if (!room.said(with_all(c, taken))) continue;
    for (std::size_t i = 0; i < taken.size();) {
      std::vector<Means> fewer = taken;
      fewer.erase(fewer.begin() + std::ptrdiff_t(i));
      if (room.said(with_all(c, fewer)))
        taken = std::move(fewer);
      else
        ++i;
    }
    return room.said(with_all(c, taken));
  }
  return std::nullopt;
}

/// Of sizes, the one that must be halved the fewest times is to blame; of two, the first.
std::string advice(const TrainConfig& c, const Room& room) {
  for (const Changes& changes : changes_of_means(c))
    if (const auto found = room.first(changes)) return found->said;
  if (const auto found = together(c, room)) return *found;
  Room::Found best{.place = std::numeric_limits<std::ptrdiff_t>::max(),
                   .said = "take a smaller model, or more machines"};
  for (const Changes& changes : changes_of_sizes(c))
    if (auto found = room.first(changes); found && found->place < best.place) best = std::move(*found);
  return best.said;
}

std::string categories(const Plan& plan, const ParallelConfig& parallel, const RanksHere& here) {
  const KindOfRank& most =
      *std::ranges::max_element(plan.kinds, {}, [](const KindOfRank& k) { return k.memory.total_peak; });
  const std::string copy =
      most.copied > 0 ? text(", and ", human_bytes(most.copied), " for {checkpoint.in_background}") : "";
  std::string out = here.count() > 1 || parallel.pp > 1 ? "of the largest rank " : "";
  bool first = true;
  for (int use = 0; use < uses; ++use) {
    if (most.memory.peak[std::size_t(use)] == 0) continue;
    out += text(first ? "" : ", ", human_bytes(most.memory.peak[std::size_t(use)]), " ", name(Use(use)));
    first = false;
  }
  if (most.training < most.memory.total_peak)
    out += text(" while it evaluates, ", human_bytes(most.training), " in all while it trains");
  return out + copy;
}

/// "the 4 ranks on this machine need ".
std::string who_needs(const RanksHere& here, int world) {
  if (here.count() > 1)
    return text("the ", here.count(), " ranks on ", here.gpu.empty() ? "this machine" : here.gpu, " need ");
  return here.gpu.empty() || world == 1 ? "this run needs " : text("the rank on ", here.gpu, " needs ");
}

/// Of these ranks, of each what `bytes` says of its kind and its place among experts' ranks.
template <class Bytes>
std::int64_t sum_of(const Plan& plan, const ParallelConfig& parallel, const RanksHere& here,
                    const Bytes& bytes) {
  const ParallelLayout layout = layout_of(parallel);
  std::int64_t sum = 0;
  for (int rank = here.first; rank <= here.last; rank += here.every) {
    const auto places = layout.at(rank);
    const int stage = places[std::size_t(Axis::pp)];
    const auto kind = std::ranges::find_if(
        plan.kinds, [&](const KindOfRank& k) { return k.first <= stage && stage <= k.last; });
    sum += bytes(*kind, places[std::size_t(Axis::ep)]);
  }
  return sum;
}

/// What lies there beside tensors that layers and optimizers hold: copies that are saved lie in the machine's
/// memory, whatever computes.
std::int64_t beside(const KindOfRank& kind, const RanksHere& here) {
  return here.gpu.empty() ? kind.copied : 0;
}
std::int64_t of_processes(const RanksHere& here) {
  if (!here.gpu.empty()) return 0;
  return (here.one_process ? 1 : here.count()) * overhead_of_a_process();
}

}  // namespace

std::int64_t bytes_here(const Plan& plan, const ParallelConfig& parallel, const RanksHere& here) {
  return of_processes(here) + sum_of(plan, parallel, here, [&](const KindOfRank& kind, int) {
           return kind.memory.total_peak + beside(kind, here);
         });
}

std::int64_t bytes_here_if_crowded(const Plan& plan, const ParallelConfig& parallel, const RanksHere& here) {
  const int places = layout_of(parallel).degree(Axis::ep);
  std::int64_t most = 0;
  for (int crowded = 0; crowded < places; ++crowded) {
    const auto bytes = [&](const KindOfRank& kind, int place) {
      const bool travels = kind.crowded > 0 && place == crowded;
      return (travels ? kind.crowded : kind.memory.total_peak) + beside(kind, here);
    };
    most = std::max(most, sum_of(plan, parallel, here, bytes));
  }
  return most + of_processes(here);
}

std::int64_t disk_here(const Plan& plan, const ParallelConfig& parallel, const RanksHere& here) {
  return sum_of(plan, parallel, here, [](const KindOfRank& kind, int) { return kind.on_disk; });
}

std::string crowded_out(const Plan& plan, const ParallelConfig& parallel, const RanksHere& here,
                        const FreeMemory& free) {
  const std::int64_t need = bytes_here_if_crowded(plan, parallel, here);
  if (need <= free.bytes || bytes_here(plan, parallel, here) > free.bytes) return "";
  return text("where all tokens go to the experts of one rank, ", human_bytes(need), " is needed");
}

std::string what_would_fit(const TrainConfig& c, const RanksHere& here, const FreeMemory& free,
                           const OpenCounter& open) {
  return advice(c, {here, free, open});
}

std::string must_fit(const TrainConfig& c, const RanksHere& here, const FreeMemory& free,
                     const OpenCounter& open) {
  const std::string who = who_needs(here, layout_of(c.parallel).world());
  std::string need;
  if (!countable(c)) {
    if (bytes_at_least(c) <= double(free.bytes)) return "";
    need = text("more than ", human(bytes_at_least(c)), " of memory");
  } else {
    const Plan plan = plan_run(c, open);
    const std::int64_t bytes = bytes_here(plan, c.parallel, here),
                       on_disk = disk_here(plan, c.parallel, here);
    if (const int ranks = here.count(); on_disk > free.on_disk)
      fail(Kind::usage, ranks == 1 ? "this run puts " : text("the ", ranks, " ranks on this machine put "),
           human_bytes(on_disk),
           c.optimizer.offload.weights ? " of weights and optimizer states" : " of optimizer states",
           " in files, and {optimizer.offload.directory} ", c.optimizer.offload.directory, " has ",
           human_bytes(free.on_disk), " left: take another disk, or a smaller {optimizer.offload.fraction}");
    if (bytes <= free.bytes) {
      const std::string crowded = crowded_out(plan, c.parallel, here, free);
      return crowded.empty() ? "" : text(crowded, ", and ", free.by, " leaves ", human_bytes(free.bytes));
    }
    need = text(human_bytes(bytes), " of memory (", categories(plan, c.parallel, here), ")");
  }
  fail(Kind::usage, who, need, ", and ", free.by, " leaves ", human_bytes(free.bytes), "; ",
       what_would_fit(c, here, free, open), "; {no_memory_check} starts all the same");
}

}  // namespace weft
