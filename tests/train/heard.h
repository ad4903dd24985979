// A run on one rank, and everything that it tells.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/backend/open.h"
#include "weft/comm/solo.h"
#include "weft/train/trainer.h"
#include "weft/train/validate.h"

namespace weft::testing {

struct Heard {
  std::vector<report::StepRecord> steps;
  std::vector<report::Evaluation> evaluations;
  std::vector<report::Timers> timers;
  Ending ending = Ending::finished;

  template <class Of>
  auto each(Of of) const {
    std::vector<std::decay_t<decltype(of(steps[0]))>> out;
    for (const report::StepRecord& step : steps) out.push_back(of(step));
    return out;
  }
  std::vector<double> losses() const {
    return each([](const report::StepRecord& s) { return s.losses.at(0).second; });
  }
};

class Ear final : public report::Sink {
 public:
  explicit Ear(Heard& heard) : heard_(heard) {}
  const char* name() const override { return "the test"; }
  void write(const report::StepRecord& step) override { heard_.steps.push_back(step); }
  void write(const report::Evaluation& evaluation) override { heard_.evaluations.push_back(evaluation); }
  void write(const report::Timers& timers) override { heard_.timers.push_back(timers); }

 private:
  Heard& heard_;
};

struct More {
  std::vector<std::unique_ptr<report::Sink>> sinks = {};
  const std::atomic<bool>* asked = nullptr;
  Log log = {};
};

inline Heard run(TrainConfig c, More more = {}) {
  complete(c, 1);
  const RunData data = open_run_data(c);
  const auto device = open_device("cpu", {.threads = 1});
  SoloCommunicator world;
  const ProcessMesh mesh(ParallelLayout({}), world);
  Heard heard;
  more.sinks.push_back(std::make_unique<Ear>(heard));
  report::Outlet outlet(std::move(more.sinks), 1000, [](const std::string& said) { ADD_FAILURE() << said; });
  Trainer trainer(
      c, data,
      {.device = *device, .mesh = mesh, .log = more.log, .outlet = &outlet, .asked_to_stop = more.asked});
  heard.ending = trainer.run();
  outlet.drain();
  return heard;
}

}  // namespace weft::testing
