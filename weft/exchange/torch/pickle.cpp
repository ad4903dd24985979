#include "weft/exchange/torch/pickle.h"

#include <bit>
#include <cstring>

#include "weft/base/error.h"

namespace weft::exchange::torch {
namespace {

static_assert(std::endian::native == std::endian::little, "a pickle's numbers are little endian");

template <class T>
std::string bytes_of(T value) {
  std::string out(sizeof value, '\0');
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

struct Type {
  std::string_view name, storage;
};
Type in_torch(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
      return {"float32", "FloatStorage"};
    case Dtype::bf16:
      return {"bfloat16", "BFloat16Storage"};
    case Dtype::f16:
      return {"float16", "HalfStorage"};
    default:
      fail(Kind::internal, "pickle: a tensor of ", name(dtype), ", expected f32, bf16 or f16");
  }
}

Opcodes marked(const std::vector<Opcodes>& items, char close) {
  Opcodes out = "(";
  for (const Opcodes& item : items) out += item;
  return out + close;
}

Opcodes map_of(const Map& map) {
  std::vector<std::pair<Opcodes, Opcodes>> entries;
  for (const auto& [key, value] : map.entries) entries.emplace_back(pickled(key), pickled(value));
  const Opcodes fields = dict_of(entries);
  if (map.type.empty()) return fields;
  const std::size_t dot = map.type.rfind('.');
  return object(global(map.type.substr(0, dot), map.type.substr(dot + 1)), fields);
}

Opcodes named_of(const Named& named) {
  const std::size_t dot = named.name.rfind('.');
  const Opcodes what = global(named.name.substr(0, dot), named.name.substr(dot + 1));
  if (named.arguments.empty()) return what;
  std::vector<Opcodes> arguments;
  for (const Value& one : named.arguments) arguments.push_back(pickled(one));
  return call(what, tuple_of(arguments));
}

}  // namespace

Opcodes pickled(bool value) { return value ? "\x88" : "\x89"; }

Opcodes pickled(std::int64_t value) {
  if (value == std::int32_t(value)) return "J" + bytes_of(std::int32_t(value));
  return std::string("\x8a\x08") + bytes_of(value);
}

// The one number of a pickle whose highest byte comes first.
Opcodes pickled(double value) {
  const std::string bytes = bytes_of(value);
  return "G" + std::string(bytes.rbegin(), bytes.rend());
}

Opcodes pickled(std::string_view text) {
  return "X" + bytes_of(std::uint32_t(text.size())) + std::string(text);
}

Opcodes pickled(const Value& value) {
  if (value.is_none()) return "N";
  if (const bool* flag = value.boolean()) return pickled(*flag);
  if (const std::int64_t* number = value.integer()) return pickled(*number);
  if (const double* number = value.real()) return pickled(*number);
  if (const std::string* text = value.text()) return pickled(std::string_view(*text));
  if (const Map* map = value.map()) return map_of(*map);
  if (const Named* named = value.named()) return named_of(*named);
  const std::vector<Value>* list = value.list();
  if (list == nullptr) fail(Kind::internal, "pickle: ", value.kind(), " cannot be written");
  std::vector<Opcodes> items;
  for (const Value& one : *list) items.push_back(pickled(one));
  return list_of(items);
}

Opcodes tuple_of(const std::vector<Opcodes>& items) { return marked(items, 't'); }

Opcodes tuple_of(std::span<const std::int64_t> numbers) {
  std::vector<Opcodes> items;
  for (const std::int64_t number : numbers) items.push_back(pickled(number));
  return tuple_of(items);
}

Opcodes list_of(const std::vector<Opcodes>& items) { return "]" + marked(items, 'e'); }

Opcodes dict_of(const std::vector<std::pair<Opcodes, Opcodes>>& entries) {
  Opcodes out = "}(";
  for (const auto& [key, value] : entries) out += key + value;
  return out + "u";
}

Opcodes global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}

Opcodes call(const Opcodes& what, const Opcodes& arguments) { return what + arguments + "R"; }

Opcodes object(const Opcodes& cls, const Opcodes& state) { return cls + ")\x81" + state + "b"; }

Opcodes fields_of(const std::vector<std::pair<std::string_view, Opcodes>>& fields) {
  std::vector<std::pair<Opcodes, Opcodes>> entries;
  for (const auto& [name, value] : fields) entries.emplace_back(pickled(name), value);
  return dict_of(entries);
}

std::string pickle_of(const Opcodes& value) { return "\x80\x02" + value + "."; }

Opcodes tensor_of(Dtype dtype, std::span<const std::int64_t> size) {
  std::vector<std::int64_t> strides(size.size());
  std::int64_t elements = 1;
  for (std::size_t i = size.size(); i-- > 0;) {
    strides[i] = elements;
    elements *= size[i];
  }
  const Opcodes storage =
      tuple_of({pickled(std::string_view("storage")), global("torch", in_torch(dtype).storage),
                pickled(std::string_view("0")), pickled(std::string_view("cpu")), pickled(elements)}) +
      "Q";
  return call(global("torch._utils", "_rebuild_tensor_v2"),
              tuple_of({storage, pickled(std::int64_t{0}), tuple_of(size), tuple_of(strides), pickled(false),
                        call(global("collections", "OrderedDict"), ")")}));
}

Opcodes type_of(Dtype dtype) { return global("torch", in_torch(dtype).name); }

}  // namespace weft::exchange::torch
