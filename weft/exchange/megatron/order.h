// In which order Megatron's modules have their parameters: that of the optimizer's flat buffers, backwards.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/exchange/megatron/arguments.h"
#include "weft/exchange/megatron/family.h"

namespace weft::exchange::megatron {

enum class Layers : std::uint8_t { local, transformer_engine };
enum class Experts : std::uint8_t {
  one_by_one,  // both matrices of an expert, then the next expert
  by_matrix,   // the first matrix of all experts, then the second
  on_its_side  // the same, each matrix with its columns for rows
};
struct Order {
  Layers layers = Layers::local;
  Experts experts = Experts::one_by_one;
};

/// Every order that there is, those first that a run's arguments speak for.
std::vector<Order> orders_of(const Arguments& args);

/// A rank's experts of a layer.
struct ExpertRange {
  std::int64_t first = 0, count = 0;
};

/// The plain names that a model may have, in that order.
class ModuleNames {
 public:
  ModuleNames(Family family, const Arguments& args);

  /// Of all stacks; any stage may begin with any of them.
  std::int64_t layers() const { return layers_; }
  std::vector<std::string> before_layers() const;
  std::vector<std::string> of_layer(std::int64_t layer, const ExpertRange& experts, const Order& order) const;
  std::vector<std::string> behind_layers(const ExpertRange& experts, const Order& order) const;

 private:
  Family family_;
  std::int64_t layers_ = 0, encoder_layers_ = 0, further_ = 0;
};

/// Whether it has a gradient; if not, it is kept in a model and by no optimizer.
bool is_parameter(const std::string& name);

}  // namespace weft::exchange::megatron
