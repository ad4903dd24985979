// How long a step of forward and backward takes under each pipeline schedule, beside what the rehearsal of
// the same schedule says with the run's own measured cost of every computation.
#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <numeric>

#include "weft/backend/open.h"
#include "weft/base/clock.h"
#include "weft/comm/threads.h"
#include "weft/mesh/mesh.h"
#include "weft/model/gpt/gpt.h"
#include "weft/optim/weights.h"
#include "weft/pipe/choose.h"
#include "weft/pipe/rehearse.h"
#include "weft/pipe/runner.h"
#include "weft/tensor/host.h"
#include "weft/train/stages.h"

using namespace weft;

namespace {

constexpr int ranks = 2, microbatches = 8, warm_up = 1, runs = 7;
constexpr std::int64_t batch = 1;

ModelConfig model() {
  ModelConfig m;
  m.layers = 8;
  m.hidden = 512;
  m.heads = 8;
  m.sequence = m.max_positions = 128;
  m.vocabulary = 8192;
  m.hidden_dropout = m.attention_dropout = 0;
  m.tied_output = false;
  complete(m);
  return m;
}

Batch tokens(Device& device, const ModelConfig& m) {
  const auto all = std::size_t(m.sequence * batch);
  std::vector<std::int32_t> words(all), places(all);
  std::iota(places.begin(), places.end(), 0);
  for (std::size_t i = 0; i < all; ++i) words[i] = std::int32_t(i * 7919 % std::size_t(m.vocabulary));
  const Shape shape{m.sequence, batch};
  Batch out;
  out.text = {.tokens = from_host(device, shape, words),
              .places = from_host(device, {m.sequence}, places),
              .positions = from_host(device, shape, places),
              .types = {},
              .segments = {}};
  out.targets = from_host(device, shape, words);
  out.mask = from_host(device, shape, std::vector<float>(all, 1.F));
  out.hold_samples(device, std::vector<std::int64_t>(std::size_t(batch)));
  return out;
}

template <class T>
T median(std::vector<T> values) {
  std::ranges::sort(values);
  return values.at(values.size() / 2);
}

/// What all ranks saw of one schedule.
struct StepTimes {
  std::vector<double> steps;  // seconds
  std::map<pipe::Action, std::vector<double>> computations;
  std::mutex mutex;
};

class Notes final : public pipe::Timekeeper {
 public:
  explicit Notes(StepTimes& all) : all_(all) {}
  void took(const pipe::Action& action, Stretch stretch) override {
    const std::lock_guard lock(all_.mutex);
    all_.computations[action].push_back(stretch.to.since(stretch.from));
  }

 private:
  StepTimes& all_;
};

void measure(const ParallelConfig& parallel, StepTimes& all) {
  const ModelConfig m = model();
  const auto parts = stages_of(gpt_kind(), m, parallel);
  const pipe::Schedule schedule = schedule_of(parallel, microbatches);
  run_as_threads(parallel.pp, [&](Communicator& world) {
    const auto device = open_device("cpu", {.threads = ranks / parallel.pp});
    const ProcessMesh mesh(ParallelLayout({.pp = parallel.pp}), world);
    std::map<int, Stage> stages;
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (schedule.home[i] == world.rank())
        stages[int(i)] = build_gpt(m, parts[i], {.tp = mesh.along(Axis::tp)}, *device);
    Weights weights(
        [&](const VisitParameter& visit) {
          for (auto& [number, stage] : stages) stage.each_parameter(visit);
        },
        *device, Dtype::f32, Weights::For::training);
    weights.initialize(1);
    const std::vector<Batch> batches(microbatches, tokens(*device, m));
    const std::vector<LossFactors> factors(microbatches);
    pipe::Runner runner(schedule, stages, mesh.along(Axis::pp), *device);
    Notes notes(all);
    const pipe::Parcel parcel{.hidden = {m.sequence, batch, m.hidden}, .memory = {}, .dtype = Dtype::f32};
    for (int run = 0; run < warm_up + runs; ++run) {
      world.barrier();
      const Stopwatch watch;
      runner.run({.microbatches = batches,
                  .loss_factors = factors,
                  .place = {},
                  .parcels = {&parcel, 1},
                  .timekeeper = run < warm_up ? nullptr : &notes},
                 [](int, const Pass&) {});
      world.barrier();
      if (world.rank() == 0 && run >= warm_up) all.steps.push_back(watch.seconds());
    }
  });
}

void row(const ParallelConfig& parallel, double alone) {
  StepTimes all;
  measure(parallel, all);
  const auto cost_of = [&](const pipe::Action& a) { return int(1e6 * median(all.computations.at(a))); };
  const auto played = pipe::rehearse(schedule_of(parallel, microbatches), cost_of, 0);
  const double step = median(all.steps), rehearsed = 1e-6 * played.duration;
  const auto [least, most] = std::ranges::minmax(all.steps);
  std::printf("| %s | %.1f | %.1f to %.1f | %.1f | %.1f %% | %.1f %% | %.2f |\n", parallel.schedule.c_str(),
              1e3 * step, 1e3 * least, 1e3 * most, 1e3 * rehearsed, 100 * rehearsed / step,
              100 * played.bubble, alone / step);
}

}  // namespace

int main() {
  StepTimes alone;
  measure({.pp = 1}, alone);
  const double step = median(alone.steps);
  std::printf("one rank with %d threads: %.1f ms a step\n\n", ranks, 1e3 * step);
  std::printf(
      "| schedule | step, ms | spread | rehearsed, ms | rehearsed / step | bubble | speed over one rank |\n");
  std::printf("|---|---|---|---|---|---|---|\n");
  row({.pp = ranks, .schedule = "1f1b"}, step);
  row({.pp = ranks, .schedule = "gpipe"}, step);
  row({.pp = ranks, .schedule = "interleaved", .virtual_stages = 2}, step);
  row({.pp = ranks, .schedule = "zb-h1"}, step);
  row({.pp = ranks, .schedule = "zb-v", .virtual_stages = 2}, step);
}
