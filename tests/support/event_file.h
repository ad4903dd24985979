// Reads a TensorBoard event file as TensorBoard does: records, and of each the scalar in it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/file.h"
#include "weft/report/tensorboard.h"

namespace weft::testing {

struct EventScalar {
  std::int64_t step = 0;
  std::string tag;
  float value = 0;
  bool operator==(const EventScalar&) const = default;
};

/// The fields of one message, in their order.
class EventFields {
 public:
  explicit EventFields(std::string_view bytes) : bytes_(bytes) {}
  bool next() {
    if (bytes_.empty()) return false;
    const std::uint64_t key = varint();
    number = int(key >> 3U);
    switch (key & 7U) {
      case 0:
        integer = varint();
        break;
      case 1:
        content = take(8);
        break;
      case 2:
        content = take(varint());
        break;
      default:
        content = take(4);
    }
    return true;
  }
  int number = 0;
  std::uint64_t integer = 0;
  std::string_view content;

 private:
  std::string_view take(std::size_t count) {
    const std::string_view out = bytes_.substr(0, count);
    EXPECT_EQ(out.size(), count) << "a message that ends too early";
    bytes_.remove_prefix(out.size());
    return out;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= std::uint64_t(byte & 0x7FU) << shift;
      if (byte < 0x80) break;
    }
    return value;
  }
  std::string_view bytes_;
};

/// Event { 2: step, 5: Summary { 1: Value { 1: tag, 2: simple value } } }; without a tag where it has none.
inline EventScalar scalar_of(std::string_view event) {
  EventScalar out;
  for (EventFields fields(event); fields.next();) {
    if (fields.number == 2) out.step = std::int64_t(fields.integer);
    if (fields.number != 5) continue;
    EventFields summary(fields.content);
    EXPECT_TRUE(summary.next());
    for (EventFields value(summary.content); value.next();) {
      if (value.number == 1) out.tag = value.content;
      if (value.number == 2) std::memcpy(&out.value, value.content.data(), sizeof(float));
    }
  }
  return out;
}

/// Of the one event file of a folder.
inline std::vector<EventScalar> scalars_in(const std::filesystem::path& folder) {
  const std::string bytes = read_file(std::filesystem::directory_iterator(folder)->path());
  std::vector<EventScalar> out;
  constexpr std::size_t head = 12, tail = 4;
  for (std::size_t at = 0; at < bytes.size();) {
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data() + at, sizeof(length));
    const std::string payload = bytes.substr(at + head, length);
    EXPECT_EQ(bytes.substr(at, head + length + tail), report::events::record(payload));
    if (const EventScalar found = scalar_of(payload); !found.tag.empty()) out.push_back(found);
    at += head + length + tail;
  }
  return out;
}

}  // namespace weft::testing
