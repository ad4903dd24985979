// What tests share of runs that began in another program and go on in weft.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/told.h"
#include "tests/support/source_dir.h"
#include "tests/train/tiny_run.h"
#include "weft/cli/read_model.h"
#include "weft/cli/verbs.h"

namespace weft::cli {

inline std::filesystem::path exchange_golden(const std::string& name) {
  return std::filesystem::path(WEFT_SOURCE_DIR) / "tests/golden/exchange" / name;
}

inline Told convert(std::vector<std::string> words) {
  words.insert(words.begin(), "convert");
  return told(checkpoint_verb(), std::move(words));
}

/// What is left of the seven steps of four samples that the golden runs took, from a converted checkpoint on.
inline TrainConfig rest_of_theirs(const ParallelConfig& layout, const std::filesystem::path& from) {
  TrainConfig c = weft::testing::tiny_run();
  c.model = find_model(from).settings.model;
  c.batch.micro = 1;
  c.batch.global = 4;
  c.length.iterations = 7;
  c.rate.peak = 2e-3;
  c.optimizer.beta2 = 0.95;
  c.optimizer.weight_decay = 0.1;
  c.eval.interval = 0;
  c.checkpoint.load = from.string();
  c.parallel = layout;
  c.run.ranks = layout.tp * layout.pp * layout.dp;
  return c;
}

inline weft::testing::Told train_on(const TrainConfig& config, std::shared_ptr<const data::Dataset> samples) {
  RunData data{.tokenizer = {}, .sets = {}, .length = run_length(config)};
  data.sets.of[std::size_t(data::Split::train)] = {std::move(samples)};
  return weft::testing::train(config, {.data = &data});
}

}  // namespace weft::cli
