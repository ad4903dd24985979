// Which of Megatron's models a checkpoint holds: its arguments do not say it, its tensors do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weft/exchange/megatron/tensors.h"

namespace weft::exchange::megatron {

enum class Family : std::uint8_t { gpt, bert, t5 };
/// "gpt", as weft calls it, too.
std::string_view name_of(Family family);

Family family_of(const Tensors& model);

/// A T5 stores its output and its table of positions under two names each, or under one of the two; the
/// longer one is kept. Fails with Kind::data, beginning with `who`, where both are there and differ.
void drop_second_names(Tensors& tensors, const std::string& who);

}  // namespace weft::exchange::megatron
