#include "weft/exchange/torch/zip_write.h"

#include <cstring>

#include "weft/base/error.h"
#include "weft/exchange/torch/crc32.h"

namespace weft::exchange::torch {
namespace {

constexpr std::string_view folder = "archive/";
constexpr std::int64_t alignment = 64, local_bytes = 30, filler_head = 4;
constexpr std::uint16_t version = 10, utf8_names = 0x0800;

template <class... Each>
std::string packed(Each... numbers) {
  std::string out;
  const auto add = [&](auto number) {
    std::string bytes(sizeof number, '\0');
    std::memcpy(bytes.data(), &number, sizeof number);
    out += bytes;
  };
  (add(numbers), ...);
  return out;
}

/// So many bytes, and an extra field's head says that they mean nothing.
std::string filler(std::int64_t bytes) {
  return "FB" + packed(std::uint16_t(bytes - filler_head)) +
         std::string(std::size_t(bytes - filler_head), 'Z');
}

}  // namespace

void ZipWriter::add(std::string_view name, std::span<const std::byte> bytes) {
  if (std::ssize(bytes) > most_record_bytes)
    fail(Kind::internal, "zip: a record of ", bytes.size(), " bytes, expected ", most_record_bytes,
         " at most");
  Record record{.name = std::string(folder) + std::string(name),
                .header = std::uint32_t(file_.at() - start_),
                .bytes = std::uint32_t(bytes.size()),
                .crc = crc32(bytes)};
  const auto name_bytes = std::int64_t(record.name.size());
  const std::int64_t used = record.header + local_bytes + name_bytes + filler_head;
  const std::string extra = filler(filler_head + (alignment - used % alignment) % alignment);
  file_.write(packed(std::uint32_t{0x04034b50}, version, utf8_names, std::uint16_t{0}, std::uint32_t{0},
                     record.crc, record.bytes, record.bytes, std::uint16_t(name_bytes),
                     std::uint16_t(extra.size())));
  file_.write(record.name);
  file_.write(extra);
  file_.write(bytes);
  records_.push_back(std::move(record));
}

std::int64_t ZipWriter::finish() {
  const auto directory = std::uint32_t(file_.at() - start_);
  for (const Record& r : records_) {
    file_.write(packed(std::uint32_t{0x02014b50}, version, version, utf8_names, std::uint16_t{0},
                       std::uint32_t{0}, r.crc, r.bytes, r.bytes, std::uint16_t(r.name.size()),
                       std::uint16_t{0}, std::uint16_t{0}, std::uint16_t{0}, std::uint16_t{0},
                       std::uint32_t{0}, r.header));
    file_.write(r.name);
  }
  const auto end = std::uint32_t(file_.at() - start_);
  const auto count = std::uint16_t(records_.size());
  file_.write(packed(std::uint32_t{0x06054b50}, std::uint16_t{0}, std::uint16_t{0}, count, count,
                     std::uint32_t(end - directory), directory, std::uint16_t{0}));
  return file_.at() - start_;
}

std::int64_t write_archive(File& file, std::string_view pickle, std::span<const std::byte> storage) {
  ZipWriter zip(file);
  zip.add("data.pkl", pickle);
  zip.add("byteorder", "little");
  if (!storage.empty()) zip.add("data/0", storage);
  zip.add("version", "3\n");
  return zip.finish();
}

}  // namespace weft::exchange::torch
