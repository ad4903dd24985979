#include "weft/exchange/torch/calls.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace weft::exchange::torch {

const Known& Calls::callable(NodeId callee, NodeId arguments) const {
  if (!is(callee, NodeKind::name)) place_.refuse("calls ", nodes_.shown(callee), ", expected a name");
  const Known& of = nodes_.name_of(callee);
  if (!is(arguments, NodeKind::tuple))
    place_.refuse("calls ", of.full(), " with ", nodes_.shown(arguments), ", expected a tuple");
  return of;
}

void Calls::refuse_call(const Known& of, NodeId arguments, std::string_view expected) const {
  constexpr std::size_t most_shown = 8;
  const Items& items = nodes_.items(arguments);
  std::string given;
  for (std::size_t i = 0; i < std::min(items.size(), most_shown); ++i)
    given += (i == 0 ? "" : ", ") + nodes_.shown(items[i]);
  if (items.size() > most_shown) given += ", ...";
  place_.refuse("calls ", of.full(), " with (", given, "), expected ", expected);
}

bool Calls::is_plain(NodeId id) const {
  return is(id, NodeKind::none) || is(id, NodeKind::boolean) || is(id, NodeKind::integer) ||
         is(id, NodeKind::real) || is(id, NodeKind::text);
}

bool Calls::is_dtype_object(NodeId id) const {
  return is(id, NodeKind::object) && nodes_.object_of(id).of->use == Use::array_dtype;
}

NodeId Calls::reduce(NodeId callee, NodeId arguments) {
  const Known& of = callable(callee, arguments);
  switch (of.use) {
    case Use::tensor_v2:
    case Use::tensor_v3:
      return tensor(of, arguments);
    case Use::parameter:
      return parameter(of, arguments);
    case Use::tensor_class:
      return tensor_class(of, arguments);
    case Use::size:
      return size(of, arguments);
    case Use::ordered_dict:
    case Use::fields:
    case Use::state:
      return empty(of, arguments);
    case Use::marked:
      return marked(of, arguments);
    case Use::opaque:
      return nodes_.object(of, arguments);
    case Use::array:
      return array(of, arguments);
    case Use::array_dtype:
      return array_dtype(of, arguments);
    case Use::array_scalar:
      return array_scalar(of, arguments);
    case Use::encode:
      return encode(of, arguments);
    case Use::bytes:
      return bytes(of, arguments);
    case Use::set:
      return set(of, arguments);
    case Use::reconstructor:
      return reconstructor(of, arguments);
    case Use::word:
    case Use::storage:
    case Use::array_class:
    case Use::object_class:
      break;
  }
  place_.refuse("calls ", of.full(), ", which is only ever named");
}

NodeId Calls::make(NodeId cls, NodeId arguments) {
  const Known& of = callable(cls, arguments);
  if (of.use == Use::fields || of.use == Use::state) return empty(of, arguments);
  if (of.use == Use::marked) return marked(of, arguments);
  if (of.use == Use::opaque) return nodes_.object(of, arguments);
  place_.refuse("makes an object of ", of.full(), ", which has none in a checkpoint");
}

void Calls::build(NodeId object, NodeId state) {
  // An OrderedDict's attributes, such as the versions of modules: nobody asks for them.
  if (is(object, NodeKind::dict) && is(state, NodeKind::dict)) return;
  if (!is(object, NodeKind::object))
    place_.refuse("fills ", nodes_.shown(object), " with ", nodes_.shown(state), ", expected an object");
  Object& filled = nodes_.object_of(object);
  if (filled.filled) place_.refuse("fills ", nodes_.shown(object), " a second time");
  if (!fits(filled, state))
    place_.refuse("fills ", nodes_.shown(object), " with ", nodes_.shown(state), ", which is no state of it");
  if (filled.of->use != Use::opaque && is(state, NodeKind::dict) && nodes_.take(state))
    place_.refuse("fills ", nodes_.shown(object), " with the dict that fills another object");
  filled.filled = true;
  filled.state = state;
}

bool Calls::fits(const Object& object, NodeId state) const {
  const bool is_dict = is(state, NodeKind::dict);
  const bool is_tuple = is(state, NodeKind::tuple);
  switch (object.of->use) {
    case Use::opaque:
      return true;
    case Use::fields:
      return is_dict;
    case Use::state:
      return is_dict || is_tuple;
    case Use::array_dtype:  // version, byte order, sub-array, names, fields, size, alignment, flags
      return is_tuple && nodes_.items(state).size() == 8 && is(nodes_.items(state)[1], NodeKind::text);
    case Use::array_class: {
      if (!is_tuple || nodes_.items(state).size() != 5) return false;
      const Items& items = nodes_.items(state);
      return is(items[0], NodeKind::integer) && is(items[1], NodeKind::tuple) && is_dtype_object(items[2]) &&
             is(items[3], NodeKind::boolean) &&
             (is(items[4], NodeKind::bytes) || is(items[4], NodeKind::list));
    }
    default:
      return false;
  }
}

NodeId Calls::parameter(const Known& of, NodeId arguments) {
  const Items& items = nodes_.items(arguments);
  if (items.size() != 3 || !is(items[0], NodeKind::tensor) || !is(items[1], NodeKind::boolean) ||
      !is(items[2], NodeKind::dict))
    refuse_call(of, arguments, "(tensor, requires_grad, hooks)");
  return items[0];
}

