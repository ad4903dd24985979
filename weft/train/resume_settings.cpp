// Two listings of the same fields, side by side.
#include "weft/train/resume_settings.h"

#include <algorithm>
#include <array>
#include <functional>

#include "weft/base/error.h"
#include "weft/base/fields.h"
#include "weft/base/format.h"
#include "weft/train/save_describe.h"

namespace weft {
namespace {

// Of a model, what may change from one run to the next: how it is computed and how it learns.
constexpr std::array free_of_model{"model.recompute.",      "model.init.",
                                   "model.precision",       "model.exact",
                                   "model.hidden_dropout",  "model.attention_dropout",
                                   "model.vocabulary_unit", "model.padded_vocabulary"};
// What a person may change and should be told of.
constexpr std::array told{"model.precision",
                          "model.exact",
                          "model.hidden_dropout",
                          "model.attention_dropout",
                          "data.",
                          "batch.global",
                          "batch.rampup",
                          "batch.schedule",
                          "length.",
                          "optimizer.",
                          "scaling."};
constexpr std::array untold{"data.cache", "data.tokenizer."};
// What a step computes, beside the model and the rates, which are compared by themselves.
constexpr std::array of_a_step{"model.precision",
                               "model.hidden_dropout",
                               "model.attention_dropout",
                               "data.",
                               "batch.per_token_loss",
                               "optimizer.beta",
                               "optimizer.epsilon",
                               "optimizer.momentum",
                               "optimizer.decoupled_decay",
                               "optimizer.decay_qk_norm",
                               "optimizer.clip",
                               "optimizer.first_moment",
                               "optimizer.second_moment",
                               "optimizer.lion",
                               "optimizer.lamb",
                               "optimizer.muon",
                               "optimizer.onebit",
                               "scaling."};
// In which order it is summed.
constexpr std::array of_rounding{"parallel.", "batch.micro", "model.exact", "model.recompute.", "run.device"};

template <std::size_t n>
bool begins(const std::string& path, const std::array<const char*, n>& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](const char* start) { return path.starts_with(start); });
}

std::string spelled(const Field& field) {
  const auto words = field.write();
  return words.empty() ? "unset" : join(words, " ");
}

/// "model.layers is 4 there and 2 here", for every field that `wanted` takes and that differs.
template <class Config>
std::vector<std::string> differences(const Config& saved, const Config& given,
                                     const std::function<bool(const std::string&)>& wanted) {
  Config there = saved, here = given;  // Fields point into what they list
  const Fields before(there), now(here);
  std::vector<std::string> out;
  for (std::size_t i = 0; i < before.all().size(); ++i) {
    const Field& a = *before.all()[i];
    const Field& b = *now.all()[i];
    if (!wanted(a.path()) || a.write() == b.write()) continue;
    out.push_back(text(a.path(), " is ", spelled(a), " there and ", spelled(b), " here"));
  }
  return out;
}

void must_read_the_same_samples(const RunFacts& facts, const TrainConfig& config, const std::string& who) {
  const TrainConfig& was = facts.configuration;
  if (config.checkpoint.load_random && facts.run.seed && *facts.run.seed != config.run.seed)
    fail(Kind::usage, who, ": its seed is ", *facts.run.seed, " and --seed ", config.run.seed,
         " is asked for: leave --seed out, or add --no-load-rng");
  const bool recut = facts.layout.dp != config.parallel.dp || was.batch.micro != config.batch.micro;
  if (config.data.order == SampleOrder::cyclic && facts.run.consumed_samples > 0 && recut)
    fail(Kind::usage, who,
         ": --dataloader-type cyclic cuts every epoch by data-parallel ranks and micro batch, ",
         facts.layout.dp, " and ", was.batch.micro, " there, ", config.parallel.dp, " and ",
         config.batch.micro,
         " here: samples would come twice; keep them, or use --dataloader-type single from the start");
}

}  // namespace

void must_continue(const RunFacts& facts, const TrainConfig& config, const std::string& who) {
  const std::string &was = facts.configuration.model.kind, &is = config.model.kind;
  if (was != is) fail(Kind::usage, who, ": is of a model of the family ", was, ", and ", is, " is asked for");
  const auto differ = differences(facts.configuration, config, [](const std::string& path) {
    return path.starts_with("model.") && !begins(path, free_of_model);
  });
  if (!differ.empty())
    fail(Kind::usage, who, ": is of another model: ", join(differ, ", "),
         "; give the same flags, or --use-checkpoint-args without them");
  must_read_the_same_samples(facts, config, who);
}

void must_agree(const RunSchedules& saved, const RunSchedules& given, const std::string& who) {
  const auto differ = differences(saved, given, [](const std::string&) { return true; });
  if (differ.empty()) return;
  fail(Kind::usage, who, ": its schedules differ: ", join(differ, ", "),
       "; add --override-opt-param-scheduler for those of the command line, or "
       "--use-checkpoint-opt_param-scheduler for the checkpoint's");
}

std::string other_settings(const RunFacts& facts, const TrainConfig& config) {
  const auto differ = differences(facts.configuration, config, [](const std::string& path) {
    return begins(path, told) && !begins(path, untold);
  });
  return differ.empty() ? "" : "other settings than the checkpoint's: " + join(differ, ", ");
}

std::string settings_of_another_step(const RunFacts& facts, const TrainConfig& config) {
  return join(
      differences(facts.configuration, config,
                  [](const std::string& path) { return begins(path, of_a_step) && !begins(path, untold); }),
      ", ");
}

bool rounds_otherwise(const RunFacts& facts, const TrainConfig& config) {
  return !differences(facts.configuration, config, [](const std::string& path) {
            return begins(path, of_rounding);
          }).empty();
}

}  // namespace weft
