// The families of models that weft has.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/model/kind.h"

namespace weft {

std::vector<ModelKind> model_kinds();
std::optional<ModelKind> find_kind(std::string_view name);
/// Fails with Kind::usage where there is none of that name, saying which there are.
ModelKind kind_named(std::string_view name);
ModelKind kind_of(const ModelConfig& config);
/// "gpt|bert|t5", as a verb's usage says it.
std::string kinds_to_choose();

}  // namespace weft
