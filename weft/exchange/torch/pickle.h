// What Python unpickles, put together: each of these is the opcodes of one value, of pickle's second
// protocol.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/exchange/torch/value.h"
#include "weft/tensor/dtype.h"

namespace weft::exchange::torch {

using Opcodes = std::string;

Opcodes pickled(bool value);
Opcodes pickled(std::int64_t value);
Opcodes pickled(double value);
Opcodes pickled(std::string_view text);
/// None, numbers, texts, lists, maps and names. Lists of what were tuples are lists.
Opcodes pickled(const Value& value);
Opcodes tuple_of(const std::vector<Opcodes>& items);
Opcodes tuple_of(std::span<const std::int64_t> numbers);
Opcodes list_of(const std::vector<Opcodes>& items);
Opcodes dict_of(const std::vector<std::pair<Opcodes, Opcodes>>& entries);
/// What a module knows by that name.
Opcodes global(std::string_view module, std::string_view name);
Opcodes call(const Opcodes& what, const Opcodes& arguments);
/// An object that is not made by its class's own function, but filled with a state.
Opcodes object(const Opcodes& cls, const Opcodes& state);
Opcodes fields_of(const std::vector<std::pair<std::string_view, Opcodes>>& fields);

/// All of a pickle.
std::string pickle_of(const Opcodes& value);

/// A tensor of the storage `0`, all of it.
Opcodes tensor_of(Dtype dtype, std::span<const std::int64_t> size);
/// "torch.bfloat16"
Opcodes type_of(Dtype dtype);

}  // namespace weft::exchange::torch
