// DeepSpeed's JSON settings: what concerns training becomes ours, the rest is refused by name.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "weft/base/error.h"
#include "weft/cli/dialect/rows.h"

namespace weft::cli::dialect {
namespace {

using Json = nlohmann::json;

struct Setting {
  std::string_view key, path;
};

constexpr Setting settings[] = {
    {"/train_batch_size", "batch.global"},
    {"/train_micro_batch_size_per_gpu", "batch.micro"},
    {"/gradient_clipping", "optimizer.clip"},
    {"/zero_optimization/stage", "parallel.zero"},
    {"/zero_optimization/overlap_comm", "parallel.overlap_reduce"},
    {"/fp16/loss_scale_window", "scaling.window"},
    {"/fp16/hysteresis", "scaling.hysteresis"},
    {"/fp16/min_loss_scale", "scaling.least"},
    {"/seed", "run.seed"},
};

// Nothing here depends on them: buckets, printing, and what other settings already say.
constexpr std::string_view harmless[] = {"/steps_per_print",
                                         "/wall_clock_breakdown",
                                         "/dump_state",
                                         "/prescale_gradients",
                                         "/gradient_accumulation_steps",
                                         "/data_types/grad_accum_dtype",
                                         "/zero_allow_untested_optimizer",
                                         "/zero_optimization/contiguous_gradients",
                                         "/zero_optimization/reduce_bucket_size",
                                         "/zero_optimization/allgather_bucket_size",
                                         "/zero_optimization/allgather_partitions",
                                         "/zero_optimization/reduce_scatter",
                                         "/fp16/auto_cast",
                                         "/fp16/consecutive_hysteresis"};

std::string word(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

// The key tells a person more than our own name of the setting.
void take(Fields& fields, const Setting& setting, const std::string& word) {
  try {
    fields.at(setting.path).read(std::vector{word}, Origin::file);
  } catch (const Error& e) {
    fail(Kind::usage, setting.key.substr(1), ": ", e.what());
  }
}

void scaling(Fields& fields, const Json& root, std::set<std::string>& left, Origin who) {
  const Json fp16 = root.value("fp16", Json::object());
  for (const char* key : {"/fp16/enabled", "/fp16/loss_scale", "/fp16/initial_scale_power", "/bf16/enabled"})
    left.erase(key);
  if (root.value(Json::json_pointer("/bf16/enabled"), false))
    fields.at("model.precision").read(std::vector<std::string>{"bf16"}, who);
  if (!fp16.value("enabled", false)) return;
  fields.at("model.precision").read(std::vector<std::string>{"f16"}, who);
  if (const double constant = fp16.value("loss_scale", 0.0); constant != 0)
    fields.at("scaling.constant").read(std::vector{write_word(constant)}, who);
  const double initial = std::exp2(fp16.value("initial_scale_power", 16.0));
  fields.at("scaling.initial").read(std::vector{write_word(initial)}, who);
}

Json parsed(const std::string& file) {
  std::ifstream in(file);
  if (!in) fail(Kind::usage, "cannot read ", file);
  Json root = Json::parse(in, nullptr, false, true);
  if (!root.is_object()) fail(Kind::data, file, " is not a JSON object");
  return root;
}

}  // namespace

void deepspeed(Fields& fields, std::span<const std::string> words, Origin) {
  const Json root = parsed(words[0]);
  const Json flat = root.flatten();
  std::set<std::string> left;
  for (const auto& item : flat.items()) left.insert(item.key());
  try {
    for (const Setting& s : settings) {
      const Json::json_pointer at{std::string(s.key)};
      if (left.erase(std::string(s.key)) == 0 || root.at(at) == "auto") continue;
      take(fields, s, word(root.at(at)));
    }
    scaling(fields, root, left, Origin::file);
  } catch (const Json::exception& e) {
    fail(Kind::data, words[0], ": ", e.what());
  }
  for (const std::string& key : left)
    if (std::find(std::begin(harmless), std::end(harmless), key) == std::end(harmless))
      fail(Kind::usage, words[0], ": weft cannot do ", key.substr(1), " yet");
}

}  // namespace weft::cli::dialect
