#include "weft/model/parameters.h"

#include <cmath>

#include "weft/base/error.h"
#include "weft/model/experts.h"

namespace weft {

void ParameterList::add(std::string name, const Shape& shape, const Init& init) {
  if (!places_.try_emplace(name, all_.size()).second)
    fail(Kind::internal, "model: two parameters are called ", name);
  all_.push_back({std::move(name), shape, init});
}

const WholeParameter& ParameterList::at(const std::string& name) const {
  const auto found = places_.find(name);
  if (found == places_.end()) fail(Kind::internal, "model: no parameter is called ", name);
  return all_[found->second];
}

Init constant_init(float value) { return {.how = Init::How::constant, .value = value, .spread = 0}; }

Init random_init(const ModelConfig& config, std::int64_t rows, std::int64_t columns, double std) {
  if (config.init.method == InitMethod::xavier_uniform)
    return {.how = Init::How::uniform, .value = 0, .spread = float(std::sqrt(6.0 / double(rows + columns)))};
  return {.how = Init::How::normal, .value = 0, .spread = float(std)};
}

Init matrix_init(const ModelConfig& config, std::int64_t rows, std::int64_t columns) {
  return random_init(config, rows, columns, config.init.std / std::sqrt(width_of(config)));
}

Init output_init(const ModelConfig& config, std::int64_t rows, std::int64_t columns) {
  const double sums = config.hybrid.on() ? 1 : 2;  // of a layer, that it is added by
  const double shrink = config.init.scale_output_layers ? std::sqrt(sums * config.layers) : 1;
  return random_init(config, rows, columns, config.init.std / (shrink * std::sqrt(width_of(config))));
}

void add_matrix(ParameterList& list, const std::string& name, const LinearShape& m, const Init& init) {
  list.add(name + ".weight", {m.out, m.in}, init);
  if (m.biased) list.add(name + ".bias", {m.out}, constant_init(0));
}

namespace {

void add_sinks(ParameterList& list, const ModelConfig& c, const std::string& name) {
  if (c.sink == Sink::learned) list.add(name + ".sinks", {c.heads}, matrix_init(c, c.heads, 1));
}

/// A latent of keys and values, or of queries, and what is made of it.
void add_latent(ParameterList& list, const ModelConfig& c, const std::string& name, const LinearShape& up,
                std::int64_t down) {
  add_matrix(list, name + "_down", {down, c.hidden, false}, matrix_init(c, down, c.hidden));
  if (c.qk_norm) add_norm(list, c, name + "_norm", up.in);
  add_matrix(list, name + "_up", up, matrix_init(c, up.out, up.in));
}

void add_latent_attention(ParameterList& list, const ModelConfig& c, const std::string& name) {
  const LatentConfig& l = c.latent;
  const std::int64_t queries = c.heads * c.channels, values = c.heads * l.value_channels;
  if (l.query_rank > 0)
    add_latent(list, c, name + ".query", {queries, l.query_rank, false}, l.query_rank);
  else
    add_matrix(list, name + ".query", {queries, c.hidden, false}, matrix_init(c, queries, c.hidden));
  add_latent(list, c, name + ".key_value", {c.heads * l.plain_channels + values, l.rank, false},
             l.rank + l.turned_channels);
  add_sinks(list, c, name);
  add_matrix(list, name + ".project", {c.hidden, values, c.linear_bias && c.project_bias},
             output_init(c, c.hidden, values));
}

}  // namespace

namespace {

void add_head_norms(ParameterList& list, const ModelConfig& c, const std::string& name) {
  if (!c.qk_norm || c.qk_norm_plain) return;
  const std::int64_t queries = c.heads * c.channels, keys = c.groups * c.channels;
  if (c.qk_norm_each) {
    list.add(name + ".q_norm.gain", {queries}, constant_init(c.norm_centered_gain ? 0 : 1));
    list.add(name + ".k_norm.gain", {keys}, constant_init(c.norm_centered_gain ? 0 : 1));
    return;
  }
  add_norm(list, c, name + ".q_norm", c.qk_norm_whole ? queries : c.channels);
  add_norm(list, c, name + ".k_norm", c.qk_norm_whole ? keys : c.channels);
}

}  // namespace

void add_attention(ParameterList& list, const ModelConfig& c, const std::string& name) {
  if (c.latent.on) return add_latent_attention(list, c, name);
  const std::int64_t h = c.hidden, queries = c.heads * c.channels;
  const std::int64_t qkv = qkv_rows(c);
  add_matrix(list, name + ".qkv", {qkv, h, c.qkv_bias}, matrix_init(c, qkv, h));
  add_head_norms(list, c, name);
  add_sinks(list, c, name);
  add_matrix(list, name + ".project", {h, queries, c.linear_bias && c.project_bias},
             output_init(c, h, queries));
}

std::string norm_name(LayerPart part) {
  if (part == LayerPart::state) return ".state_norm";
  return part == LayerPart::attention || part == LayerPart::delta ? ".attention_norm" : ".mlp_norm";
}

std::string norm_behind_name(LayerPart part) { return norm_name(part) + "_behind"; }

namespace {

void add_inner(ParameterList& list, const ModelConfig& c, const std::string& name, LayerPart part) {
  switch (part) {
    case LayerPart::attention:
      return add_attention(list, c, name + ".attention");
    case LayerPart::delta:
      return add_delta(list, c, name + ".delta");
    case LayerPart::state:
      return add_state(list, c, name + ".state");
    case LayerPart::mlp:
      return add_mlp(list, c, name);
    case LayerPart::experts:
      return add_experts(list, c, name);
  }
}

/// Of two parts behind one norm it is called as the first one's.
bool has_norm_before(const ModelConfig& c, LayerPart part) {
  const bool second = part == LayerPart::mlp || part == LayerPart::experts;
  if (second && c.parallel_sublayers == ParallelSublayers::one_norm) return false;
  return c.norm_places != NormPlaces::behind;
}

}  // namespace

void add_block(ParameterList& list, const ModelConfig& c, const std::string& name, int layer) {
  for (const LayerPart part : parts_of_layer(c, layer)) {
    if (has_norm_before(c, part)) add_hidden_norm(list, c, name + norm_name(part));
    add_inner(list, c, name, part);
    if (c.norm_places != NormPlaces::before) add_hidden_norm(list, c, name + norm_behind_name(part));
  }
}

void add_mlp(ParameterList& list, const ModelConfig& c, const std::string& name) {
  const std::int64_t h = c.hidden, up = c.gated ? 2 * c.ffn_hidden : c.ffn_hidden;
  const bool biased = has_mlp_bias(c);
  add_matrix(list, name + ".mlp.up", {up, h, biased}, matrix_init(c, up, h));
  add_matrix(list, name + ".mlp.down", {h, c.ffn_hidden, biased}, output_init(c, h, c.ffn_hidden));
}

void add_norm(ParameterList& list, const ModelConfig& config, const std::string& name, std::int64_t width) {
  list.add(name + ".gain", {width}, constant_init(config.norm_centered_gain ? 0 : 1));
  if (config.norm == NormKind::layer && config.norm_bias) list.add(name + ".bias", {width}, constant_init(0));
}

void add_hidden_norm(ParameterList& list, const ModelConfig& config, const std::string& name) {
  if (config.norm_gain) add_norm(list, config, name, config.hidden);
}

}  // namespace weft
