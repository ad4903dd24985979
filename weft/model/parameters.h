// The parameters of a whole model: each name, shape and beginning stands here once, and whoever builds,
// counts or trades models reads it here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "weft/model/layer_parts.h"
#include "weft/nn/parameter.h"

namespace weft {

/// As no layout cuts it.
struct WholeParameter {
  std::string name;
  Shape shape;
  Init init;
};

class ParameterList {
 public:
  void add(std::string name, const Shape& shape, const Init& init);
  bool has(const std::string& name) const { return places_.contains(name); }
  /// Fails with Kind::internal where the model has no such parameter.
  const WholeParameter& at(const std::string& name) const;
  /// In the order of the layers.
  const std::vector<WholeParameter>& all() const { return all_; }

 private:
  std::vector<WholeParameter> all_;
  std::map<std::string, std::size_t> places_;
};

/// What a family's list is made of; names end in ".weight" and ".bias", ".gain" and ".bias".
Init constant_init(float value);
/// W [rows, columns] as `config` begins them, `std` wide where they are normal.
Init random_init(const ModelConfig& config, std::int64_t rows, std::int64_t columns, double std);
/// Of a matrix between widths of the model, which begins smaller the wider that is (muP).
Init matrix_init(const ModelConfig& config, std::int64_t rows, std::int64_t columns);
/// Where a block's output is made: less the deeper the model, if that is asked for.
Init output_init(const ModelConfig& config, std::int64_t rows, std::int64_t columns);
/// W [out, in] and a bias, if there is one.
struct LinearShape {
  std::int64_t out = 0, in = 0;
  bool biased = true;
};
void add_matrix(ParameterList& list, const std::string& name, const LinearShape& m, const Init& init);
void add_attention(ParameterList& list, const ModelConfig& config, const std::string& name);
/// What the layer of this number is made of, each part with its norms.
void add_block(ParameterList& list, const ModelConfig& config, const std::string& name, int layer);
/// What the norm of what a part reads is called behind the layer's name, and that of what it gives.
std::string norm_name(LayerPart part);
std::string norm_behind_name(LayerPart part);
void add_mlp(ParameterList& list, const ModelConfig& config, const std::string& name);
void add_norm(ParameterList& list, const ModelConfig& config, const std::string& name, std::int64_t width);
/// Of hidden states: a model may have such norms without anything to learn.
void add_hidden_norm(ParameterList& list, const ModelConfig& config, const std::string& name);

}  // namespace weft
