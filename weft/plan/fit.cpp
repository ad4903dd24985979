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
    return Found{found - changes.begin(), text(found->flags, " would need ", human_bytes(*need(*found)))};
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

/// Of sizes, the one that must be halved the fewest times is to blame; of two, the first.
std::string advice(const TrainConfig& c, const Room& room) {
  for (const Changes& changes : changes_of_means(c))
    if (const auto found = room.first(changes)) return found->said;
  Room::Found best{.place = std::numeric_limits<std::ptrdiff_t>::max(),
                   .said = "take a smaller model, or more machines"};
  for (const Changes& changes : changes_of_sizes(c))
    if (auto found = room.first(changes); found && found->place < best.place) best = std::move(*found);
  return best.said;
}

std::string categories(const Plan& plan, const ParallelConfig& parallel, const RanksHere& here) {
  const KindOfRank& most =
      *std::ranges::max_element(plan.kinds, {}, [](const KindOfRank& k) { return k.memory.total_peak; });
  std::string out = here.count() > 1 || parallel.pp > 1 ? "of the largest rank " : "";
  bool first = true;
  for (int use = 0; use < uses; ++use) {
    if (most.memory.peak[std::size_t(use)] == 0) continue;
    out += text(first ? "" : ", ", human_bytes(most.memory.peak[std::size_t(use)]), " ", name(Use(use)));
    first = false;
  }
  if (most.training < most.memory.total_peak)
    out += text(" while it evaluates, ", human_bytes(most.training), " in all while it trains");
  return out;
}

/// "the 4 ranks on this machine need ".
std::string who_needs(const RanksHere& here, int world) {
  if (here.count() > 1)
    return text("the ", here.count(), " ranks on ", here.gpu.empty() ? "this machine" : here.gpu, " need ");
  return here.gpu.empty() || world == 1 ? "this run needs " : text("the rank on ", here.gpu, " needs ");
}

}  // namespace

std::int64_t bytes_here(const Plan& plan, const ParallelConfig& parallel, const RanksHere& here) {
  std::int64_t bytes = 0;
  for (int rank = here.first; rank <= here.last; rank += here.every)
    bytes += bytes_of_ranks(plan, parallel, rank, rank);
  if (!here.gpu.empty()) return bytes;
  return bytes + (here.one_process ? 1 : here.count()) * overhead_of_a_process();
}

std::string what_would_fit(const TrainConfig& c, const RanksHere& here, const FreeMemory& free,
                           const OpenCounter& open) {
  return advice(c, {here, free, open});
}

void must_fit(const TrainConfig& c, const RanksHere& here, const FreeMemory& free, const OpenCounter& open) {
  const std::string who = who_needs(here, layout_of(c.parallel).world());
  std::string need;
  if (!countable(c)) {
    if (bytes_at_least(c) <= double(free.bytes)) return;
    need = text("more than ", human(bytes_at_least(c)), " of memory");
  } else {
    const Plan plan = plan_run(c, open);
    const std::int64_t bytes = bytes_here(plan, c.parallel, here);
    if (bytes <= free.bytes) return;
    need = text(human_bytes(bytes), " of memory (", categories(plan, c.parallel, here), ")");
  }
  fail(Kind::usage, who, need, ", and ", free.by, " leaves ", human_bytes(free.bytes), "; ",
       what_would_fit(c, here, free, open), "; {no_memory_check} starts all the same");
}

}  // namespace weft
