#include "weft/exchange/torch/archive.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "weft/base/error.h"
#include "weft/exchange/torch/crc32.h"
#include "weft/exchange/torch/machine.h"
#include "weft/exchange/torch/zip.h"

namespace weft::exchange::torch {
namespace {

// What torch wrote before 1.6: a row of pickles, the first of them a number.
constexpr std::array<unsigned char, 14> before_zip{0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c,
                                                   0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};

void must_be_of_a_zip(std::span<const std::byte> bytes, const std::string& who) {
  const auto begins = [&](auto... expected) {
    std::size_t i = 0;
    return bytes.size() >= sizeof...(expected) && ((bytes[i++] == std::byte{expected}) && ...);
  };
  if (bytes.size() >= before_zip.size() &&
      std::equal(before_zip.begin(), before_zip.end(), bytes.begin(),
                 [](unsigned char a, std::byte b) { return std::byte{a} == b; }))
    fail(Kind::data, who,
         ": is of torch before 1.6, which wrote no zip: load and save it again with a newer torch");
  if (begins(std::uint8_t{0x80}))
    fail(Kind::data, who, ": is a pickle that stands alone, expected the zip that torch.save writes");
}

}  // namespace

struct Archive::Held {
  Held(std::span<const std::byte> file, std::string name);

  std::string_view without_folder(const Record& record) const { return record.name.substr(folder.size()); }
  /// Null where there is none.
  const Record* find(std::string_view name) const;
  std::span<const std::byte> bytes_of(const Record& record) const {
    return file.subspan(record.data, record.bytes);
  }
  /// Fails where its bytes are not those that were written.
  void must_be_whole(const Record& record) const;
  void must_have_one_folder();
  void must_be_readable() const;
  Value read() const;

  std::span<const std::byte> file;
  std::string who;
  std::vector<Record> records;  // sorted by name
  std::string_view folder;      // with its slash
  std::unique_ptr<std::atomic<bool>[]> known_whole;
  Value value;
};

Archive::Held::Held(std::span<const std::byte> bytes, std::string name) : file(bytes), who(std::move(name)) {
  must_be_of_a_zip(file, who);
  records = zip_records(file, who);
  known_whole = std::make_unique<std::atomic<bool>[]>(records.size());
  must_have_one_folder();
  must_be_readable();
  value = read();
}

const Record* Archive::Held::find(std::string_view name) const {
  const auto found = std::lower_bound(
      records.begin(), records.end(), name,
      [&](const Record& record, std::string_view wanted) { return without_folder(record) < wanted; });
  return found != records.end() && without_folder(*found) == name ? &*found : nullptr;
}

void Archive::Held::must_have_one_folder() {
  if (records.empty()) fail(Kind::data, who, ": a zip without a record");
  const std::string_view first = records.front().name;
  const std::size_t slash = first.find('/');
  if (slash == std::string_view::npos)
    fail(Kind::data, who, ": a zip whose record '", shown(first),
         "' lies in no folder: torch.save did not write it");
  folder = first.substr(0, slash + 1);
  for (const Record& record : records)
    if (!record.name.starts_with(folder))
      fail(Kind::data, who, ": a zip whose record '", shown(record.name), "' does not lie in '",
           shown(folder), "' as its others do: torch.save did not write it");
}

void Archive::Held::must_be_readable() const {
  if (find("data.pkl") == nullptr)
    fail(Kind::data, who, ": a zip without the record data.pkl: torch.save did not write it");
  if (const Record* order = find("byteorder"); order != nullptr) {
    must_be_whole(*order);
    const auto bytes = bytes_of(*order);
    const std::string_view word(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (word != "little")
      fail(Kind::data, who, ": its numbers are of the byte order '", shown(word), "', expected 'little'");
  }
}

// A writer that was told to save time leaves the checksum 0, and torch reads what it wrote.
void Archive::Held::must_be_whole(const Record& record) const {
  std::atomic<bool>& known = known_whole[static_cast<std::size_t>(&record - records.data())];
  if (known.load(std::memory_order_relaxed)) return;
  if (record.crc != 0 && crc32(bytes_of(record)) != record.crc)
    fail(Kind::data, who, ": the record ", shown(without_folder(record)),
         " is damaged: its bytes have another checksum than when they were written");
  known.store(true, std::memory_order_relaxed);
}

Value Archive::Held::read() const {
  const Record& pickle = *find("data.pkl");
  must_be_whole(pickle);
  Place place{who, " of data.pkl", 0};
  return Machine(bytes_of(pickle), place,
                 [this](const std::string& key) {
                   const Record* record = find("data/" + key);
                   return record == nullptr ? -1 : static_cast<std::int64_t>(record->bytes);
                 })
      .run();
}

Archive::Archive(std::span<const std::byte> bytes, std::string who)
    : held_(std::make_unique<Held>(bytes, std::move(who))) {}
Archive::Archive(Archive&&) noexcept = default;
Archive& Archive::operator=(Archive&&) noexcept = default;
Archive::~Archive() = default;

const Value& Archive::value() const { return held_->value; }

std::span<const std::byte> Archive::storage(const StoredTensor& tensor) const {
  const Record* record = held_->find("data/" + tensor.storage);
  if (record == nullptr) fail(Kind::data, held_->who, ": has no storage ", shown(tensor.storage));
  if (!tensor.held)
    fail(Kind::data, held_->who, ": a tensor of ", tensor.type, ", a type that weft does not hold");
  held_->must_be_whole(*record);
  return held_->bytes_of(*record);
}

std::span<const std::byte> Archive::bytes(const StoredTensor& tensor) const {
  const std::span<const std::byte> whole = storage(tensor);
  if (!tensor.contiguous())
    fail(Kind::data, held_->who, ": a tensor in the storage ", shown(tensor.storage),
         " whose elements do not lie next to each other, expected one that is contiguous");
  const std::int64_t elements = tensor.elements();
  if (elements == 0) return {};
  const std::int64_t held = std::ssize(whole) / tensor.width;
  if (tensor.offset < 0 || elements < 0 || tensor.offset > held || elements > held - tensor.offset)
    fail(Kind::internal, "a tensor of ", elements, " elements from ", tensor.offset, " on in a storage of ",
         held);
  return whole.subspan(static_cast<std::size_t>(tensor.offset * tensor.width),
                       static_cast<std::size_t>(elements * tensor.width));
}

}  // namespace weft::exchange::torch
