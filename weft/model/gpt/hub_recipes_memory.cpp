// Layers that remember, and those of one thing each.
#include "weft/model/gpt/hub_cook.h"

namespace weft {

void GptCook::delta(const std::string& ours, const std::string& theirs) {
  const MemoryShape d = m_.delta.shape();
  type_ == GptType::qwen3_next ? made_in_two(ours + ".in.weight", theirs)
                               : made_in_four(ours + ".in.weight", theirs);
  Recipe filter{ours + ".filter",
                shape_of(ours + ".filter"),
                {{theirs + ".conv1d.weight", {d.keys * d.filtered(), 1, m_.delta.taps}}},
                {}};
  for (std::int64_t head = 0; head < d.keys; ++head) filtered(filter.runs, head, head * d.filtered());
  out_.push_back(std::move(filter));
  same(ours + ".speed", theirs + ".A_log");
  same(ours + ".shift", theirs + ".dt_bias");
  same(ours + ".norm.gain", theirs + ".norm.weight");  // never around zero
  linear(ours + ".project", theirs + ".out_proj");
}

void GptCook::made_in_two(const std::string& ours, const std::string& theirs) {
  const MemoryShape d = m_.delta.shape();
  const std::int64_t few = 2 * d.per_key, main = d.width() - few;
  Recipe recipe{ours,
                shape_of(ours),
                {{theirs + ".in_proj_qkvz.weight", {d.keys * main, m_.hidden}},
                 {theirs + ".in_proj_ba.weight", {d.keys * few, m_.hidden}}},
                {}};
  for (std::int64_t head = 0; head < d.keys; ++head) {
    const std::int64_t to = head * d.width();
    recipe.runs.push_back({0, head * main, to, main});
    recipe.runs.push_back({1, head * few, to + main, few});
  }
  out_.push_back(std::move(recipe));
}

void GptCook::made_in_four(const std::string& ours, const std::string& theirs) {
  const MemoryShape d = m_.delta.shape();
  const std::int64_t each = d.per_key, values = d.values();
  Recipe recipe{ours,
                shape_of(ours),
                {{theirs + ".in_proj_qkv.weight", {d.keys * d.filtered(), m_.hidden}},
                 {theirs + ".in_proj_z.weight", {d.keys * values, m_.hidden}},
                 {theirs + ".in_proj_b.weight", {d.keys * each, m_.hidden}},
                 {theirs + ".in_proj_a.weight", {d.keys * each, m_.hidden}}},
                {}};
  for (std::int64_t head = 0; head < d.keys; ++head) {
    const std::int64_t to = head * d.width(), gates = to + d.filtered();
    filtered(recipe.runs, head, to);
    recipe.runs.push_back({1, head * values, gates, values});
    recipe.runs.push_back({2, head * each, gates + values, each});
    recipe.runs.push_back({3, head * each, gates + values + each, each});
  }
  out_.push_back(std::move(recipe));
}

void GptCook::filtered(std::vector<RowRun>& runs, std::int64_t head, std::int64_t to) const {
  const MemoryShape d = m_.delta.shape();
  const std::int64_t key = d.channels, values = d.values();
  const std::int64_t all_keys = d.keys * key;
  runs.push_back({0, head * key, to, key});
  runs.push_back({0, all_keys + head * key, to + key, key});
  runs.push_back({0, 2 * all_keys + head * values, to + 2 * key, values});
}

std::vector<Recipe> GptCook::hybrid() {
  same("embedding.words", "backbone.embeddings.weight");
  for (int layer = 0; layer < m_.layers; ++layer)
    part("layers." + std::to_string(layer), "backbone.layers." + std::to_string(layer), part_at(layer, 0));
  norm("final_norm", "backbone.norm_f");
  for (int depth = 0; depth < m_.ahead.depths; ++depth) further_parts(depth);
  return finished();
}

void GptCook::part(const std::string& ours, const std::string& theirs, LayerPart what) {
  const std::string mixer = theirs + ".mixer";
  norm(ours + norm_name(what), theirs + ".norm");
  if (what == LayerPart::state) return state(ours + ".state", mixer);
  if (what == LayerPart::experts) return experts(ours, mixer);
  if (what == LayerPart::mlp) return mlp(ours + ".mlp", mixer);
  attention(ours + ".attention", mixer);
  linear(ours + ".attention.project", mixer + ".o_proj");
}

void GptCook::state(const std::string& ours, const std::string& theirs) {
  const MemoryShape shape = m_.state.shape();
  linear(ours + ".in", theirs + ".in_proj");
  out_.back().runs = state_in_runs(shape);
  const std::int64_t rows = shape.keys * shape.filtered();
  out_.push_back({ours + ".filter",
                  shape_of(ours + ".filter"),
                  {{theirs + ".conv1d.weight", {rows, 1, m_.state.taps}}},
                  state_filter_runs(shape)});
  same(ours + ".filter_bias", theirs + ".conv1d.bias");
  out_.back().runs = state_filter_runs(shape);
  same(ours + ".speed", theirs + ".A_log");
  same(ours + ".shift", theirs + ".dt_bias");
  same(ours + ".skip", theirs + ".D");
  same(ours + ".norm.gain", theirs + ".norm.weight");  // never around zero
  linear(ours + ".project", theirs + ".out_proj");
}

void GptCook::further_parts(int depth) {
  const std::string ours = "ahead.layers." + std::to_string(depth);
  const std::size_t parts = m_.hybrid.ahead.size();
  const auto layer = [&](std::size_t i) {
    return "mtp.layers." + std::to_string(std::size_t(depth) * parts + i);
  };
  norm(ours + ".word_norm", layer(0) + ".enorm");
  norm(ours + ".hidden_norm", layer(0) + ".hnorm");
  linear(ours + ".join", layer(0) + ".eh_proj");
  for (std::size_t i = 0; i < parts; ++i) part(ours, layer(i), part_at(m_.layers + depth, i));
  norm(ours + ".final_norm", layer(parts - 1) + ".final_layernorm");
}

}  // namespace weft
