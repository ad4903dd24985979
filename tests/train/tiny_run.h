// Whole runs of the trainer that take a fraction of a second, and what they told.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/checkpoint/faulty.h"
#include "tests/support/temporary.h"
#include "tests/support/trials.h"
#include "weft/backend/open.h"
#include "weft/checkpoint/load.h"
#include "weft/checkpoint/step.h"
#include "weft/comm/solo.h"
#include "weft/comm/threads.h"
#include "weft/tensor/host.h"
#include "weft/train/settings.h"
#include "weft/train/stages.h"
#include "weft/train/trainer.h"
#include "weft/train/validate.h"

namespace weft::testing {

/// Six steps of eight samples on a model of two layers, with dropout, warm-up and validation.
inline TrainConfig tiny_run() {
  TrainConfig c;
  c.model.layers = 2;
  c.model.hidden = 16;
  c.model.heads = 4;
  c.model.sequence = c.model.max_positions = 8;
  c.model.vocabulary = 29;
  c.model.vocabulary_unit = 8;
  c.data.mock = true;
  c.data.index = IndexKind::keyed;  // a stored one takes a second to shuffle
  c.batch.micro = 2;
  c.batch.global = 8;
  c.length.iterations = 6;
  c.rate.peak = 5e-3;
  c.rate.warmup_iterations = 2;
  c.eval.interval = 2;
  c.eval.iterations = 1;
  c.log.interval = 1;
  c.parallel.dp = 1;
  c.run.ranks = 1;
  return c;
}

inline TrainConfig completed(TrainConfig config) {
  complete(config, config.run.ranks);
  return config;
}

inline TrainConfig tiny_run_without_evaluation() {
  TrainConfig c = tiny_run();
  c.eval.interval = 0;
  return completed(c);
}

inline TrainConfig saving(TrainConfig config, const std::filesystem::path& folder) {
  config.checkpoint.save = folder.string();
  config.checkpoint.interval = 3;
  return config;
}

struct Told {
  Ending ending = Ending::finished;
  std::vector<double> losses, norms, scales, validations;
  std::vector<report::StepRecord> steps;
  std::multiset<std::int64_t> samples;  // that were read, if a ledger was asked for
  std::string said;
};

struct Options {
  const FileSystem* files = nullptr;  // null: a disk that takes every sync as done
  bool ledger = false;
  const RunData* data = nullptr;  // opened before, where many runs read the same
  std::string machine = "here";   // that the ranks compute on
  std::function<void(std::int64_t step, Replica&)> before_step = {};
};

class Listener final : public report::Sink {
 public:
  explicit Listener(Told& run) : run_(run) {}
  const char* name() const override { return "listener"; }
  void write(const report::StepRecord& step) override {
    run_.losses.push_back(step.losses.front().second);
    run_.norms.push_back(step.grad_norm.value_or(-1));
    run_.scales.push_back(step.loss_scale);
    run_.steps.push_back(step);
  }
  void write(const report::Evaluation& evaluation) override {
    run_.validations.push_back(evaluation.losses.front().second);
  }

 private:
  Told& run_;
};

/// Notes which samples are read.
class Ledger final : public data::Dataset {
 public:
  explicit Ledger(std::shared_ptr<const data::Dataset> of) : of_(std::move(of)) {}
  std::int64_t size() const override { return of_->size(); }
  void fill(std::int64_t i, data::Sample& into) const override {
    {
      const std::scoped_lock lock(mutex_);
      read_.insert(i);
    }
    of_->fill(i, into);
  }
  std::vector<data::Origin> origins(std::int64_t i) const override { return of_->origins(i); }
  const std::multiset<std::int64_t>& read() const { return read_; }

