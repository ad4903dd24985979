// What the trainer tells of where time went.
#include <algorithm>

#include "weft/tensor/host.h"
#include "weft/train/trainer.h"

namespace weft {

// Ranks wait for each other in different parts, so all are asked; parts that nobody had are left out.
void Trainer::tell_times(std::int64_t step, std::int64_t steps) {
  timers_.add(Part::optimizer,
              timers_.of(Part::clip) + timers_.of(Part::count_zeros) + timers_.of(Part::inner_step));
  std::vector<double> mine(timers_.seconds().begin(), timers_.seconds().end());
  for (double& part : mine) part *= 1000 / double(steps);
  timers_.forget();
  Communicator& world = lent_.mesh.world();
  const Tensor all = empty(lent_.device, {world.size(), parts_of_step}, Dtype::f64);
  world.all_gather(all, from_host(lent_.device, {1, parts_of_step}, mine)).wait();
  if (!lent_.outlet) return;
  const std::vector<double> milliseconds = to_host<double>(all);
  report::Timers told{.iteration = step, .form = config_.log.timing_report, .milliseconds = {}};
  for (std::size_t part = 0; part < parts_of_step; ++part) {
    std::vector<double> of_ranks;
    for (std::size_t at = part; at < milliseconds.size(); at += parts_of_step)
      of_ranks.push_back(milliseconds[at]);
    if (std::ranges::max(of_ranks) > 0) told.milliseconds.emplace_back(name(Part(part)), std::move(of_ranks));
  }
  lent_.outlet->write(std::move(told));
}

}  // namespace weft
