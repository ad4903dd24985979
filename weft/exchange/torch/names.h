// The names that a pickle may ask for, and what becomes of each. Nothing is looked up in a Python: a name
// that is not in the table is refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weft/tensor/dtype.h"

namespace weft::exchange::torch {

enum class Use : std::uint8_t {
  word,           // stands for itself and is never called: a dtype, a class that others are told
  storage,        // the class of a storage
  tensor_v2,      // (storage, offset, size, strides, requires_grad, hooks[, metadata])
  tensor_v3,      // the same with a dtype behind the hooks
  parameter,      // (tensor, requires_grad, hooks): the tensor
  tensor_class,   // (function, class, arguments, state): function(arguments)
  size,           // (tuple): the tuple
  ordered_dict,   // (): a dict
  marked,         // one or two plain arguments, kept: an enum's member, a device
  fields,         // () or an object's own beginning, then a dict of fields
  state,          // the same, or a tuple
  opaque,         // anything
  array,          // numpy's _reconstruct: (ndarray, shape, code)
  array_class,    // numpy.ndarray
  array_dtype,    // (code, align, copy), then a tuple of eight
  array_scalar,   // (dtype, bytes): a number
  encode,         // (text, "latin1"): bytes
  bytes,          // () or (bytes)
  set,            // (list)
  object_class,   // Python's object: what _reconstructor is told
  reconstructor,  // (class, object, None): an object of the class
};

struct Known {
  std::string_view module, name;
  Use use;

  /// "torch.bfloat16"
  [[nodiscard]] std::string full() const { return std::string(module) + "." + std::string(name); }
};

/// Null where a pickle may not ask for it. What is returned lives as long as the program.
const Known* known(std::string_view module, std::string_view name);

/// What a tensor may be made of.
struct ElementType {
  std::string_view dtype;    // "bfloat16"
  std::string_view storage;  // "BFloat16Storage"; empty where its storages have no class of their own
  std::int64_t width;
  std::optional<Dtype> ours;
};

/// Null where there is none.
const ElementType* type_of_dtype(std::string_view dtype);
const ElementType* type_of_storage(std::string_view storage);

}  // namespace weft::exchange::torch
