// DeepSpeed's keys of schedules of the learning rate.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/cli/dialect/deepspeed_rows.h"

namespace weft::cli::dialect::ds {
namespace {

using Json = nlohmann::json;
using enum Shape;

constexpr std::string_view type_at = "scheduler.type", rate_at = "optimizer.params.lr",
                           peak_at = "scheduler.params.warmup_max_lr";

/// Theirs, and ours.
struct Style {
  std::string_view name, style;
};
constexpr Style styles[] = {{"WarmupLR", "warmup_lr"},
                            {"WarmupDecayLR", "warmup_decay_lr"},
                            {"WarmupCosineLR", "warmup_cosine_lr"},
                            {"OneCycle", "one_cycle"},
                            {"LRRangeTest", "lr_range_test"}};

/// A parameter of some of the schedules: its field, and what DeepSpeed takes where it is not said; nothing:
/// the field's own value, and "!" that it must be said. Of a part, the field is that much of the rate.
struct Term {
  std::string_view key, types, field, otherwise = {};
  bool part = false;
};
constexpr std::string_view warm = "WarmupLR WarmupDecayLR WarmupCosineLR", lines = "WarmupLR WarmupDecayLR",
                           ends = "WarmupDecayLR WarmupCosineLR", cosine = "WarmupCosineLR",
                           cycle = "OneCycle", test = "LRRangeTest";
constexpr Term terms[] = {
    {"scheduler.params.warmup_num_steps", warm, "rate.warmup_iterations", "1000"},
    {"scheduler.params.warmup_type", warm, "rate.warmup_curve", "log"},
    {"scheduler.params.warmup_min_lr", lines, "rate.start"},
    {"scheduler.params.warmup_max_lr", lines, "rate.peak"},
    {"scheduler.params.total_num_steps", ends, "rate.decay_iterations", "!"},
    {"scheduler.params.warmup_min_ratio", cosine, "rate.start", "0", true},
    {"scheduler.params.cos_min_ratio", cosine, "rate.floor", "0.0001", true},
    {"scheduler.params.cycle_min_lr", cycle, "rate.start", "!"},
    {"scheduler.params.cycle_max_lr", cycle, "rate.peak", "!"},
    {"scheduler.params.cycle_first_step_size", cycle, "rate.cycle.up"},
    {"scheduler.params.cycle_second_step_size", cycle, "rate.cycle.down"},
    {"scheduler.params.cycle_first_stair_count", cycle, "rate.cycle.stairs_up"},
    {"scheduler.params.cycle_second_stair_count", cycle, "rate.cycle.stairs_down"},
    {"scheduler.params.decay_step_size", cycle, "rate.cycle.decay_steps"},
    {"scheduler.params.decay_lr_rate", cycle, "rate.cycle.decay"},
    {"scheduler.params.cycle_momentum", cycle, "rate.cycle.momentum", "true"},
    {"scheduler.params.cycle_min_mom", cycle, "rate.cycle.least_momentum"},
    {"scheduler.params.cycle_max_mom", cycle, "rate.cycle.most_momentum"},
    {"scheduler.params.decay_mom_rate", cycle, "rate.cycle.momentum_growth"},
    {"scheduler.params.lr_range_test_min_lr", test, "rate.peak", "0.001"},
    {"scheduler.params.lr_range_test_step_size", test, "rate.climb.steps"},
    {"scheduler.params.lr_range_test_step_rate", test, "rate.climb.growth"},
    {"scheduler.params.lr_range_test_staircase", test, "rate.climb.stairs"},
};

bool has_term(const Term& term, std::string_view type) {
  return std::ranges::count(split(term.types, ' '), type) > 0;
}

double peak_of(const Taking& t) {
  const Json* peak = t.find(rate_at);
  if (peak == nullptr || !peak->is_number())
    fail(Kind::usage, type_at, " WarmupCosineLR gives parts of a rate: add ", rate_at, ", the rate");
  return peak->get<double>();
}

void set_term(Taking& t, const Term& term, const Json& value) {
  if (term.part) return t.set(term.key, term.field, {write_word(peak_of(t) * value.get<double>())});
  t.set(term.key, term.field, {value.is_string() ? value.get<std::string>() : number(value)});
}

// Of all schedules this one alone has a rate of its own where none is said, whatever the optimizer's is.
void usual_peak(Taking& t, std::string_view type) {
  if (type != "WarmupDecayLR" || t.find(peak_at) != nullptr || t.leaves(peak_at)) return;
  const Json* rate = t.find(rate_at);
  if (rate == nullptr) return t.usual("rate.peak", "0.001");
  if (number(*rate) != number(Json(0.001)))
    fail(Kind::usage, type_at, " ", type, " goes to 0.001 where ", peak_at, " is not said, and ", rate_at,
         " is ", number(*rate), ": add ", peak_at);
}

void schedule(Taking& t, const Key& key, const Json& value) {
  const std::string type = value.get<std::string>();
  const auto* const at = std::ranges::find(styles, type, &Style::name);
  if (at == std::end(styles))
    fail(Kind::usage, key.path, " ", type,
         ": DeepSpeed has WarmupLR, WarmupDecayLR, WarmupCosineLR, OneCycle and LRRangeTest");
  t.set(key.path, "rate.style", {std::string(at->style)});
  usual_peak(t, type);
  for (const Term& one : terms) {
    const bool is_said = t.find(one.key) != nullptr || t.leaves(one.key);
    if (!has_term(one, type) || one.otherwise.empty() || is_said) continue;
    if (one.otherwise == "!") fail(Kind::usage, key.path, " ", type, " needs ", one.key);
    set_term(t, one, one.part ? Json::parse(one.otherwise) : Json(one.otherwise));
  }
}

void take_term(Taking& t, const Key& key, const Json& value) {
  const std::string type = t.word_at(type_at, "");
  if (type.empty()) fail(Kind::usage, key.path, " needs ", type_at);
  const auto* const at = std::ranges::find(terms, key.path, &Term::key);
  if (!has_term(*at, type)) fail(Kind::usage, key.path, ": ", type, " has no such parameter");
  set_term(t, *at, value);
}

constexpr std::string_view
    warms = R"({"scheduler":{"type":"WarmupLR"}})",
    decays = R"({"scheduler":{"type":"WarmupDecayLR","params":{"total_num_steps":5000}}})",
    waves = R"({"optimizer":{"type":"Adam","params":{"lr":0.01}},)"
            R"("scheduler":{"type":"WarmupCosineLR","params":{"total_num_steps":5000}}})",
    cycles = R"({"scheduler":{"type":"OneCycle","params":{"cycle_min_lr":0.001,"cycle_max_lr":0.01,)"
             R"("cycle_momentum":false}}})",
    moves = R"({"scheduler":{"type":"OneCycle","params":{"cycle_min_lr":0.001,"cycle_max_lr":0.01,)"
            R"("decay_step_size":10}}})",
    climbs = R"({"scheduler":{"type":"LRRangeTest"}})";

constexpr Key of_schedule(std::string_view path, Shape shape, std::string_view text,
                          std::string_view sample) {
  return does(path, shape, take_term, text, sample);
}

// clang-format off
constexpr Key schedules[] = {
    does("scheduler.type", text, schedule,
         "`rate.style`: warmup_lr, warmup_decay_lr, warmup_cosine_lr, one_cycle, lr_range_test, with DeepSpeed's rate at every step", "\"WarmupLR\""),
    beside(warms, of_schedule("scheduler.params.warmup_num_steps", whole, "`rate.warmup_iterations`; 1000 where it is not said", "500")),
    beside(warms, of_schedule("scheduler.params.warmup_type", text, "`rate.warmup_curve`: log, also where it is not said, or linear", "\"linear\"")),
    beside(warms, of_schedule("scheduler.params.warmup_min_lr", real, "`rate.start`", "0.00001")),
    beside(warms, of_schedule("scheduler.params.warmup_max_lr", real, "`rate.peak`; where it is not said, optimizer.params.lr or --lr, and WarmupDecayLR goes to 0.001", "0.002")),
    beside(decays, of_schedule("scheduler.params.total_num_steps", whole, "`rate.decay_iterations`", "7000")),
    beside(waves, of_schedule("scheduler.params.warmup_min_ratio", real, "`rate.start`, as a part of optimizer.params.lr", "0.1")),
    beside(waves, of_schedule("scheduler.params.cos_min_ratio", real, "`rate.floor`, as a part of optimizer.params.lr; 0.0001 where it is not said", "0.2")),
    beside(cycles, of_schedule("scheduler.params.cycle_min_lr", real, "`rate.start`", "0.002")),
    beside(cycles, of_schedule("scheduler.params.cycle_max_lr", real, "`rate.peak`", "0.02")),
    beside(cycles, of_schedule("scheduler.params.cycle_first_step_size", whole, "`rate.cycle.up`; 2000 where it is not said", "500")),
    beside(cycles, of_schedule("scheduler.params.cycle_second_step_size", whole, "`rate.cycle.down`; as many where it is not said", "500")),
    beside(cycles, of_schedule("scheduler.params.cycle_first_stair_count", whole, "`rate.cycle.stairs_up`", "5")),
    beside(cycles, of_schedule("scheduler.params.cycle_second_stair_count", whole, "`rate.cycle.stairs_down`; as many where it is not said", "5")),
    beside(cycles, of_schedule("scheduler.params.decay_step_size", whole, "`rate.cycle.decay_steps`", "100")),
    beside(cycles, of_schedule("scheduler.params.decay_lr_rate", real, "`rate.cycle.decay`", "0.1")),
    beside(moves, of_schedule("scheduler.params.cycle_momentum", flag, "`rate.cycle.momentum`, true where it is not said: the first beta goes against the rate, and the second is 0.99", "false")),
    beside(moves, of_schedule("scheduler.params.cycle_min_mom", real, "`rate.cycle.least_momentum`: the first beta at the peak of the rate; 0.8 where it is not said", "0.85")),
    beside(moves, of_schedule("scheduler.params.cycle_max_mom", real, "`rate.cycle.most_momentum`: and at its ends; 0.9 where it is not said", "0.95")),
    beside(moves, of_schedule("scheduler.params.decay_mom_rate", real, "`rate.cycle.momentum_growth`: with each decay_step_size after the cycle", "0.001")),
    beside(climbs, of_schedule("scheduler.params.lr_range_test_min_lr", real, "`rate.peak`, where the test begins; 0.001 where it is not said", "0.0001")),
    beside(climbs, of_schedule("scheduler.params.lr_range_test_step_size", whole, "`rate.climb.steps`; 2000 where it is not said", "100")),
    beside(climbs, of_schedule("scheduler.params.lr_range_test_step_rate", real, "`rate.climb.growth`", "5")),
    beside(climbs, of_schedule("scheduler.params.lr_range_test_staircase", flag, "`rate.climb.stairs`", "true")),
    idle("scheduler.params.last_batch_iteration", real, "a run goes on where its checkpoint stands", "-1"),
};
// clang-format on

}  // namespace

std::vector<Key> schedule_keys() { return {std::begin(schedules), std::end(schedules)}; }

}  // namespace weft::cli::dialect::ds
