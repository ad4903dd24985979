#include "weft/exchange/gguf/values.h"

#include <array>
#include <charconv>

namespace weft::exchange::gguf {

std::string_view what_is(ValueType type) {
  constexpr std::array<std::string_view, 13> names{"a u8",   "an i8",  "a u16",  "an i16", "a u32",
                                                   "an i32", "an f32", "a bool", "a text", "a list",
                                                   "a u64",  "an i64", "an f64"};
  return names[std::size_t(type)];
}

Value whole(std::int64_t value) { return {.type = ValueType::u32, .held = value}; }
Value real(double value) { return {.type = ValueType::f32, .held = value}; }
Value yes(bool value) { return {.type = ValueType::yes_or_no, .held = value}; }
Value text_of(std::string value) { return {.type = ValueType::text, .held = std::move(value)}; }
Value words_of(std::vector<std::string> values) {
  return {.type = ValueType::list, .element = ValueType::text, .held = std::move(values)};
}
Value wholes_of(std::vector<std::int64_t> values) {
  return {.type = ValueType::list, .element = ValueType::i32, .held = std::move(values)};
}
Value answers_of(std::vector<std::int64_t> values) {
  return {.type = ValueType::list, .element = ValueType::yes_or_no, .held = std::move(values)};
}
Value reals_of(std::vector<double> values) {
  return {.type = ValueType::list, .element = ValueType::f32, .held = std::move(values)};
}

const Value* Values::find(std::string_view key) const {
  const auto found = places_.find(key);
  return found == places_.end() ? nullptr : &all_[found->second].second;
}

bool Values::add(std::string key, Value value) {
  if (!places_.emplace(key, all_.size()).second) return false;
  all_.emplace_back(std::move(key), std::move(value));
  return true;
}

double as_written(float value) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  double out = value;
  std::from_chars(text.data(), end, out);
  return out;
}

}  // namespace weft::exchange::gguf
