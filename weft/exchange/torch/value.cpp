#include "weft/exchange/torch/value.h"

#include <algorithm>
#include <cstddef>

namespace weft::exchange::torch {

bool StoredTensor::contiguous() const {
  if (strides.size() != size.size()) return false;
  if (std::find(size.begin(), size.end(), 0) != size.end()) return true;
  std::int64_t expected = 1;
  for (std::size_t i = size.size(); i-- > 0;) {
    if (size[i] == 1) continue;
    if (strides[i] != expected) return false;
    expected *= size[i];
  }
  return true;
}

std::int64_t StoredTensor::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t n : size) count *= n;
  return count;
}

const Value* Map::find(std::string_view key) const {
  for (const auto& [name, value] : entries)
    if (const std::string* text = name.text(); text != nullptr && *text == key) return &value;
  return nullptr;
}

Value::Value(std::string text) : held_(std::make_shared<const std::string>(std::move(text))) {}
Value::Value(std::vector<Value> list) : held_(std::make_shared<const std::vector<Value>>(std::move(list))) {}
Value::Value(Map map) : held_(std::make_shared<const Map>(std::move(map))) {}
Value::Value(StoredTensor tensor) : held_(std::make_shared<const StoredTensor>(std::move(tensor))) {}
Value::Value(Named named) : held_(std::make_shared<const Named>(std::move(named))) {}

Value Value::of_bytes(std::string bytes) {
  Value value;
  value.held_ = std::make_shared<const Bytes>(Bytes{std::move(bytes)});
  return value;
}

const std::string* Value::bytes() const {
  const Bytes* found = shared<Bytes>();
  return found == nullptr ? nullptr : &found->held;
}

std::string_view Value::kind() const {
  if (is_none()) return "None";
  if (boolean() != nullptr) return "a boolean";
  if (integer() != nullptr) return "a whole number";
  if (real() != nullptr) return "a number";
  if (text() != nullptr) return "a text";
  if (bytes() != nullptr) return "bytes";
  if (list() != nullptr) return "a list";
  if (map() != nullptr) return map()->type.empty() ? "a dict" : "an object";
  if (tensor() != nullptr) return "a tensor";
  return "a name";
}

}  // namespace weft::exchange::torch
