// DeepSpeed's keys of samples that grow and of samples by difficulty: the old block, the two metrics of the
// data-efficiency library that are lengths, and those that an index of samples goes by.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "weft/base/error.h"
#include "weft/cli/dialect/deepspeed_rows.h"

namespace weft::cli::dialect::ds {
namespace {

using Json = nlohmann::json;
using enum Shape;

constexpr std::string_view learning = "data_efficiency.data_sampling.curriculum_learning",
                           all_metrics =
                               "data_efficiency.data_sampling.curriculum_learning.curriculum_metrics";

bool has(const Taking& t, std::string_view block, std::string_view key) {
  return t.find(weft::text(block, ".", key)) != nullptr;
}

void old_block(Taking& t, const Key& key, const Json& value) {
  if (value == true && !has(t, "curriculum_learning", "schedule_type"))
    fail(Kind::usage, key.path, " needs curriculum_learning.schedule_type: how samples grow");
}

bool is_length(std::string_view metric) { return metric == "seqlen_truncate" || metric == "seqlen_reshape"; }

bool any_by_index(const Taking& t) {
  const Json* metrics = t.find(all_metrics);
  if (metrics == nullptr || !metrics->is_object()) return false;
  return std::ranges::any_of(metrics->items(), [&](const auto& one) {
    return !is_length(one.key()) && has(t, all_metrics, one.key());
  });
}

std::string word_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : number(value);
}

/// "1/2/3" of a list of whole numbers.
std::string levels(std::string_view path, const Json& value) {
  std::string out;
  for (const Json& one : value) {
    if (!one.is_number_integer())
      fail(Kind::usage, path, " is ", value.dump(), ", not a list of whole numbers");
    out += weft::text(out.empty() ? "" : "/", one.dump());
  }
  return out;
}

/// A key of a metric and what weft calls it.
struct MetricKey {
  std::string_view theirs, ours;
};
constexpr MetricKey of_metric[] = {{"index_to_sample_path", "samples"}, {"index_to_metric_path", "values"},
                                   {"difficulty_type", "by"},           {"clustering_type", "clusters"},
                                   {"schedule_type", "curve"},          {"min_difficulty", "least"},
                                   {"max_difficulty", "most"}},
                    of_schedule[] = {{"total_curriculum_step", "steps"},
                                     {"difficulty_step", "multiple"},
                                     {"root_degree", "root"},
                                     {"difficulty", "levels"},
                                     {"max_step", "until"}};

void add_pairs(std::string& word, std::string_view path, const Json& map, std::span<const MetricKey> keys) {
  for (const auto& [theirs, ours] : keys) {
    const auto at = map.find(theirs);
    if (at == map.end() || at->is_null() || *at == "auto") continue;
    if (at->is_object()) fail(Kind::usage, path, ".", theirs, " is ", at->dump(), ", not a value");
    const std::string value = at->is_array() ? levels(weft::text(path, ".", theirs), *at) : word_of(*at);
    if (value.find(',') != std::string::npos)
      fail(Kind::usage, path, ".", theirs, " ", value, " has a comma in it: give it another name");
    word += weft::text(word.ends_with(':') ? "" : ",", ours, "=", value);
  }
}

/// A metric as data.difficulty.metrics says it.
std::string metric_word(std::string_view path, const Json& block) {
  std::vector<std::string_view> names = {"schedule_config"}, inner;
  for (const MetricKey& key : of_metric) names.push_back(key.theirs);
  for (const MetricKey& key : of_schedule) inner.push_back(key.theirs);
  check_names(path, block, names);
  std::string word = weft::text(path.substr(path.rfind('.') + 1), ":");
  add_pairs(word, path, block, of_metric);
  const auto schedule = block.find("schedule_config");
  if (schedule == block.end() || !schedule->is_object())
    fail(Kind::usage, path, ".schedule_config is missing, or no group of keys: how its difficulty grows");
  const std::string here = weft::text(path, ".schedule_config");
  check_names(here, *schedule, inner);
  add_pairs(word, here, *schedule, of_schedule);
  return word;
}

void by_index(Taking& t, const Key& key, const Json& value) {
  for (const char* needed :
       {"difficulty_type", "clustering_type", "schedule_type", "min_difficulty", "max_difficulty"})
    if (value.find(needed) == value.end()) fail(Kind::usage, key.path, " needs ", needed);
  t.add(all_metrics, "data.difficulty.metrics", metric_word(key.path, value));
}

/// Where samples go by an index too, lengths are one of DeepSpeed's sampler's metrics: a step at which they
/// change is one at which it looks for samples anew.
void length_beside_an_index(Taking& t, std::string_view metric) {
  const std::string path = weft::text(all_metrics, ".", metric);
  const Json* block = t.find(path);
  if (block == nullptr || !block->contains("schedule_config")) return;  // then a length is missing, too
  Json whole = *block;
  whole["clustering_type"] = "single_cluster";
  for (const char* files : {"index_to_sample_path", "index_to_metric_path"}) whole.erase(files);
  t.add(all_metrics, "data.difficulty.metrics", metric_word(path, whole));
}

void metrics(Taking& t, const Key& key, const Json& value) {
  if (value != true) return;
  const bool by_an_index = any_by_index(t);
  if (!by_an_index && !has(t, all_metrics, "seqlen_truncate.schedule_type") &&
      !has(t, all_metrics, "seqlen_reshape.schedule_type"))
    fail(Kind::usage, key.path, " needs ", all_metrics,
         ".seqlen_truncate or .seqlen_reshape with a schedule_type, or a metric of an index: how samples "
         "grow");
  if (!by_an_index) return;
  length_beside_an_index(t, "seqlen_truncate");
  length_beside_an_index(t, "seqlen_reshape");
}

// DeepSpeed's sampler by itself has an order of its own.
void sampler(Taking& t, const Key& key, const Json& value) {
  const Json* on = t.find(weft::text(learning, ".enabled"));
  if (value == true && (on == nullptr || *on != true))
    fail(Kind::usage, key.path, " without ", learning, " only shuffles samples in another way: leave it out");
}

void nothing_more(Taking&, const Key&, const Json&) {}  // it switches on what stands in its block

void schedule(Taking& t, const Key& key, const Json& value) {
  const auto word = value.get<std::string>();
  if (word == "custom" || word == "none")
    fail(Kind::usage, key.path, " ", word, ": weft has fixed_linear, fixed_root and fixed_discrete");
  t.set(key.path, "curriculum.schedule", {word});
  const bool pieces = key.path.find(".seqlen_reshape.") != std::string_view::npos;
  t.set(key.path, "curriculum.form", {pieces ? "reshape" : "truncate"});
}

void numbers(Taking& t, const Key& key, std::string_view field, const Json& value) {
  std::vector<std::string> words;
  for (const Json& one : value) {
    if (!one.is_number_integer())
      fail(Kind::usage, key.path, " is ", value.dump(), ", not a list of whole numbers");
    words.push_back(one.dump());
  }
  t.set(key.path, field, std::move(words));
}
void lengths(Taking& t, const Key& key, const Json& value) { numbers(t, key, "curriculum.lengths", value); }
void until(Taking& t, const Key& key, const Json& value) { numbers(t, key, "curriculum.until", value); }

constexpr std::string_view
    old_on = R"({"curriculum_learning":{"enabled":true,"schedule_type":"fixed_root"}})",
    cut_on =
        R"({"data_efficiency":{"enabled":true,"data_sampling":{"enabled":true,"curriculum_learning":{"enabled":true,)"
        R"("curriculum_metrics":{"seqlen_truncate":{"schedule_type":"fixed_root"}}}}}})",
    pieces_on =
        R"({"data_efficiency":{"enabled":true,"data_sampling":{"enabled":true,"curriculum_learning":{"enabled":true,)"
        R"("curriculum_metrics":{"seqlen_reshape":{"schedule_type":"fixed_root"}}}}}})",
    first = "tokens of the first samples", most = "tokens of the longest ones",
    steps = "steps until they are longest", multiple = "lengths are rounded down to multiples of it",
    root = "fixed_root: 2 for a square root",
    stairs = "`curriculum.lengths`: fixed_discrete: one length after the other",
    last = "`curriculum.until`: the last step of each but the last",
    samples = "an order of samples by difficulty", by_share = "lengths told as shares of all samples",
    reads_ahead = "one thread reads one batch ahead", no_index = "every sample is cut, so none is looked up",
    in_memory = "clusters are drawn in memory, and again by a run that goes on";

// clang-format off
constexpr Key table[] = {
    beside(old_on, does("curriculum_learning.enabled", flag, old_block, "samples grow longer from step to step, as the keys below say", "true")),
    beside(old_on, refuses("curriculum_learning.curriculum_type", text, samples, "seqlen", "\"vocabulary\"")),
    beside(old_on, does("curriculum_learning.schedule_type", text, schedule, "`curriculum.schedule`: fixed_linear, fixed_root or fixed_discrete", "\"fixed_linear\"")),
    beside(old_on, sets("curriculum_learning.min_difficulty", whole, "curriculum.least", first, "64")),
    beside(old_on, sets("curriculum_learning.max_difficulty", whole, "curriculum.most", most, "1024")),
    beside(old_on, sets("curriculum_learning.schedule_config.total_curriculum_step", whole, "curriculum.steps", steps, "500")),
    beside(old_on, sets("curriculum_learning.schedule_config.difficulty_step", whole, "curriculum.multiple", multiple, "16")),
    beside(old_on, sets("curriculum_learning.schedule_config.root_degree", real, "curriculum.root", root, "2")),
    beside(old_on, does("curriculum_learning.schedule_config.difficulty", list, lengths, stairs, "[64, 128]")),
    beside(old_on, does("curriculum_learning.schedule_config.max_step", list, until, last, "[100]")),
    beside(cut_on, does("data_efficiency.enabled", flag, nothing_more, "the blocks below count", "true")),
    beside(cut_on, sets("data_efficiency.seed", whole, "data.difficulty.seed", "of the order of samples by difficulty; where no metric goes by an index, the order follows from the seed of the run", "99")),
    beside(cut_on, does("data_efficiency.data_sampling.enabled", flag, sampler, "the block below counts", "true")),
    beside(cut_on, idle("data_efficiency.data_sampling.num_epochs", whole, "--train-iters, --train-samples or --train-tokens says how long a run is", "1")),
    beside(cut_on, idle("data_efficiency.data_sampling.num_workers", whole, reads_ahead, "2")),
    beside(cut_on, idle("data_efficiency.data_sampling.pin_memory", flag, reads_ahead, "true")),
    beside(cut_on, refuses("data_efficiency.data_sampling.dynamic_batching", map, "batches that follow from the length of samples", "", "{}")),
    beside(cut_on, does("data_efficiency.data_sampling.curriculum_learning.enabled", flag, metrics, "samples grow longer from step to step, as one of the two metrics of lengths below says, or come by difficulty, as an index of them says", "true")),
    beside(cut_on, idle("data_efficiency.data_sampling.curriculum_learning.data_cluster_path", text, in_memory, "\"clusters\"")),
    beside(cut_on, does("data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.*", map, by_index, "`data.difficulty.metrics`: samples by a metric's index, easy ones first, as DeepSpeed's sampler draws them: index_to_sample_path, index_to_metric_path, difficulty_type, clustering_type, min_difficulty, max_difficulty, schedule_type and schedule_config", R"({"index_to_sample_path": "s", "index_to_metric_path": "m", "difficulty_type": "value", "clustering_type": "schedule_based", "min_difficulty": 1, "max_difficulty": 9, "schedule_type": "fixed_linear", "schedule_config": {"total_curriculum_step": 10, "difficulty_step": 1}})")),
    beside(cut_on, does("data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.seqlen_truncate.schedule_type", text, schedule, "`curriculum.schedule`: fixed_linear, fixed_root or fixed_discrete; a step reads the front of its samples", "\"fixed_linear\"")),
    beside(cut_on, sets("data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.seqlen_truncate.min_difficulty", whole, "curriculum.least", first, "64")),
    beside(cut_on, sets("data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.seqlen_truncate.max_difficulty", whole, "curriculum.most", most, "1024")),
    beside(cut_on, sets("data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.seqlen_truncate.schedule_config.total_curriculum_step", whole, "curriculum.steps", steps, "500")),
    beside(cut_on, sets("data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.seqlen_truncate.schedule_config.difficulty_step", whole, "curriculum.multiple", multiple, "16")),
    beside(cut_on, sets("data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.seqlen_truncate.schedule_config.root_degree", real, "curriculum.root", root, "2")),
    beside(cut_on, does("data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.seqlen_truncate.schedule_config.difficulty", list, lengths, stairs, "[64, 128]")),
    beside(cut_on, does("data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.seqlen_truncate.schedule_config.max_step", list, until, last, "[100]")),
    beside(cut_on, refuses("data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.seqlen_truncate.difficulty_type", text, by_share, "value", "\"percentile\"")),
    beside(cut_on, refuses("data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.seqlen_truncate.clustering_type", text, samples, "single_cluster", "\"schedule_based\"")),
    beside(cut_on, idle("data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.seqlen_truncate.index_to_sample_path", text, no_index, "\"dummy\"")),
    beside(cut_on, idle("data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.seqlen_truncate.index_to_metric_path", text, no_index, "\"dummy\"")),
    beside(pieces_on, does("data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.seqlen_reshape.schedule_type", text, schedule, "the same; a step reads its samples in pieces", "\"fixed_linear\"")),
    beside(pieces_on, sets("data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.seqlen_reshape.min_difficulty", whole, "curriculum.least", first, "64")),
    beside(pieces_on, sets("data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.seqlen_reshape.max_difficulty", whole, "curriculum.most", most, "1024")),
    beside(pieces_on, sets("data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.seqlen_reshape.schedule_config.total_curriculum_step", whole, "curriculum.steps", steps, "500")),
    beside(pieces_on, sets("data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.seqlen_reshape.schedule_config.difficulty_step", whole, "curriculum.multiple", multiple, "16")),
    beside(pieces_on, sets("data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.seqlen_reshape.schedule_config.root_degree", real, "curriculum.root", root, "2")),
    beside(pieces_on, does("data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.seqlen_reshape.schedule_config.difficulty", list, lengths, stairs, "[64, 128]")),
    beside(pieces_on, does("data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.seqlen_reshape.schedule_config.max_step", list, until, last, "[100]")),
    beside(pieces_on, refuses("data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.seqlen_reshape.difficulty_type", text, by_share, "value", "\"percentile\"")),
    beside(pieces_on, refuses("data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.seqlen_reshape.clustering_type", text, samples, "single_cluster", "\"schedule_based\"")),
    beside(pieces_on, idle("data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.seqlen_reshape.index_to_sample_path", text, no_index, "\"dummy\"")),
    beside(pieces_on, idle("data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.seqlen_reshape.index_to_metric_path", text, no_index, "\"dummy\"")),
};
// clang-format on

}  // namespace

std::vector<Key> curriculum_keys() { return {std::begin(table), std::end(table)}; }

}  // namespace weft::cli::dialect::ds