NodeId Calls::tensor_class(const Known& of, NodeId arguments) {
  const Items& items = nodes_.items(arguments);
  const auto names = [&](NodeId id, auto... uses) {
    return is(id, NodeKind::name) && ((nodes_.name_of(id).use == uses) || ...);
  };
  if (items.size() != 4 || !names(items[0], Use::tensor_v2, Use::tensor_v3, Use::parameter) ||
      !names(items[1], Use::word) || !is(items[2], NodeKind::tuple))
    refuse_call(of, arguments, "(what makes a tensor, its class, arguments, state)");
  const std::string_view cls = nodes_.name_of(items[1]).name;
  if (cls != "Tensor" && cls != "Parameter")
    refuse_call(of, arguments, "torch.Tensor or torch.nn.parameter.Parameter as the class");
  return reduce(items[0], items[2]);
}

NodeId Calls::size(const Known& of, NodeId arguments) {
  const Items& items = nodes_.items(arguments);
  if (items.size() != 1 || !is(items[0], NodeKind::tuple)) refuse_call(of, arguments, "(a tuple)");
  return items[0];
}

NodeId Calls::marked(const Known& of, NodeId arguments) {
  const Items& items = nodes_.items(arguments);
  if (items.empty() || items.size() > 2 ||
      !std::all_of(items.begin(), items.end(), [&](NodeId id) { return is_plain(id); }))
    refuse_call(of, arguments, "one or two numbers or texts");
  return nodes_.object(of, arguments);
}

NodeId Calls::empty(const Known& of, NodeId arguments) {
  if (!nodes_.items(arguments).empty()) refuse_call(of, arguments, "()");
  if (of.use == Use::ordered_dict) return nodes_.container(NodeKind::dict, {});
  return nodes_.object(of, arguments);
}

NodeId Calls::array(const Known& of, NodeId arguments) {
  const Items& items = nodes_.items(arguments);
  if (items.size() != 3 || !is(items[0], NodeKind::name) ||
      nodes_.name_of(items[0]).use != Use::array_class || !is(items[1], NodeKind::tuple) ||
      !is(items[2], NodeKind::bytes))
    refuse_call(of, arguments, "(numpy.ndarray, shape, code)");
  return nodes_.object(nodes_.name_of(items[0]), arguments);
}

NodeId Calls::array_dtype(const Known& of, NodeId arguments) {
  const Items& items = nodes_.items(arguments);
  if (items.size() != 3 || !is(items[0], NodeKind::text) || !is_plain(items[1]) || !is_plain(items[2]))
    refuse_call(of, arguments, "(code, align, copy)");
  return nodes_.object(of, arguments);
}

namespace {

template <class T>
T value_of(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace

// A number where it is one that a Value holds; else it is kept with what it was made of.
NodeId Calls::array_scalar(const Known& of, NodeId arguments) {
  static_assert(std::endian::native == std::endian::little);
  const Items& items = nodes_.items(arguments);
  if (items.size() != 2 || !is_dtype_object(items[0]) || !is(items[1], NodeKind::bytes))
    refuse_call(of, arguments, "(dtype, bytes)");
  const Object& dtype = nodes_.object_of(items[0]);
  const std::string_view code = nodes_.text_of(nodes_.items(dtype.arguments)[0]);
  const std::string_view bytes = nodes_.text_of(items[1]);
  const bool swapped = dtype.filled && nodes_.text_of(nodes_.items(dtype.state)[1]) == ">";
  const auto is_code = [&](std::string_view wanted, std::size_t width) {
    return code == wanted && bytes.size() == width && !swapped;
  };
  if (is_code("f8", 8)) return nodes_.real(value_of<double>(bytes));
  if (is_code("f4", 4)) return nodes_.real(double{value_of<float>(bytes)});
  if (is_code("i8", 8)) return nodes_.integer(value_of<std::int64_t>(bytes));
  if (is_code("i4", 4)) return nodes_.integer(value_of<std::int32_t>(bytes));
  if (is_code("u4", 4)) return nodes_.integer(value_of<std::uint32_t>(bytes));
  if (is_code("b1", 1)) return nodes_.boolean(bytes[0] != 0);
  return nodes_.object(of, arguments);
}

NodeId Calls::encode(const Known& of, NodeId arguments) {
  const Items& items = nodes_.items(arguments);
  if (items.size() != 2 || !is(items[0], NodeKind::text) || !is(items[1], NodeKind::text) ||
      nodes_.text_of(items[1]) != "latin1")
    refuse_call(of, arguments, "(a text, 'latin1')");
  return nodes_.latin1(items[0]);
}

NodeId Calls::bytes(const Known& of, NodeId arguments) {
  const Items& items = nodes_.items(arguments);
  if (items.empty()) return nodes_.bytes({});
  if (items.size() != 1 || !is(items[0], NodeKind::bytes)) refuse_call(of, arguments, "() or (bytes)");
  return items[0];
}

// The list that it is made of stands for it, since a copy for each of many sets would be more than the file
// holds.
NodeId Calls::set(const Known& of, NodeId arguments) {
  const Items& items = nodes_.items(arguments);
  if (items.size() != 1 || !is(items[0], NodeKind::list)) refuse_call(of, arguments, "(a list)");
  return items[0];
}

NodeId Calls::reconstructor(const Known& of, NodeId arguments) {
  const Items& items = nodes_.items(arguments);
  const auto names = [&](NodeId id, Use use) {
    return is(id, NodeKind::name) && nodes_.name_of(id).use == use;
  };
  if (items.size() != 3 || !names(items[0], Use::fields) || !names(items[1], Use::object_class) ||
      !is(items[2], NodeKind::none))
    refuse_call(of, arguments, "(a class that has fields, object, None)");
  return nodes_.object(nodes_.name_of(items[0]), nodes_.empty_tuple());
}

}  // namespace weft::exchange::torch
