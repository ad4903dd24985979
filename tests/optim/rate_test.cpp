#include "weft/optim/rate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/source_dir.h"

using namespace weft;
using Json = nlohmann::json;

namespace {

Json golden(const char* part, const std::string& file = "lr_schedules") {
  std::ifstream in(WEFT_SOURCE_DIR "/tests/golden/optim/" + file + ".json");
  return Json::parse(in).at(part);
}

RateStyle style(const std::string& word) {
  if (word == "constant") return RateStyle::constant;
  if (word == "linear") return RateStyle::linear;
  if (word == "cosine") return RateStyle::cosine;
  return word == "WSD" ? RateStyle::wsd : RateStyle::inverse_square_root;
}

AnnealStyle anneal(const std::string& word) {
  if (word == "linear") return AnnealStyle::linear;
  if (word == "cosine") return AnnealStyle::cosine;
  return word == "minus_sqrt" ? AnnealStyle::minus_sqrt : AnnealStyle::exponential;
}

DecayGrowth growth(const std::string& word) {
  return word == "constant" ? DecayGrowth::constant
         : word == "linear" ? DecayGrowth::linear
                            : DecayGrowth::cosine;
}

RateStyle style_of_deepspeed(const std::string& type) {
  if (type == "WarmupLR") return RateStyle::warmup_lr;
  if (type == "WarmupDecayLR") return RateStyle::warmup_decay_lr;
  if (type == "WarmupCosineLR") return RateStyle::warmup_cosine_lr;
  return type == "OneCycle" ? RateStyle::one_cycle : RateStyle::lr_range_test;
}

/// A schedule of DeepSpeed's, of steps of so many samples.
RateSchedule deepspeeds(const Json& one, std::int64_t batch) {
  const Json& p = one.at("params");
  const double rate = one.at("lr");
  RateSchedule out{.style = style_of_deepspeed(one.at("type")),
                   .start = p.value("warmup_min_lr", p.value("warmup_min_ratio", 0.0) * rate),
                   .peak = p.value("warmup_max_lr", p.value("lr_range_test_min_lr", rate)),
                   .floor = p.value("cos_min_ratio", 1e-4) * rate,
                   .warmup = double(batch * p.value("warmup_num_steps", std::int64_t{0})),
                   .decay = batch * p.value("total_num_steps", std::int64_t{0}),
                   .step = batch};
  out.warmup_curve = p.value("warmup_type", "log") == "log" ? WarmupCurve::log : WarmupCurve::linear;
  if (out.style == RateStyle::one_cycle) {
    out.start = p.at("cycle_min_lr");
    out.peak = p.at("cycle_max_lr");
    out.cycle = {.up = p.at("cycle_first_step_size"),
                 .stairs_up = p.value("cycle_first_stair_count", 0),
                 .decay_steps = p.value("decay_step_size", 0),
                 .decay = p.value("decay_lr_rate", 0.0)};
    if (p.contains("cycle_second_step_size")) out.cycle.down = p["cycle_second_step_size"];
    out.cycle.momentum = p.value("cycle_momentum", true);
    out.cycle.least_momentum = p.value("cycle_min_mom", 0.8);
    out.cycle.most_momentum = p.value("cycle_max_mom", 0.9);
    out.cycle.momentum_growth = p.value("decay_mom_rate", 0.0);
    if (p.contains("cycle_second_stair_count")) out.cycle.stairs_down = p["cycle_second_stair_count"];
  }
  out.climb = {.steps = p.value("lr_range_test_step_size", 1),
               .growth = p.value("lr_range_test_step_rate", 1.0),
               .stairs = p.value("lr_range_test_staircase", false)};
  return out;
}

/// Cosines and powers of two C libraries may be neighbors. They are of the size of 1 however little of it is
/// left, so that moves what follows from them by roundings of the greatest; all else has the same bits.
void expect_equal(double found, double theirs, bool to_the_bit, double greatest, const std::string& where) {
  EXPECT_NEAR(found, theirs, to_the_bit ? 0 : greatest * 0x1p-51) << where;
}

bool only_adds_and_multiplies(const RateSchedule& rate) {
  const bool anneals = rate.style == RateStyle::wsd && (rate.anneal_style == AnnealStyle::cosine ||
                                                        rate.anneal_style == AnnealStyle::exponential);
  return rate.style != RateStyle::cosine && !anneals;
}

double from_hex(const Json& hex) { return std::strtod(hex.get<std::string>().c_str(), nullptr); }

}  // namespace

