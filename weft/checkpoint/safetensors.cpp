// The format as Hugging Face's readers define it: what they refuse is refused here, and nothing else written.
#include "weft/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/number.h"
#include "weft/checkpoint/strict_json.h"

namespace weft::checkpoint {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "the format is little endian");

constexpr std::int64_t length_bytes = 8;
constexpr std::size_t alignment = 64;
constexpr const char* notes_name = "__metadata__";

constexpr std::array type_words{
    std::pair{Dtype::f64, std::string_view("F64")},
    std::pair{Dtype::f32, std::string_view("F32")},
    std::pair{Dtype::f16, std::string_view("F16")},
    std::pair{Dtype::bf16, std::string_view("BF16")},
    std::pair{Dtype::i64, std::string_view("I64")},
    std::pair{Dtype::i32, std::string_view("I32")},
    std::pair{Dtype::u8, std::string_view("U8")},
    std::pair{Dtype::f8e4m3, std::string_view("F8_E4M3")},
    std::pair{Dtype::f8e5m2, std::string_view("F8_E5M2")},
};

std::string word_of(Dtype dtype) {
  for (const auto& [type, name] : type_words)
    if (type == dtype) return std::string(name);
  fail(Kind::internal, "safetensors: no word for ", name(dtype));
}

Dtype type_of(const std::string& word, const std::string& who) {
  for (const auto& [type, name] : type_words)
    if (name == word) return type;
  fail(Kind::data, who, ": its type ", json(word).dump(), " is none that weft holds");
}

// {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
Entry entry_of(const std::string& name, const json& about, const std::string& file, std::int64_t room) {
  if (!good_name(name))
    fail(Kind::data, file, ": a tensor's name ", json(name).dump().substr(0, 80),
         " is empty, unprintable or too long");
  const std::string who = text(file, ": ", name);
  Entry entry{name, type_of(word(about, "dtype", who), who), shape(about, "shape", who), 0};
  if (about.size() != 3)
    fail(Kind::data, who, ": has ", about.size(), " facts, expected dtype, shape, data_offsets");
  const Dims ends = whole_numbers(about, "data_offsets", who);
  if (ends.rank() != 2) fail(Kind::data, who, ": data_offsets holds ", ends.rank(), " numbers, expected 2");
  if (ends[0] > ends[1] || ends[1] > room)
    fail(Kind::data, who, ": lies in bytes ", ends[0], " to ", ends[1], " of the ", room,
         " that the file holds");
  const std::int64_t given = ends[1] - ends[0];
  const std::int64_t width = size_of(entry.dtype);
  // Not by multiplying: a hostile shape's bytes may be more than 63 bits count.
  if (given % width != 0 || given / width != entry.shape.elements()) {
    fail(Kind::data, who, ": ", entry.shape, " of ", weft::name(entry.dtype), " is given ", given,
         " bytes, expected ", entry.shape.elements(), " times ", width);
  }
  entry.begin = ends[0];
  return entry;
}

// Sorted, each must start where the last ended: so nothing overlaps, and no byte is nobody's.
void must_fill(std::vector<Entry>& entries, std::int64_t room, const std::string& who) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.bytes()) < std::pair(b.begin, b.bytes());
  });
  std::int64_t at = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != at) {
      fail(Kind::data, who, ": ", entry.name, " starts at byte ", entry.begin,
           ", and the one before it ends at ", at,
           entry.begin < at ? ": they overlap" : ": bytes between belong to none");
    }
    at += entry.bytes();
  }
  if (at != room)
    fail(Kind::data, who, ": holds ", room, " bytes of tensors, and its header accounts for ", at);
}

std::int64_t header_length(std::span<const std::byte> file, const std::string& who) {
  const auto size = static_cast<std::int64_t>(file.size());
  if (size < length_bytes)
    fail(Kind::data, who, ": holds ", size, " bytes, and a safetensors file starts with 8");
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  if (length > std::uint64_t{most_header_bytes})
    fail(Kind::data, who, ": claims a header of ", length, " bytes, at most ", most_header_bytes,
         " are allowed");
  if (static_cast<std::int64_t>(length) > size - length_bytes) {
    fail(Kind::data, who, ": claims a header of ", length, " bytes, and holds ", size - length_bytes,
         " behind its first 8");
  }
  return static_cast<std::int64_t>(length);
}

