// Nobody asks for most of what could be told, and what nobody asks for is not put together.
#include "weft/train/teller.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "weft/base/format.h"
#include "weft/ops/elementwise.h"
#include "weft/tensor/host.h"

namespace weft {

void Teller::Interval::add(const StepReport& report) {
  ++steps;
  tokens += report.tokens;
  if (report.applied) {
    ++applied;
    if (losses.empty()) losses = ByLoss<double>(report.losses.size());
    for (std::size_t i = 0; i < losses.size(); ++i) losses[i] += report.losses[i];
  } else {
    ++(report.loss_finite ? skipped : not_finite);
  }
}

Teller::Teller(TellerSettings settings, const Lent& lent, const Progress& progress)
    : settings_(std::move(settings)),
      lent_(lent),
      progress_(progress),
      reruns_(settings_.losses),
      timers_(settings_.log.timing_level) {}

void Teller::begin() {
  interval_.forget();
  alone_.forget();
  engine_.forget();
}

void Teller::tell(std::int64_t step, const StepReport& report, std::int64_t consumed) {
  if (report.losses.empty()) return alone_.forget();  // a step that was to be left out
  if (report.applied && report.tokens == 0) miss_tokens(step);
  interval_.add(report);
  alone_.add(report);
  engine_.add(report);
  if (settings_.log.throughput)
    for (Interval* sum : {&interval_, &alone_}) sum->flops += settings_.flops_of(step, progress_.last_batch);
  if (settings_.spiky_loss) watch_loss(step, report);
  const LogConfig& log = settings_.log;
  if (log.memory_interval > 0 && step % log.memory_interval == 0) tell_memory(step);
  const bool due = step % log.interval == 0;
  const auto write = [&](report::RecordScope span, const Interval& sum) {
    report::StepRecord record = record_of(report, sum);
    record.iteration = step;
    record.consumed_samples = consumed;
    if (progress_.curriculum.counts_less()) record.consumed_tokens = progress_.consumed_tokens;
    if (progress_.curriculum.shortens()) record.sequence_length = progress_.curriculum.length_at(step);
    record.reserved_length = progress_.curriculum.reserved_at(step);
    if (record.reserved_length) record.actual_length = progress_.curriculum.tokens_of_a_row_at(step);
    record.span = span;
    record.engine_apart = engine_apart();
    lent_.outlet->write(std::move(record));
  };
  if (engine_apart() && step % log.engine_interval == 0) {
    engine_.losses = report.losses;  // of this step: times are means, and the loss is none
    engine_.applied = 1;
    if (lent_.outlet) write(report::RecordScope::engine, engine_);
    engine_.forget();
  }
  if (lent_.outlet && log.interval == 1) {
    write(report::RecordScope::both, interval_);
  } else if (lent_.outlet) {
    // Nobody but these files asks for single steps, and a record asks the heap for memory.
    if (!log.jsonl.empty() || !log.tensorboard.empty()) write(report::RecordScope::step, alone_);
    if (due || step == progress_.first_step) write(report::RecordScope::interval, interval_);
  }
  if (report.differs) reruns_.add(*report.differs);
  if (lent_.outlet && !reruns_.empty() && (due || step == progress_.steps)) lent_.log.info(reruns_.told());
  if (due && timers_.level() > 0) tell_times(step, interval_.steps);
  alone_.forget();
  if (due) interval_.forget();
}

void Teller::miss_tokens(std::int64_t step) {
  if (!std::exchange(misses_tokens_, true) && lent_.outlet)
    lent_.log.warning(fmt::format(
        "step {}: no token of the batch counts, so its loss is told as 0 and nothing is learned from it; "
        "weft data why shows what samples teach (this is said once)",
        step));
}

void Teller::watch_loss(std::int64_t step, const StepReport& report) {
  const auto usual = report.applied ? spikes_.look(report.loss()) : std::nullopt;
  if (!usual) return;
  lent_.log.warning(
      fmt::format("step {}: the loss {:.4g} is more than {:g} times {:.4g}, the largest of the first {}",
                  step, report.loss(), SpikeWatch::factor, *usual, SpikeWatch::first));
}

void Teller::tell_memory(std::int64_t step) const {
  if (!lent_.outlet) return;
  const MemoryMeter memory = lent_.device.memory();
  lent_.log.info(fmt::format("memory after step {}: {} allocated, {} at most", step,
                             human_bytes(memory.total), human_bytes(memory.total_peak)));
}

void Teller::tell_memory_of_ranks() const {
  Communicator& world = lent_.mesh.world();
  if (world.size() == 1) return;
  const Tensor mine = ops::zeros(lent_.device, {1}, Dtype::f64);
  const Tensor all = ops::zeros(lent_.device, {world.size()}, Dtype::f64);
  ops::fill(mine, double(lent_.device.memory().total_peak));
  world.all_gather(all, mine).wait();
  std::string sentence = "most memory held in the first step, by rank:";
  for (const double bytes : to_host<double>(all)) sentence += " " + human_bytes(std::int64_t(bytes));
  if (lent_.outlet) lent_.log.info(sentence);
}

report::StepRecord Teller::record_of(const StepReport& report, const Interval& sum) const {
  const double seconds = sum.watch.seconds();
  report::StepRecord out;
  out.iterations = progress_.steps;
  out.skipped_samples = progress_.skipped_samples;
  out.milliseconds = 1000 * seconds / double(sum.steps);
  out.tokens_per_second = sum.tokens / seconds;
  out.learning_rate = progress_.schedules.rate.at(progress_.learned);
  out.global_batch = progress_.last_batch;
  out.sequence = settings_.sequence;
  for (std::size_t i = 0; i < settings_.losses.size(); ++i)
    out.losses.emplace_back(settings_.losses[i],
                            sum.applied > 0 ? sum.losses[i] / double(sum.applied) : report.losses[i]);
  if (report.differs) {
    for (std::size_t i = 0; i < settings_.losses.size(); ++i)
      out.reruns.emplace_back(settings_.losses[i] + " rerun difference", report.differs->losses[i]);
    out.reruns.emplace_back("grad norm rerun difference", report.differs->grad_norm);
  }
  out.loss_scale = report.next_loss_scale;
  if (report.applied) out.grad_norm = report.grad_norm;
  out.zeros = report.zeros;
  if (report.routing) tell_experts(*report.routing, out);
  out.params_norm = report.params_norm;
  if (settings_.log.greatest_score) out.greatest_score = report.greatest_score;
  out.skipped = sum.skipped;
  out.not_finite = sum.not_finite;
  if (settings_.log.throughput || settings_.log.lines == report::LineForm::deepspeed)
    out.teraflops = sum.flops / seconds / 1e12 / double(lent_.mesh.world().size());
  const MemoryMeter memory = lent_.device.memory();
  out.memory = {{"mem-allocated-bytes", memory.total}, {"mem-max-allocated-bytes", memory.total_peak}};
  out.world_size = lent_.mesh.world().size();
  return out;
}

void Teller::tell_experts(const RoutingTable& routing, report::StepRecord& into) const {
  const auto add = [&](const ExpertLoad& load, const std::string& of) {
    into.experts.emplace_back("moe/busiest_expert" + of, load.busiest);
    into.experts.emplace_back("moe/load_entropy" + of, load.entropy);
    into.experts.emplace_back("moe/dropped_share" + of, load.dropped);
  };
  add(routing.load(), "");
  if (!settings_.log.experts_by_layer) return;
  for (int layer = 0; layer < routing.layers(); ++layer) {
    if (routing.rows(layer).empty()) continue;
    const std::string of = fmt::format("_layer_{}", layer);
    add(routing.load(layer), of);
    const std::span<const float> rows = routing.rows(layer);
    into.expert_rows.emplace_back("moe/rows" + of, std::vector<double>(rows.begin(), rows.end()));
    for (std::size_t i = 0; i < settings_.balancing.size(); ++i)
      into.experts.emplace_back("moe/" + settings_.balancing[i] + of, routing.loss(layer, int(i)));
  }
}

// Ranks wait for each other in different parts, so all are asked; parts that nobody had are left out.
void Teller::tell_times(std::int64_t step, std::int64_t steps) {
  lent_.device.synchronize();  // so that the last update is over
  const auto seconds = timers_.seconds();
  std::vector<double> mine(seconds.begin(), seconds.end());
  for (double& part : mine) part *= 1000 / double(steps);
  timers_.forget();
  Communicator& world = lent_.mesh.world();
  const Tensor all = empty(lent_.device, {world.size(), parts_of_step}, Dtype::f64);
  world.all_gather(all, from_host(lent_.device, {1, parts_of_step}, mine)).wait();
  if (!lent_.outlet) return;
  const std::vector<double> milliseconds = to_host<double>(all);
  report::Timers told{.iteration = step, .form = settings_.log.timing_report, .milliseconds = {}};
  for (std::size_t part = 0; part < parts_of_step; ++part) {
    std::vector<double> of_ranks;
    for (std::size_t at = part; at < milliseconds.size(); at += parts_of_step)
      of_ranks.push_back(milliseconds[at]);
    if (std::ranges::max(of_ranks) > 0)
      told.milliseconds.emplace_back(name(StepPart(part)), std::move(of_ranks));
  }
  lent_.outlet->write(std::move(told));
}

}  // namespace weft
