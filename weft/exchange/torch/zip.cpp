#include "weft/exchange/torch/zip.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "weft/base/error.h"
#include "weft/exchange/torch/nodes.h"

namespace weft::exchange::torch {
namespace {

static_assert(std::endian::native == std::endian::little, "a zip's numbers are little endian");

constexpr std::uint32_t local_sign = 0x04034b50, central_sign = 0x02014b50, end_sign = 0x06054b50,
                        wide_end_sign = 0x06064b50, locator_sign = 0x07064b50;
constexpr std::uint64_t local_bytes = 30, central_bytes = 46, end_bytes = 22, wide_end_bytes = 56,
                        locator_bytes = 20;
constexpr std::uint32_t full = 0xffffffff;  // the number stands in a wider field
constexpr std::uint16_t sizes_follow = 0x0008, utf8_names = 0x0800;

struct Directory {
  std::uint64_t at = 0, end = 0, count = 0;
};

class Zip {
 public:
  Zip(std::span<const std::byte> file, const std::string& who) : file_(file), who_(who) {}

  std::vector<Record> records() const;

 private:
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(Kind::data, who_, ": ", parts...);
  }
  // Callers have seen that the bytes are there.
  template <class T>
  T number(std::uint64_t at) const {
    T value;
    std::memcpy(&value, file_.data() + at, sizeof value);
    return value;
  }
  std::string_view text(std::uint64_t at, std::uint64_t bytes) const {
    return {reinterpret_cast<const char*>(file_.data()) + at, bytes};
  }

  Directory directory() const;
  Directory wide_directory(std::uint64_t locator) const;
  Record entry(std::uint64_t& at, const Directory& in) const;
  void widen(Record& record, std::uint64_t at, std::uint64_t bytes) const;
  void find_data(Record& record, std::uint64_t entry, const Directory& in) const;
  void must_be_good_name(std::string_view name) const;
  void must_be_apart(std::vector<Record> records) const;

