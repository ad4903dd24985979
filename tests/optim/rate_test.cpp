#include "weft/optim/rate.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/source_dir.h"

using namespace weft;
using Json = nlohmann::json;

namespace {

Json golden(const char* part) {
  std::ifstream in(WEFT_SOURCE_DIR "/tests/golden/optim/lr_schedules.json");
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

double from_hex(const Json& hex) { return std::strtod(hex.get<std::string>().c_str(), nullptr); }

}  // namespace

TEST(Rate, equals_megatrons_to_the_bit) {
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
      EXPECT_EQ(rate.at(row[0]), from_hex(row[2])) << one.at("name") << " at " << row[0];
      EXPECT_EQ(decay.at(row[0]), from_hex(row[4])) << one.at("name") << " at " << row[0];
    }
  }
}

TEST(Rate, counted_in_tokens_equals_deepspeeds_to_the_bit) {
  for (const Json& one : golden("megatron_deepspeed_token_based")) {
    const RateSchedule rate{.style = style(one.at("style")),
                            .peak = one.at("max_lr"),
                            .floor = one.at("min_lr"),
                            .warmup = one.at("final_warmup_tokens"),
                            .decay = one.at("lr_decay_tokens")};
    const DecaySchedule decay{growth(one.at("wd_incr_style")), one.at("start_wd"), one.at("end_wd"),
                              one.at("wd_incr_steps")};
    for (const Json& row : one.at("rows")) {
      EXPECT_EQ(rate.at(row[1]), from_hex(row[3])) << one.at("name") << " at " << row[1];
      EXPECT_DOUBLE_EQ(decay.at(row[0]), row[4].get<double>()) << one.at("name") << " at " << row[0];
    }
  }
}
