#include "weft/model/count.h"

#include "weft/model/experts.h"
#include "weft/model/kinds.h"

namespace weft {

ParameterCount count_parameters(const ModelConfig& config) {
  ParameterCount count;
  const ParameterList list = kind_of(config).parameters(config);
  for (const WholeParameter& parameter : list.all()) {
    const bool block = parameter.name.find("layers.") != std::string::npos ||
                       parameter.name.find("final_norm.") != std::string::npos;
    (block ? count.blocks : count.embedding) += parameter.shape.elements();
  }
  count.idle = idle_parameters(config);
  return count;
}

double training_flops(const ModelConfig& config, std::int64_t sequence) {
  return kind_of(config).training_flops(config, sequence);
}

double activation_bound(const ModelConfig& config, std::int64_t micro_batch) {
  return kind_of(config).activation_bound(config, micro_batch);
}

}  // namespace weft
