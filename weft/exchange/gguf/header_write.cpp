// The front of a GGUF file, of keys and of tensors whose places follow from their order.
#include <cstring>

#include "weft/base/error.h"
#include "weft/base/number.h"
#include "weft/exchange/gguf/header.h"

namespace weft::exchange::gguf {
namespace {

template <class T>
void put(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}
void put_text(std::string& out, std::string_view text) {
  put(out, std::uint64_t(text.size()));
  out += text;
}

// Of those that this program writes: no other type ever comes here.
void put_element(std::string& out, ValueType type, std::int64_t value) {
  if (type == ValueType::u32)
    put(out, narrow<std::uint32_t>(value));
  else if (type == ValueType::i32)
    put(out, narrow<std::int32_t>(value));
  else if (type == ValueType::yes_or_no)
    put(out, std::uint8_t(value != 0));
  else
    fail(Kind::internal, "gguf: ", what_is(type), " is not written");
}

void put_held(std::string& out, const Value& value) {
  if (const auto* number = value.as<std::int64_t>()) put_element(out, value.type, *number);
  if (const auto* number = value.as<double>()) put(out, float(*number));
  if (const auto* answer = value.as<bool>()) put(out, std::uint8_t(*answer));
  if (const auto* text = value.as<std::string>()) put_text(out, *text);
  if (value.type != ValueType::list) return;
  put(out, std::uint32_t(value.element));
  if (const auto* words = value.as<std::vector<std::string>>()) {
    put(out, std::uint64_t(words->size()));
    for (const std::string& word : *words) put_text(out, word);
  }
  if (const auto* numbers = value.as<std::vector<std::int64_t>>()) {
    put(out, std::uint64_t(numbers->size()));
    for (const std::int64_t one : *numbers) put_element(out, value.element, one);
  }
  if (const auto* reals = value.as<std::vector<double>>()) {
    put(out, std::uint64_t(reals->size()));
    for (const double one : *reals) put(out, float(one));
  }
}

}  // namespace

std::string header_bytes(const Values& values, std::vector<StoredTensor>& tensors) {
  std::string out = "GGUF";
  put(out, std::uint32_t{3});
  put(out, std::uint64_t(tensors.size()));
  put(out, std::uint64_t(values.all().size()));
  for (const auto& [key, value] : values.all()) {
    put_text(out, key);
    put(out, std::uint32_t(value.type));
    put_held(out, value);
  }
  std::int64_t at = 0;
  for (StoredTensor& one : tensors) {
    put_text(out, one.name);
    put(out, std::uint32_t(one.sizes.size()));
    for (const std::int64_t size : one.sizes) put(out, std::uint64_t(size));
    put(out, std::uint32_t(one.type));
    put(out, std::uint64_t(at));
    one.bytes = bytes_of(one.type, one.elements());
    one.at = at;
    at += round_up(one.bytes, usual_alignment);
  }
  out.resize(std::size_t(round_up(std::ssize(out), usual_alignment)));
  for (StoredTensor& one : tensors) one.at += std::ssize(out);
  return out;
}

}  // namespace weft::exchange::gguf
