// What families of one stack ask of layers of experts: parameters, losses, counts.
#pragma once

#include <string>
#include <vector>

#include "weft/model/kind.h"

namespace weft {

/// A router, experts, and what stands beside them, in the place of an MLP.
void add_experts(ParameterList& list, const ModelConfig& config, const std::string& name);

/// Of routers, behind the family's own: the name by which Megatron tells a loss.
std::vector<NamedLoss> balancing_losses(const ModelConfig& config);
std::string_view told_as(Balancing loss);
inline constexpr std::string_view z_loss_name = "z_loss";
/// Among all of the family's.
int loss_number(const ModelConfig& config, std::string_view name);

/// In experts that a token does not go through.
std::int64_t idle_parameters(const ModelConfig& config);

/// Inner widths that a token goes through in one layer, all of whose matrices read and make `hidden`
/// channels; where experts work on fewer channels, as many less.
double width_of_experts(const ModelConfig& config);

}  // namespace weft
