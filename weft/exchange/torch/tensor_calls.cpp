// Storages and the tensors that lie in them.
#include <algorithm>
#include <utility>

#include "weft/exchange/torch/calls.h"

namespace weft::exchange::torch {
namespace {

constexpr std::size_t longest_key = 64;
// As many as numpy has; torch itself names no limit.
constexpr std::size_t most_dims = 64;

bool overflows(std::int64_t a, std::int64_t b, std::int64_t& result) {
  return __builtin_mul_overflow(a, b, &result);
}

}  // namespace

NodeId Calls::storage(NodeId id) {
  constexpr const char* form = "('storage', class, key, location, elements)";
  if (!storage_bytes_) place_.refuse("holds a tensor, expected none in a pickle that stands alone");
  if (!is(id, NodeKind::tuple) || nodes_.items(id).size() != 5)
    place_.refuse("asks for ", nodes_.shown(id), " from outside, expected ", form);
  const Items& items = nodes_.items(id);
  if (!is(items[0], NodeKind::text) || nodes_.text_of(items[0]) != "storage" ||
      !is(items[1], NodeKind::name) || nodes_.name_of(items[1]).use != Use::storage ||
      !is(items[2], NodeKind::text) || !is(items[3], NodeKind::text) || !is(items[4], NodeKind::integer))
    place_.refuse("asks for (", nodes_.shown(items[0]), ", ", nodes_.shown(items[1]), ", ",
                  nodes_.shown(items[2]), ", …) from outside, expected ", form);
  const std::string_view key = nodes_.text_of(items[2]);
  const std::int64_t elements = nodes_.at(items[4]).value;
  if (key.empty() || key.size() > longest_key)
    place_.refuse("the storage '", torch::shown(key), "' has a name of ", key.size(),
                  " bytes, expected 1 to ", longest_key);
  const std::string_view cls = nodes_.name_of(items[1]).name;
  Storage storage{type_of_storage(cls), cls == "UntypedStorage", std::string(key), elements};
  const std::int64_t held = storage_bytes_(storage.key);
  if (held < 0) place_.refuse("the storage ", torch::shown(key), " is no record of the file");
  std::int64_t wanted = 0;
  if (elements < 0 || overflows(elements, storage.type->width, wanted) || wanted != held)
    place_.refuse("the storage ", torch::shown(key), " has ", held, " bytes, expected ", elements, " times ",
                  storage.type->width);
  return nodes_.storage(std::move(storage));
}

std::vector<std::int64_t> Calls::whole_numbers(NodeId tuple, std::string_view what) const {
  if (!is(tuple, NodeKind::tuple))
    place_.refuse("a tensor's ", what, " are ", nodes_.shown(tuple), ", expected a tuple");
  const Items& items = nodes_.items(tuple);
  if (items.size() > most_dims)
    place_.refuse("a tensor has ", items.size(), " dims, at most ", most_dims, " are read");
  std::vector<std::int64_t> out;
  for (const NodeId id : items) {
    if (!is(id, NodeKind::integer) || nodes_.at(id).value < 0)
      place_.refuse("one of a tensor's ", what, " is ", nodes_.shown(id),
                    ", expected a whole number that is not negative");
    out.push_back(nodes_.at(id).value);
  }
  return out;
}

void Calls::must_lie_within(const StoredTensor& tensor) const {
  std::int64_t elements = 1;
  for (const std::int64_t n : tensor.size)
    if (overflows(elements, std::max<std::int64_t>(n, 1), elements))
      place_.refuse("a tensor's sizes multiply to more than 63 bits hold");
  if (tensor.elements() == 0) return;
  std::int64_t last = tensor.offset;
  bool beyond = false;
  for (std::size_t i = 0; i < tensor.size.size() && !beyond; ++i) {
    std::int64_t way = 0;
    beyond =
        overflows(tensor.size[i] - 1, tensor.strides[i], way) || __builtin_add_overflow(last, way, &last);
  }
  if (beyond || last >= tensor.storage_elements) {
    place_.refuse("a tensor reaches ", beyond ? text("beyond any storage") : text("element ", last),
                  " of the storage ", torch::shown(tensor.storage), ", which has ", tensor.storage_elements);
  }
}

NodeId Calls::tensor(const Known& of, NodeId arguments) {
  const bool v3 = of.use == Use::tensor_v3;
  const std::size_t least = v3 ? 7 : 6;
  const Items& items = nodes_.items(arguments);
  if ((items.size() != least && items.size() != least + 1) || !is(items[0], NodeKind::storage) ||
      !is(items[1], NodeKind::integer) || !is(items[4], NodeKind::boolean) || !is(items[5], NodeKind::dict) ||
      (v3 && !is(items[6], NodeKind::name)))
    refuse_call(of, arguments,
                v3 ? "(storage, offset, size, strides, requires_grad, hooks, dtype[, metadata])"
                   : "(storage, offset, size, strides, requires_grad, hooks[, metadata])");
  const Storage& storage = nodes_.storage_of(items[0]);
  const ElementType* type = v3 ? type_of_dtype(nodes_.name_of(items[6]).name) : storage.type;
  if (type == nullptr || storage.untyped != v3)
    refuse_call(of, arguments, v3 ? "bytes without a type, and a type" : "a storage that has a type");
  if (storage.elements % (v3 ? type->width : 1) != 0)
    place_.refuse("the storage ", torch::shown(storage.key), " has ", storage.elements,
                  " bytes, expected a multiple of ", type->width);
  StoredTensor tensor{.dtype = type->ours.value_or(Dtype::u8),
                      .storage = storage.key,
                      .storage_elements = v3 ? storage.elements / type->width : storage.elements,
                      .offset = nodes_.at(items[1]).value,
                      .size = whole_numbers(items[2], "sizes"),
                      .strides = whole_numbers(items[3], "strides"),
                      .type = std::string(type->dtype),
                      .width = type->width,
                      .held = type->ours.has_value()};
  if (tensor.offset < 0) place_.refuse("a tensor begins at element ", tensor.offset, " of its storage");
  if (tensor.size.size() != tensor.strides.size())
    place_.refuse("a tensor has ", tensor.size.size(), " sizes and ", tensor.strides.size(), " strides");
  must_lie_within(tensor);
  return nodes_.tensor(std::move(tensor));
}

}  // namespace weft::exchange::torch
