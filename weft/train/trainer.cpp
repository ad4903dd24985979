// Building a run from its settings, and the loop.
#include "weft/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/model/count.h"
#include "weft/ops/elementwise.h"
#include "weft/tensor/host.h"
#include "weft/train/stages.h"

namespace weft {

/// What adds up between two lines of the log.
struct Trainer::Interval {
  Stopwatch watch;
  double loss = 0;
  std::int64_t steps = 0, applied = 0, skipped = 0, not_finite = 0;
  double tokens = 0;
  void forget() { *this = {}; }
  void add(const StepReport& report) {
    ++steps;
    tokens += report.tokens;
    if (report.applied) {
      ++applied;
      loss += report.loss;
    } else {
      ++(report.loss_finite ? skipped : not_finite);
    }
  }
};

Trainer::Trainer(const TrainConfig& config, const RunData& data, const Lent& lent)
    : config_(config),
      data_(data),
      lent_(lent),
      batches_(config.batch, config.parallel.dp, config.model.sequence),
      steps_(steps_of(config, batches_)),
      rate_(rate_plan(config, steps_)),
      ends_rate_(embedding_rate_plan(config, steps_)),
      decay_(decay_plan(config, steps_)),
      replica_(replica_config(config), {lent.device, lent.mesh}),
      interval_(std::make_unique<Interval>()),
      alone_(std::make_unique<Interval>()),
      timers_(config.log.timing_level) {
  build();
}

Trainer::~Trainer() = default;

Feed::Place Trainer::feed_place() const {
  return {.device = lent_.device,
          .fields = replica_.kind().fields,
          .context = {lent_.mesh.place(Axis::cp), lent_.mesh.layout().degree(Axis::cp)}};
}

void Trainer::build() {
  const auto train = data_.sets[data::Split::train];
  if (!train && !config_.eval.skip_train)
    fail(Kind::usage, "train: the data hold no training documents; see --split");
  if (train) feed_ = std::make_unique<Feed>(train, run_sampler(config_, train->size()), feed_place(), 0);
  if (lent_.outlet)
    lent_.log.info(fmt::format("{} parameters, {} steps of {} samples",
                               human_count(double(count_parameters(config_.model).total())), steps_,
                               config_.batch.global));
  if (const std::string note = exact_context(config_.model, config_.parallel); lent_.outlet && !note.empty())
    lent_.log.info(note);
  tokenizer_ = tokenizer_fact(config_, config_.model.vocabulary);
  open_checkpoints();
}

data::Turn Trainer::turn_at(std::int64_t consumed) const {
  return {.global_batch = int(batches_.at(consumed)),
          .micro_batch = int(rows_of_a_pass(config_.model, config_.batch)),
          .rank = lent_.mesh.place(Axis::dp),
          .ranks = lent_.mesh.layout().degree(Axis::dp),
          .owners = owners_of(config_)};
}

StepOrder Trainer::order_of(std::int64_t step) const {
  return {.seed = std::uint64_t(config_.run.seed),
          .step = step,
          .rate = rate_.at(learned_samples_),
          .ends_rate = ends_rate_.at(learned_samples_),
          .decay = decay_.at(learned_samples_),
          .clip = config_.optimizer.clip,
          .per_token = config_.batch.per_token_loss,
          .together = int(config_.batch.micro / rows_of_a_pass(config_.model, config_.batch)),
          .count_zeros = config_.log.zeros,
          .params_norm = config_.log.params_norm,
          .timers = nullptr};
}

bool Trainer::step_is_skipped(std::int64_t step) const {
  return std::ranges::find(config_.guard.skip_iterations, step) != config_.guard.skip_iterations.end();
}

StepReport Trainer::one_step(std::int64_t step, NotFinite trouble) {
  const data::Turn turn = turn_at(feed_->consumed());
  Laps laps(timers_.level() > 1 ? &timers_ : nullptr);
  const std::span<const Batch> batches = feed_->next(turn);
  laps.end(Part::batch_generator);
  position_.last_batch = turn.global_batch;
  if (step_is_skipped(step)) {
    skipped_samples_ += turn.global_batch;
    return {.applied = false};
  }
  StepOrder order = order_of(step);
  order.timers = &timers_;
  order.fault = fault_is_injected(step, Trial::first);
  StepReport report = replica_.step(batches, order);
  if (!report.applied && trouble == NotFinite::looked_for) report = not_finite(step, report, batches);
  if (report.applied) learned_samples_ += turn.global_batch;
  return report;
}

void Trainer::tell(std::int64_t step, const StepReport& report) {
  interval_->add(report);
  alone_->add(report);
  if (config_.guard.spiky_loss) watch_loss(step, report);
  const LogConfig& log = config_.log;
  if (log.memory_interval > 0 && step % log.memory_interval == 0) tell_memory(step);
  const bool due = step % log.interval == 0;
  const auto write = [&](report::Span span, const Interval& sum) {
    report::Step record = record_of(step, report, sum);
    record.span = span;
    lent_.outlet->write(std::move(record));
  };
  if (lent_.outlet && log.interval == 1) {
    write(report::Span::both, *interval_);
  } else if (lent_.outlet) {
    // Nobody but these files asks for single steps, and a record asks the heap for memory.
    if (!log.jsonl.empty() || !log.tensorboard.empty()) write(report::Span::step, *alone_);
    if (due || step == first_step_) write(report::Span::interval, *interval_);
  }
  if (due && timers_.level() > 0) tell_times(step, interval_->steps);
  alone_->forget();
  if (due) interval_->forget();
}

void Trainer::watch_loss(std::int64_t step, const StepReport& report) {
  const auto usual = report.applied ? spikes_.look(report.loss) : std::nullopt;
  if (!usual) return;
  lent_.log.warning(
      fmt::format("step {}: the loss {:.4g} is more than {:g} times {:.4g}, the largest of the first {}",
                  step, report.loss, SpikeWatch::factor, *usual, SpikeWatch::first));
}

void Trainer::tell_memory(std::int64_t step) const {
  if (!lent_.outlet) return;
  const MemoryMeter memory = lent_.device.memory();
  lent_.log.info(fmt::format("memory after step {}: {} allocated, {} at most", step,
                             human_bytes(memory.total), human_bytes(memory.total_peak)));
}

// Ranks of a pipeline hold different layers and remember different numbers of microbatches, so each is named.
void Trainer::tell_memory_of_ranks() const {
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

report::Step Trainer::record_of(std::int64_t step, const StepReport& report, const Interval& sum) const {
  const double seconds = sum.watch.seconds();
  report::Step out;
  out.iteration = step;
  out.iterations = steps_;
  out.consumed_samples = feed_->consumed();
  out.skipped_samples = skipped_samples_;
  out.milliseconds = 1000 * seconds / double(sum.steps);
  out.tokens_per_second = sum.tokens / seconds;
  out.learning_rate = rate_.at(learned_samples_);
  out.global_batch = position_.last_batch;
  out.losses = {{std::string(replica_.kind().losses.front()),
                 sum.applied > 0 ? sum.loss / double(sum.applied) : report.loss}};
  out.loss_scale = report.loss_scale;
  if (report.applied) out.grad_norm = report.grad_norm;
  out.zeros = report.zeros;
  out.params_norm = report.params_norm;
  out.skipped = sum.skipped;
  out.not_finite = sum.not_finite;
  if (config_.log.throughput) {
    const double flops = training_flops(config_.model, config_.model.sequence) * double(out.global_batch);
    out.teraflops = flops * double(sum.steps) / seconds / 1e12 / double(lent_.mesh.world().size());
  }
  const MemoryMeter memory = lent_.device.memory();
  out.memory = {{"mem-allocated-bytes", memory.total}, {"mem-max-allocated-bytes", memory.total_peak}};
  out.world_size = lent_.mesh.world().size();
  return out;
}

data::Turn Trainer::evaluation_turn() const {
  return {.global_batch = int(config_.eval.global > 0 ? config_.eval.global : config_.batch.global),
          .micro_batch =
              int(sums_of(config_.model)
                      .samples_of_a_pass(config_.eval.micro > 0 ? config_.eval.micro : config_.batch.micro)),
          .rank = lent_.mesh.place(Axis::dp),
          .ranks = lent_.mesh.layout().degree(Axis::dp)};
}

// "-0", or the name that was given; empty where there is one set.
std::string Trainer::name_of_set(data::Split split, std::size_t number) const {
  if (data_.sets.of[std::size_t(split)].size() < 2) return {};
  const auto& names = config_.data.validation_names;
  return number < names.size() ? "-" + names[number] : fmt::format("-{}", number);
}

// A whole set may take hours: it is told how far it is, and a run that must stop does not wait for its end.
std::optional<Evaluation> Trainer::evaluated(Feed& feed, const data::Turn& turn, std::int64_t rounds) {
  constexpr double told_every = 30;  // seconds
  const Stopwatch whole;
  Stopwatch since_told;
  Evaluation sums;
  for (std::int64_t round = 0; round < rounds; ++round) {
    if (round > 0 && asked_of_any_rank()) return std::nullopt;
    replica_.evaluate(feed.next(turn), sums);
    if (!lent_.outlet || since_told.seconds() < told_every) continue;
    since_told.restart();
    const double left = whole.seconds() * double(rounds - round - 1) / double(round + 1);
    lent_.log.info(
        fmt::format("evaluation: {} of {} batches, {} left", round + 1, rounds, human_duration(left)));
  }
  return sums;
}

bool Trainer::evaluate(std::int64_t step, data::Split split, const std::string& of) {
  const auto& sets = data_.sets.of[std::size_t(split)];
  // Every evaluation of a set goes on where the last one stopped, as Megatron's does.
  const std::int64_t from = config_.eval.whole_set ? 0 : evaluated_[split];
  bool whole = true;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    report::Evaluation told{.of = of,
                            .set = name_of_set(split, i),
                            .iteration = step,
                            .consumed_samples = feed_ ? feed_->consumed() : 0,
                            .losses = {}};
    std::int64_t consumed = from;
    whole = whole && evaluate_set(sets[i], consumed, told);
    evaluated_[split] = consumed;
    if (!whole) break;
    if (i == 0 && split == data::Split::valid) validated_ = {step, told.losses.front().second};
    if (lent_.outlet) lent_.outlet->write(told);
  }
  if (!whole && lent_.outlet) lent_.log.warning("the evaluation is broken off, as the run is to stop");
  return whole;
}

// Leaves `consumed` where a whole evaluation does, so that what is broken off changes no later one.
bool Trainer::evaluate_set(const std::shared_ptr<const data::Dataset>& given, std::int64_t& consumed,
                           report::Evaluation& into) {
  const data::Turn turn = evaluation_turn();
  const bool whole = config_.eval.whole_set;
  const auto set = whole ? data::in_whole_batches(given, turn.global_batch) : given;
  const std::int64_t rounds = whole ? set->size() / turn.global_batch : config_.eval.iterations;
  if (whole && lent_.outlet)
    lent_.log.info(fmt::format("--full-validation: {} batches of {} samples{}", rounds, turn.global_batch,
                               config_.data.mock ? ", a third of 100,000 made-up documents" : ""));
  auto sampler = whole ? data::sequential_sampler(set->size()) : run_sampler(config_, set->size());
  Feed feed(set, std::move(sampler), feed_place(), consumed);
  const auto sums = evaluated(feed, turn, rounds);
  consumed = sums ? feed.consumed() : consumed + rounds * turn.global_batch;
  if (!sums) return false;
  into.losses = {
      {std::string(replica_.kind().losses.front()), sums->tokens > 0 ? sums->loss_sum / sums->tokens : 0}};
  return true;
}

// Clocks and signals differ from rank to rank, so the ranks agree: the greatest reason of any is that of all.
std::optional<Ending> Trainer::asked_of_any_rank() const {
  const bool asked = lent_.asked_to_stop && lent_.asked_to_stop->load();
  const bool late = config_.exit.minutes > 0 && since_start_.seconds() > 60 * config_.exit.minutes;
  const std::array<std::int32_t, 1> mine{asked ? 2 : late ? 1 : 0};
  const Tensor reason = from_host<std::int32_t>(lent_.device, {1}, mine);
  lent_.mesh.world().all_reduce(reason, Reduce::max).wait();
  const int agreed = int(number(reason));
  if (agreed == 2) return Ending::asked;
  if (agreed == 1) return Ending::out_of_time;
  return std::nullopt;
}

std::optional<Ending> Trainer::must_stop(std::int64_t step) const {
  if (const auto asked = asked_of_any_rank()) return asked;
  if (config_.exit.interval > 0 && step % config_.exit.interval == 0 && step < steps_) return Ending::asked;
  return std::nullopt;
}

Ending Trainer::run() {
  interval_->forget();
  alone_->forget();
  for (std::int64_t step = first_step_; step <= steps_ && !config_.eval.skip_train; ++step) {
    tell(step, watched_step(step));
    if (step == first_step_) tell_memory_of_ranks();
    compare_copies(step);
    if (config_.eval.interval > 0 && step % config_.eval.interval == 0)
      evaluate(step, data::Split::valid, fmt::format("iteration {}", step));
    const auto ending = must_stop(step);
    save_if_due(step, ending || step == steps_);
    if (ending && step < steps_) record_one_more(step + 1);
    if (ending) return ended(*ending);
  }
  const std::string at = fmt::format("iteration {} on ", steps_);
  const bool whole = evaluate(steps_, data::Split::valid, at + "validation set") &&
                     evaluate(steps_, data::Split::test, at + "test set");
  return ended(whole ? Ending::finished : asked_of_any_rank().value_or(Ending::asked));
}

}  // namespace weft