TEST(Rate, equals_megatrons_to_the_bit_but_for_cosines) {
  for (const Json& one : golden("megatron_core_step_based")) {
    const Json& a = one.at("args");
    const RateSchedule rate{.style = style(a.at("lr_decay_style")),
                            .anneal_style = anneal(a.value("lr_wsd_decay_style", "")),
                            .start = a.at("init_lr"),
                            .peak = a.at("max_lr"),
                            .floor = a.at("min_lr"),
                            .warmup = a.at("lr_warmup_steps"),
                            .decay = a.at("lr_decay_steps"),
                            .anneal = a.value("wsd_decay_steps", 0)};
    const DecaySchedule decay{growth(a.at("wd_incr_style")), a.at("start_wd"), a.at("end_wd"),
                              a.at("wd_incr_steps")};
    for (const Json& row : one.at("rows")) {
      const std::string where = one.at("name").dump() + " at " + row[0].dump();
      expect_equal(rate.at(row[0]), from_hex(row[2]), only_adds_and_multiplies(rate), rate.peak, where);
      expect_equal(decay.at(row[0]), from_hex(row[4]), decay.growth != DecayGrowth::cosine,
                   std::max(decay.start, decay.end), where);
    }
  }
}

TEST(Rate, counted_in_tokens_equals_deepspeeds_to_the_bit_but_for_cosines) {
  for (const Json& one : golden("megatron_deepspeed_token_based")) {
    const RateSchedule rate{.style = style(one.at("style")),
                            .peak = one.at("max_lr"),
                            .floor = one.at("min_lr"),
                            .warmup = one.at("final_warmup_tokens"),
                            .decay = one.at("lr_decay_tokens")};
    const DecaySchedule decay{growth(one.at("wd_incr_style")), one.at("start_wd"), one.at("end_wd"),
                              one.at("wd_incr_steps")};
    for (const Json& row : one.at("rows")) {
      expect_equal(rate.at(row[1]), from_hex(row[3]), only_adds_and_multiplies(rate), rate.peak,
                   one.at("name").dump() + " at " + row[1].dump());
      EXPECT_DOUBLE_EQ(decay.at(row[0]), row[4].get<double>()) << one.at("name") << " at " << row[0];
    }
  }
}

// They compute parts of a rate, and multiply by it where we go from rate to rate: all but the last bits
// agree.
TEST(Rate, equals_that_of_deepspeeds_schedules) {
  for (const Json& one : golden("schedules", "deepspeed_rates"))
    for (const std::int64_t batch : {1, 24}) {
      const RateSchedule rate = deepspeeds(one, batch);
      for (std::size_t step = 1; step <= one.at("rates").size(); ++step) {
        const double theirs = from_hex(one.at("rates")[step - 1]);
        EXPECT_NEAR(rate.at(batch * std::int64_t(step - 1)), theirs, 1e-13 * theirs)
            << one.at("type") << one.at("params") << " in step " << step;
      }
    }
}

// The first beta is a difference there and a part of a way here; the second is a constant.
TEST(Rate, moves_betas_as_deepspeeds_cycle_does) {
  for (const Json& one : golden("schedules", "deepspeed_betas"))
    for (const std::int64_t batch : {1, 24}) {
      const RateSchedule rate = deepspeeds(one, batch);
      for (std::size_t step = 1; step <= one.at("betas").size(); ++step) {
        const auto betas = rate.betas_at(batch * std::int64_t(step - 1));
        ASSERT_TRUE(betas.has_value());
        const Json& theirs = one.at("betas")[step - 1];
        EXPECT_NEAR(betas->first, from_hex(theirs[0]), 1e-13) << one.at("params") << " in step " << step;
        EXPECT_EQ(betas->second, from_hex(theirs[1]));
      }
    }
}

TEST(Rate, leaves_betas_alone_unless_a_cycle_moves_them) {
  EXPECT_FALSE(RateSchedule{.style = RateStyle::one_cycle}.betas_at(0).has_value());
  EXPECT_FALSE((RateSchedule{.style = RateStyle::linear, .cycle = {.momentum = true}}).betas_at(0));
}
