#include "weft/model/parameters.h"

#include <cmath>

#include "weft/base/error.h"

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
  const double shrink = config.init.scale_output_layers ? std::sqrt(2.0 * config.layers) : 1;
  return random_init(config, rows, columns, config.init.std / (shrink * std::sqrt(width_of(config))));
}

void add_matrix(ParameterList& list, const std::string& name, const Matrix& m, const Init& init) {
  list.add(name + ".weight", {m.out, m.in}, init);
  if (m.biased) list.add(name + ".bias", {m.out}, constant_init(0));
}

void add_block(ParameterList& list, const ModelConfig& c, const std::string& name) {
  const std::int64_t h = c.hidden, queries = c.heads * c.channels;
  const std::int64_t qkv = (c.heads + 2 * c.groups) * c.channels;
  const std::int64_t up = c.gated ? 2 * c.ffn_hidden : c.ffn_hidden;
  const auto inner = [&](std::int64_t rows) { return matrix_init(c, rows, h); };
  add_norm(list, c, name + ".attention_norm", h);
  add_matrix(list, name + ".attention.qkv", {qkv, h, c.qkv_bias}, inner(qkv));
  if (c.qk_norm) {
    add_norm(list, c, name + ".attention.q_norm", c.channels);
    add_norm(list, c, name + ".attention.k_norm", c.channels);
  }
  add_matrix(list, name + ".attention.project", {h, queries, c.linear_bias}, output_init(c, h, queries));
  add_norm(list, c, name + ".mlp_norm", h);
  add_matrix(list, name + ".mlp.up", {up, h, c.linear_bias}, inner(up));
  add_matrix(list, name + ".mlp.down", {h, c.ffn_hidden, c.linear_bias}, output_init(c, h, c.ffn_hidden));
}

void add_norm(ParameterList& list, const ModelConfig& config, const std::string& name, std::int64_t width) {
  list.add(name + ".gain", {width}, constant_init(config.norm_centered_gain ? 0 : 1));
  if (config.norm == NormKind::layer) list.add(name + ".bias", {width}, constant_init(0));
}

}  // namespace weft
