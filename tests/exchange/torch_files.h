// Pickles and zips by hand, each byte where a test wants it.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/refused.h"
#include "weft/exchange/torch/archive.h"
#include "weft/exchange/torch/crc32.h"
#include "weft/exchange/torch/unpickle.h"

namespace weft::testing {

template <class T>
std::string little(T value) {
  std::string out(sizeof value, '\0');
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

inline std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// Opcodes.
inline std::string pickle(const std::string& opcodes) { return "\x80\x02" + opcodes + "."; }
inline std::string word(const std::string& text) {
  return "X" + little(static_cast<std::uint32_t>(text.size())) + text;
}
inline std::string number(std::int32_t value) { return "J" + little(value); }
inline std::string name(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
inline std::string tuple(const std::string& items) { return "(" + items + "t"; }
inline std::string entry(const std::string& key, const std::string& value) { return word(key) + value; }
inline std::string dict(const std::string& entries) { return "}(" + entries + "u"; }
inline std::string list(const std::string& items) { return "](" + items + "e"; }
/// An object of a class that is filled from fields.
inline std::string object(const std::string& module, const std::string& cls, const std::string& fields) {
  return name(module, cls) + ")\x81" + dict(fields) + "b";
}
inline std::string ordered_dict() { return name("collections", "OrderedDict") + ")R"; }
inline std::string storage(const std::string& key, std::int32_t elements,
                           const std::string& cls = "FloatStorage") {
  return tuple(word("storage") + name("torch", cls) + word(key) + word("cpu") + number(elements)) + "Q";
}
/// sizes and strides: the numbers in a tuple.
inline std::string tensor(const std::string& storage, std::int32_t offset, const std::string& sizes,
                          const std::string& strides) {
  return name("torch._utils", "_rebuild_tensor_v2") +
         tuple(storage + number(offset) + tuple(sizes) + tuple(strides) + "\x89" + ordered_dict()) + "R";
}

inline exchange::torch::Value unpickled(const std::string& pickle) {
  return exchange::torch::unpickled(bytes_of(pickle), "p");
}
/// What is said to a pickle of these opcodes, of which the first has the byte 2.
inline std::string pickle_said(const std::string& opcodes) {
  return refused([&] { (void)unpickled(pickle(opcodes)); });
}

struct ZipEntry {
  std::string name, data;
  std::string lies_as = {};  // its name in its own header, where it is another
  std::uint16_t flags = 0x0800, method = 0;
  bool checksum = true;
  bool wide = false;           // sizes and place in 64 bits
  std::int64_t moved = 0;      // of where the directory says that it begins
  std::uint32_t taller = 0;    // of its size
  std::uint16_t aligned = 64;  // where its bytes begin
};

class ZipFile {
 public:
  explicit ZipFile(std::vector<ZipEntry> entries) {
    for (const ZipEntry& entry : entries) add(entry);
    directory_at = file.size();
    count = entries.size();
  }
  /// With the end record of old, or with both.
  std::string whole(bool wide = false) const {
    const std::uint64_t bytes = directory.size(), end = directory_at + bytes;
    std::string out = file + directory;
    if (wide) {
      out += "PK\x06\x06" + little(std::uint64_t{44}) + little(std::uint16_t{45}) +
             little(std::uint16_t{45}) + little(std::uint64_t{0}) + little(count) + little(count) +
             little(bytes) + little(directory_at) + "PK\x06\x07" + little(std::uint32_t{0}) + little(end) +
             little(std::uint32_t{1});
    }
    const auto narrow = [&](auto value) { return wide ? static_cast<decltype(value)>(~0ULL) : value; };
    const auto few = narrow(static_cast<std::uint16_t>(count));
    return out + "PK\x05\x06" + little(std::uint32_t{0}) + little(few) + little(few) +
           little(narrow(static_cast<std::uint32_t>(bytes))) +
           little(narrow(static_cast<std::uint32_t>(directory_at))) + little(std::uint16_t{0});
  }

  std::string file, directory;
  std::uint64_t directory_at = 0, count = 0;

 private:
  void add(const ZipEntry& entry) {
    const std::uint64_t header = file.size();
    const std::uint32_t crc = entry.checksum ? exchange::torch::crc32(bytes_of(entry.data)) : 0;
    const auto size = static_cast<std::uint32_t>(entry.data.size()) + entry.taller;
    const bool follow = (entry.flags & 8) != 0;
    const std::string local = entry.lies_as.empty() ? entry.name : entry.lies_as;
    const std::string sums = follow ? std::string(12, '\0') : little(crc) + little(size) + little(size);
    const std::string common = little(entry.flags) + little(entry.method) + std::string(4, '\0');
    const std::uint64_t unfilled = file.size() + 30 + local.size() + 4;
    const auto filler =
        static_cast<std::uint16_t>((entry.aligned - unfilled % entry.aligned) % entry.aligned);
    file += "PK\x03\x04" + little(std::uint16_t{20}) + common + sums +
            little(static_cast<std::uint16_t>(local.size())) +
            little(static_cast<std::uint16_t>(filler + 4)) + local + "FB" + little(filler) +
            std::string(filler, 'Z') + entry.data;
    if (follow) file += "PK\x07\x08" + little(crc) + little(size) + little(size);
    const std::uint64_t says = header + static_cast<std::uint64_t>(entry.moved);
    const std::string extra = entry.wide ? little(std::uint16_t{1}) + little(std::uint16_t{24}) +
                                               little(std::uint64_t{size}) + little(std::uint64_t{size}) +
                                               little(says)
                                         : "";
    const auto narrow = [&](std::uint64_t v) { return entry.wide ? ~0U : static_cast<std::uint32_t>(v); };
    directory += "PK\x01\x02" + little(std::uint16_t{20}) + little(std::uint16_t{20}) + common + little(crc) +
                 little(narrow(size)) + little(narrow(size)) +
                 little(static_cast<std::uint16_t>(entry.name.size())) +
                 little(static_cast<std::uint16_t>(extra.size())) + std::string(10, '\0') +
                 little(narrow(says)) + entry.name + extra;
  }
};

/// A stream of torch.save, with storages data/0, data/1, ….
inline std::string saved(const std::string& opcodes, const std::vector<std::string>& storages = {}) {
  std::vector<ZipEntry> entries{{"a/data.pkl", pickle(opcodes)}, {"a/byteorder", "little"}};
  for (std::size_t i = 0; i < storages.size(); ++i)
    entries.push_back({"a/data/" + std::to_string(i), storages[i]});
  entries.push_back({"a/version", "3\n"});
  return ZipFile(entries).whole();
}

/// What is said to a stream.
inline std::string stream_said(const std::string& stream) {
  return refused([&] { (void)exchange::torch::Archive(bytes_of(stream), "f"); });
}
inline std::string saved_said(const std::string& opcodes, const std::vector<std::string>& storages = {}) {
  return stream_said(saved(opcodes, storages));
}

}  // namespace weft::testing