 private:
  std::shared_ptr<const data::Dataset> of_;
  mutable std::mutex mutex_;
  mutable std::multiset<std::int64_t> read_;
};

inline std::multiset<std::int64_t> counted(std::int64_t from, std::int64_t to) {
  std::multiset<std::int64_t> out;
  for (std::int64_t i = from; i < to; ++i) out.insert(i);
  return out;
}

/// What is written to standard error meanwhile.
class Overheard {
 public:
  explicit Overheard(std::string& into) : into_(into) { ::testing::internal::CaptureStderr(); }
  ~Overheard() { into_ = ::testing::internal::GetCapturedStderr(); }

 private:
  std::string& into_;
};

inline void train_into(Told& run, const TrainConfig& config, const Options& options) {
  const checkpoint::testing::Swift swift;
  const Overheard overheard(run.said);
  RunData data = options.data != nullptr ? *options.data : open_run_data(config);
  data.length = run_length(config);
  auto& train_sets = data.sets.of[std::size_t(data::Split::train)];  // none where nothing is trained
  const auto ledger = std::make_shared<Ledger>(train_sets.empty() ? nullptr : train_sets.front());
  if (options.ledger) train_sets.front() = ledger;
  std::vector<std::unique_ptr<report::Sink>> sinks;
  sinks.push_back(std::make_unique<Listener>(run));
  {
    report::Outlet outlet(std::move(sinks), 1000, [](const std::string&) {});
    const ParallelConfig& p = config.parallel;
    const ParallelLayout layout = layout_of(p);
    const Log log(0, {.stamped = false});
    run_as_threads(layout.world(), [&](Communicator& world) {
      const auto device =
          open_device("cpu", {.threads = 1, .exact = config.model.exact, .trials = weft::testing::trials()});
      const ProcessMesh mesh(layout, world);
      Trainer trainer(config, data,
                      {.device = *device,
                       .mesh = mesh,
                       .log = log,
                       .outlet = world.rank() == 0 ? &outlet : nullptr,
                       .files = options.files != nullptr ? options.files : &swift,
                       .machine = options.machine,
                       .before_step = options.before_step});
      const Ending ending = trainer.run();
      if (world.rank() == 0) run.ending = ending;
    });
  }
  run.samples = ledger->read();
}

/// Trains on thread ranks; throws what the trainer throws.
inline Told train(const TrainConfig& config, const Options& options = {}) {
  Told run;
  train_into(run, config, options);
  return run;
}

/// Six steps that save after each second one.
inline TrainConfig saving_often(const std::filesystem::path& folder) {
  TrainConfig config = saving(tiny_run(), folder);
  config.checkpoint.interval = 2;
  config.eval.interval = 0;
  return completed(config);
}

inline TrainConfig going_on(TrainConfig config) {
  config.checkpoint.load = config.checkpoint.save;
  return config;
}

/// Two steps, each saved.
inline TrainConfig saving_twice(const std::filesystem::path& folder) {
  TrainConfig config = saving_often(folder);
  config.checkpoint.interval = 1;
  config.length.iterations = 2;
  config.model.layers = 1;
  config.rate.warmup_iterations = 0;
  return config;
}

/// How often such a run asks something of the file layer.
inline int calls_of(TrainConfig config) {
  const support::TemporaryDirectory folder;
  config.checkpoint.save = folder.path().string();
  const checkpoint::testing::Faulty none(1 << 30, checkpoint::testing::Manner::once);
  train(config, {.files = &none});
  return none.calls();
}

template <class T>
std::vector<T> joined(std::vector<T> a, const std::vector<T>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Every tensor of a step, whole.
inline std::map<std::string, std::vector<double>> tensors_of(const std::filesystem::path& step) {
  const auto device = open_device("cpu", {.threads = 1});
  SoloCommunicator world;
  std::vector<checkpoint::Named> all;
  const checkpoint::OpenStep opened(step);
  for (const auto& [name, stored] : opened.index().tensors)
    all.push_back(checkpoint::whole(name, empty(*device, stored.global, stored.dtype)));
  checkpoint::load(step, all, world);
  std::map<std::string, std::vector<double>> out;
  for (const auto& named : all) out[named.name] = numbers(named.tensor);
  return out;
}

}  // namespace weft::testing
