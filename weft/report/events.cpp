// The few bytes of protocol buffers that a scalar needs.
#include <array>
#include <bit>
#include <cstring>

#include "weft/report/tensorboard.h"

namespace weft::report::events {
namespace {

constexpr std::array<std::uint32_t, 256> crc_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value & 1U ? 0x82F63B78U ^ (value >> 1U) : value >> 1U;
    table[i] = value;
  }
  return table;
}();

enum class Wire : unsigned { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

template <class T>
void append_raw(std::string& out, T value) {
  static_assert(std::endian::native == std::endian::little);
  std::array<char, sizeof(T)> bytes;
  std::memcpy(bytes.data(), &value, sizeof(T));
  out.append(bytes.data(), bytes.size());
}

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U) out.push_back(char(value | 0x80));
  out.push_back(char(value));
}

void append_key(std::string& out, unsigned field, Wire wire) {
  append_varint(out, field << 3U | unsigned(wire));
}

void append_bytes(std::string& out, unsigned field, const std::string& bytes) {
  append_key(out, field, Wire::bytes);
  append_varint(out, bytes.size());
  out += bytes;
}

// Event { 1: wall time, 2: step, 3: file version, 5: summary }
std::string event(double wall_time, std::int64_t step) {
  std::string out;
  append_key(out, 1, Wire::fixed64);
  append_raw(out, wall_time);
  append_key(out, 2, Wire::varint);
  append_varint(out, std::uint64_t(step));
  return out;
}

}  // namespace

std::uint32_t masked_crc(std::span<const char> bytes) {
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char byte : bytes)
    crc = crc_table[(crc ^ static_cast<unsigned char>(byte)) & 0xFFU] ^ (crc >> 8U);
  crc = ~crc;
  return std::rotr(crc, 15) + 0xA282EAD8U;
}

std::string record(const std::string& payload) {
  std::string length;
  append_raw(length, std::uint64_t(payload.size()));
  std::string out = length;
  append_raw(out, masked_crc(length));
  out += payload;
  append_raw(out, masked_crc(payload));
  return out;
}

std::string opening(double wall_time) {
  std::string out = event(wall_time, 0);
  append_bytes(out, 3, "brain.Event:2");
  return out;
}

// Summary { 1: Value { 1: tag, 2: simple value } }
std::string scalar(double wall_time, std::int64_t step, const std::string& tag, float value) {
  std::string inner;
  append_bytes(inner, 1, tag);
  append_key(inner, 2, Wire::fixed32);
  append_raw(inner, value);
  std::string summary;
  append_bytes(summary, 1, inner);
  std::string out = event(wall_time, step);
  append_bytes(out, 5, summary);
  return out;
}

}  // namespace weft::report::events
