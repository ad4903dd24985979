// DeepSpeed's keys of samples that grow: the old block, and the two metrics of the data-efficiency library
// that are lengths.
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/cli/dialect/deepspeed_rows.h"

namespace weft::cli::dialect::ds {
namespace {

using Json = nlohmann::json;
using enum Shape;

constexpr std::string_view learning = "data_efficiency.data_sampling.curriculum_learning";

bool has(const Taking& t, std::string_view block, std::string_view key) {
  return t.find(weft::text(block, ".", key)) != nullptr;
}

void old_block(Taking& t, const Key& key, const Json& value) {
  if (value == true && !has(t, "curriculum_learning", "schedule_type"))
    fail(Kind::usage, key.path, " needs curriculum_learning.schedule_type: how samples grow");
}

void metrics(Taking& t, const Key& key, const Json& value) {
  const std::string block = weft::text(learning, ".curriculum_metrics");
  if (value == true && !has(t, block, "seqlen_truncate.schedule_type") &&
      !has(t, block, "seqlen_reshape.schedule_type"))
    fail(Kind::usage, key.path, " needs ", block,
         ".seqlen_truncate or .seqlen_reshape with a schedule_type: how samples grow");
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
    own_order = "the order of samples follows from the seed of the run",
    reads_ahead = "one thread reads one batch ahead", no_index = "every sample is cut, so none is looked up";

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
    beside(cut_on, idle("data_efficiency.seed", whole, own_order, "1234")),
    beside(cut_on, does("data_efficiency.data_sampling.enabled", flag, sampler, "the block below counts", "true")),
    beside(cut_on, idle("data_efficiency.data_sampling.num_epochs", whole, "--train-iters, --train-samples or --train-tokens says how long a run is", "1")),
    beside(cut_on, idle("data_efficiency.data_sampling.num_workers", whole, reads_ahead, "2")),
    beside(cut_on, idle("data_efficiency.data_sampling.pin_memory", flag, reads_ahead, "true")),
    beside(cut_on, refuses("data_efficiency.data_sampling.dynamic_batching", map, "batches that follow from the length of samples", "", "{}")),
    beside(cut_on, does("data_efficiency.data_sampling.curriculum_learning.enabled", flag, metrics, "samples grow longer from step to step, as one of the two metrics below says", "true")),
    beside(cut_on, idle("data_efficiency.data_sampling.curriculum_learning.data_cluster_path", text, no_index, "\"clusters\"")),
    beside(cut_on, refuses("data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.*", map, samples, "", "{}")),
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