  std::span<const std::byte> file_;
  const std::string& who_;
};

Directory Zip::wide_directory(std::uint64_t locator) const {
  const auto at = number<std::uint64_t>(locator + 8);
  if (at > locator || locator - at < wide_end_bytes || number<std::uint32_t>(at) != wide_end_sign ||
      number<std::uint64_t>(at + 4) != locator - at - 12)
    refuse("a zip whose wide end record is not at byte ", at, ", where it should be");
  const Directory out{number<std::uint64_t>(at + 48), at, number<std::uint64_t>(at + 32)};
  if (out.at > at || number<std::uint64_t>(at + 40) != at - out.at)
    refuse("a zip whose directory of ", number<std::uint64_t>(at + 40), " bytes at byte ", out.at,
           " does not end at its end record, byte ", at);
  return out;
}

Directory Zip::directory() const {
  const std::uint64_t size = file_.size();
  if (size < end_bytes || number<std::uint32_t>(0) != local_sign)
    refuse("is no zip: it does not begin with PK and 3, 4");
  const std::uint64_t end = size - end_bytes;
  if (number<std::uint32_t>(end) != end_sign || number<std::uint16_t>(end + 20) != 0)
    refuse("does not end as a zip does: it is cut short, or something lies behind it");
  const Directory narrow{number<std::uint32_t>(end + 16), end, number<std::uint16_t>(end + 10)};
  const std::uint32_t bytes = number<std::uint32_t>(end + 12);
  if (end >= locator_bytes && number<std::uint32_t>(end - locator_bytes) == locator_sign) {
    const Directory wide = wide_directory(end - locator_bytes);
    if ((narrow.at != full && narrow.at != wide.at) || (bytes != full && bytes != wide.end - wide.at) ||
        (narrow.count != 0xffff && narrow.count != wide.count))
      refuse("a zip whose two end records do not agree");
    return wide;
  }
  if (narrow.at > end || bytes != end - narrow.at)
    refuse("a zip whose directory of ", bytes, " bytes at byte ", narrow.at,
           " does not end at its end record, byte ", end);
  return narrow;
}

void Zip::must_be_good_name(std::string_view name) const {
  bool good = !name.empty() && name.front() != '/' && name.find('\\') == std::string_view::npos &&
              name.find('\0') == std::string_view::npos && !(name.size() > 1 && name[1] == ':');
  for (std::size_t at = 0; good && at <= name.size();) {
    const std::size_t slash = std::min(name.find('/', at), name.size());
    const std::string_view part = name.substr(at, slash - at);
    good = part != ".." && part != "." && (!part.empty() || at == name.size());
    at = slash + 1;
  }
  if (!good)
    refuse("a zip with a record '", shown(name), "', which is no name of one: it leads elsewhere or nowhere");
}

// The numbers of a record that do not fit in 32 bits stand in an extra field, in this order.
void Zip::widen(Record& record, std::uint64_t at, std::uint64_t bytes) const {
  const std::uint64_t end = at + bytes;
  while (end - at >= 4) {
    const auto kind = number<std::uint16_t>(at);
    const std::uint64_t length = number<std::uint16_t>(at + 2);
    at += 4;
    if (length > end - at) break;
    if (kind != 1) {
      at += length;
      continue;
    }
    std::uint64_t left = length;
    const auto next = [&](std::uint64_t& value) {
      if (value != full) return true;
      if (left < 8) return false;
      value = number<std::uint64_t>(at + length - left);
      left -= 8;
      return true;
    };
    std::uint64_t stored = record.bytes;  // as many bytes stored as not: both are here or neither
    if (!next(record.bytes) || !next(stored) || !next(record.header) || stored != record.bytes)
      refuse("a zip whose record '", shown(record.name), "' has not got the wide sizes that it should have");
    return;
  }
  refuse("a zip whose record '", shown(record.name), "' has not got the wide sizes that it should have");
}

Record Zip::entry(std::uint64_t& at, const Directory& in) const {
  if (in.end - at < central_bytes || number<std::uint32_t>(at) != central_sign)
    refuse("a zip whose directory is broken at byte ", at);
  const std::uint64_t name = number<std::uint16_t>(at + 28), extra = number<std::uint16_t>(at + 30),
                      comment = number<std::uint16_t>(at + 32);
  if (in.end - at - central_bytes < name + extra + comment)
    refuse("a zip whose directory is broken at byte ", at);
  Record record{.name = text(at + central_bytes, name),
                .header = number<std::uint32_t>(at + 42),
                .data = 0,
                .bytes = number<std::uint32_t>(at + 24),
                .crc = number<std::uint32_t>(at + 16)};
  must_be_good_name(record.name);
  const auto flags = number<std::uint16_t>(at + 8);
  const auto method = number<std::uint16_t>(at + 10);
  if ((flags & 1) != 0) refuse("a zip whose record '", shown(record.name), "' is encrypted");
  if ((flags & ~(sizes_follow | utf8_names)) != 0)
    refuse("a zip whose record '", shown(record.name), "' has the flags ", flags,
           ", expected none but 8 and 2048");
  if (method != 0)
    refuse("a zip whose record '", shown(record.name), "' is compressed by method ", method,
           ", expected 0, stored");
  if (number<std::uint32_t>(at + 20) != record.bytes)
    refuse("a zip whose record '", shown(record.name), "' has ", number<std::uint32_t>(at + 20),
           " bytes stored, expected the ", record.bytes, " that it stands for");
  if (record.bytes == full || record.header == full) widen(record, at + central_bytes + name, extra);
  find_data(record, at, in);
  at += central_bytes + name + extra + comment;
  return record;
}

// Behind the record's own header, which must be of the same record.
void Zip::find_data(Record& record, std::uint64_t entry, const Directory& in) const {
  const std::uint64_t at = record.header;
  if (at > in.at || in.at - at < local_bytes || number<std::uint32_t>(at) != local_sign)
    refuse("a zip whose record '", shown(record.name), "' does not begin at byte ", at,
           ", where its directory says");
  const std::uint64_t name = number<std::uint16_t>(at + 26), extra = number<std::uint16_t>(at + 28);
  record.data = at + local_bytes + name + extra;
  if (record.data > in.at || record.bytes > in.at - record.data)
    refuse("a zip whose record '", shown(record.name), "' reaches beyond byte ", in.at,
           ", where its directory begins");
  if (text(at + local_bytes, name) != record.name)
    refuse("a zip whose record '", shown(record.name), "' is called '", shown(text(at + local_bytes, name)),
           "' where it lies");
  const auto flags = number<std::uint16_t>(at + 6);
  if (flags != number<std::uint16_t>(entry + 8) || number<std::uint16_t>(at + 8) != 0)
    refuse("a zip whose record '", shown(record.name), "' has other flags where it lies");
  if ((flags & sizes_follow) != 0) return;
  const auto agrees = [&](std::uint64_t local, std::uint64_t value) {
    const auto said = number<std::uint32_t>(local);
    return said == value || said == full;
  };
  if (number<std::uint32_t>(at + 14) != record.crc || !agrees(at + 18, record.bytes) ||
      !agrees(at + 22, record.bytes))
    refuse("a zip whose record '", shown(record.name), "' has another size or checksum where it lies");
}

void Zip::must_be_apart(std::vector<Record> records) const {
  std::sort(records.begin(), records.end(),
            [](const Record& a, const Record& b) { return a.header < b.header; });
  for (std::size_t i = 0; i + 1 < records.size(); ++i)
    if (records[i].data + records[i].bytes > records[i + 1].header)
      refuse("a zip whose records '", shown(records[i].name), "' and '", shown(records[i + 1].name),
             "' overlap");
}

std::vector<Record> Zip::records() const {
  const Directory in = directory();
  // Before its records are looked at, since it compresses some of them.
  if (text(in.at, in.end - in.at).find("/constants.pkl") != std::string_view::npos)
    refuse("is a program that TorchScript wrote, expected what torch.save writes");
  std::vector<Record> out;
  for (std::uint64_t at = in.at; at < in.end;) out.push_back(entry(at, in));
  if (out.size() != in.count)
    refuse("a zip whose directory has ", out.size(), " records, expected the ", in.count,
           " that its end record says");
  must_be_apart(out);
  std::sort(out.begin(), out.end(), [](const Record& a, const Record& b) { return a.name < b.name; });
  for (std::size_t i = 0; i + 1 < out.size(); ++i)
    if (out[i].name == out[i + 1].name) refuse("a zip with two records '", shown(out[i].name), "'");
  return out;
}

}  // namespace

std::vector<Record> zip_records(std::span<const std::byte> file, const std::string& who) {
  return Zip(file, who).records();
}

}  // namespace weft::exchange::torch