std::map<std::string, std::string> notes_of(const json& from, const std::string& who) {
  if (!from.is_object())
    fail(Kind::data, who, ": ", notes_name, " is ", from.type_name(), ", expected an object");
  std::map<std::string, std::string> notes;
  for (const auto& [name, value] : from.items())
    notes[name] = word(from, name.c_str(), text(who, ": ", notes_name));
  return notes;
}

}  // namespace

bool good_name(std::string_view name) {
  return !name.empty() && name.size() <= 4096 && name != notes_name &&
         std::none_of(name.begin(), name.end(), [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return byte < 0x20 || byte == 0x7f;
         });
}

std::string lay_out(std::vector<Entry>& entries, const std::map<std::string, std::string>& notes) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return size_of(a.dtype) > size_of(b.dtype); });
  json header = json::object();
  if (!notes.empty()) header[notes_name] = notes;
  std::int64_t at = 0;
  for (Entry& entry : entries) {
    if (!good_name(entry.name))
      fail(Kind::usage, "safetensors: a tensor's name of ", entry.name.size(),
           " bytes is empty, unprintable or too long");
    if (header.contains(entry.name)) fail(Kind::usage, "safetensors: ", entry.name, " is given twice");
    entry.begin = at;
    at += entry.bytes();
    header[entry.name] = {
        {"dtype", word_of(entry.dtype)},
        {"shape", std::vector<std::int64_t>(entry.shape.all().begin(), entry.shape.all().end())},
        {"data_offsets", {entry.begin, at}}};
  }
  std::string json_part;
  try {
    json_part = header.dump();
  } catch (const json::exception&) {
    fail(Kind::usage, "safetensors: a name is not UTF-8, which the format's JSON cannot say");
  }
  json_part.resize(round_up(json_part.size() + length_bytes, alignment) - length_bytes, ' ');
  if (static_cast<std::int64_t>(json_part.size()) > most_header_bytes) {
    fail(Kind::usage, "safetensors: ", entries.size(), " tensors need a header of ", json_part.size(),
         " bytes, at most ", most_header_bytes, " are allowed");
  }
  const std::uint64_t length = json_part.size();
  std::string out(length_bytes, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out + json_part;
}

Header read_header(std::span<const std::byte> file, const std::string& who) {
  const std::int64_t length = header_length(file, who);
  const std::string_view words(reinterpret_cast<const char*>(file.data()) + length_bytes,
                               std::size_t(length));
  if (words.empty() || words.front() != '{') fail(Kind::data, who, ": its header is no JSON object");
  const json header = strict_json(words, who, 3);
  Header out{.data_at = length_bytes + length};
  const std::int64_t room = static_cast<std::int64_t>(file.size()) - out.data_at;
  for (const auto& [name, about] : header.items()) {
    if (name == notes_name)
      out.notes = notes_of(about, who);
    else
      out.entries.push_back(entry_of(name, about, who, room));
  }
  must_fill(out.entries, room, who);
  return out;
}

TensorFile::TensorFile(const std::filesystem::path& path)
    : map_(path), header_(read_header(map_.bytes(), path.string())) {
  for (std::size_t i = 0; i < header_.entries.size(); ++i) places_[header_.entries[i].name] = i;
}

const Entry& TensorFile::at(const std::string& name) const {
  const auto found = places_.find(name);
  if (found == places_.end()) fail(Kind::data, path().string(), ": holds no tensor ", name);
  return header_.entries[found->second];
}

void write_tensors(const std::filesystem::path& path, const std::string& first_bytes,
                   std::span<const Entry> entries, const std::function<void(const Entry&, File&)>& fill,
                   const FileSystem& files) {
  write_atomically(
      path,
      [&](File& file) {
        file.write(first_bytes);
        for (const Entry& entry : entries) {
          const std::int64_t before = file.at();
          fill(entry, file);
          if (file.at() - before != entry.bytes()) {
            fail(Kind::internal, "safetensors: ", entry.name, " was written in ", file.at() - before,
                 " bytes, expected ", entry.bytes());
          }
        }
      },
      files);
}

}  // namespace weft::checkpoint
