#include "weft/exchange/gguf/header.h"

#include <algorithm>
#include <set>

#include "weft/base/number.h"
#include "weft/exchange/gguf/cursor.h"

namespace weft::exchange::gguf {
namespace {

constexpr std::string_view magic = "GGUF";
constexpr std::uint32_t version_read = 3, oldest_read = 2;
constexpr std::int64_t most_dims = 4;
/// Of a tensor's name, a kind, an offset and no dimension; of a key and a value of one byte.
constexpr std::int64_t least_tensor = 24, least_pair = 13;
constexpr std::size_t longest_name = 256;

class HeaderReader {
 public:
  HeaderReader(std::span<const std::byte> file, const std::string& who)
      : cursor_(file, who), who_(who), size_(std::ssize(file)) {}

  Header all() {
    check_front();
    const std::int64_t tensors = cursor_.count("tensors", least_tensor);
    const std::int64_t pairs = cursor_.count("keys", least_pair);
    for (std::int64_t i = 0; i < pairs; ++i) pair();
    find_alignment();
    for (std::int64_t i = 0; i < tensors; ++i) tensor();
    place();
    return std::move(out_);
  }

 private:
  void check_front() {
    const auto found = cursor_.number<std::uint32_t>("its magic");
    if (std::string_view(reinterpret_cast<const char*>(&found), sizeof found) != magic)
      fail(Kind::data, who_, ": does not begin with GGUF");
    const auto version = cursor_.number<std::uint32_t>("its version");
    if (version != 0 && (version & 0xffff) == 0)
      fail(Kind::data, who_,
           ": is of a machine that stores numbers the other way round, which weft does not read");
    if (version < oldest_read || version > version_read)
      fail(Kind::data, who_, ": is of GGUF's version ", version,
           ", and weft reads 2 and 3: make it again with a newer llama.cpp");
  }

  void pair() {
    std::string key = cursor_.text("bytes of a key");
    if (key.empty() || key.size() > longest_name)
      fail(Kind::data, who_, ": a key of ", key.size(), " bytes, expected 1 to ", longest_name);
    Value held = value(key, type_at(key));
    if (!out_.values.add(key, std::move(held))) fail(Kind::data, who_, ": says ", key, " twice");
  }

  ValueType type_at(const std::string& key) {
    const auto type = cursor_.number<std::uint32_t>(key);
    if (type > std::uint32_t(ValueType::f64))
      fail(Kind::data, who_, ": ", key, " is of type ", type, ", which GGUF does not have");
    return ValueType(type);
  }

  std::int64_t whole_number(const std::string& key, ValueType type) {
    switch (type) {
      case ValueType::u8:
        return cursor_.number<std::uint8_t>(key);
      case ValueType::i8:
        return cursor_.number<std::int8_t>(key);
      case ValueType::u16:
        return cursor_.number<std::uint16_t>(key);
      case ValueType::i16:
        return cursor_.number<std::int16_t>(key);
      case ValueType::u32:
        return cursor_.number<std::uint32_t>(key);
      case ValueType::i32:
        return cursor_.number<std::int32_t>(key);
      default:
        return long_number(key, type);
    }
  }

  std::int64_t long_number(const std::string& key, ValueType type) {
    if (type == ValueType::i64) return cursor_.number<std::int64_t>(key);
    const auto found = cursor_.number<std::uint64_t>(key);
    if (found > std::uint64_t(INT64_MAX))
      fail(Kind::data, who_, ": ", key, " is ", found, ", which is too large");
    return std::int64_t(found);
  }

  double real_number(const std::string& key, ValueType type) {
    return type == ValueType::f32 ? as_written(cursor_.number<float>(key)) : cursor_.number<double>(key);
  }

  bool yes_or_no(const std::string& key) {
    const auto found = cursor_.number<std::uint8_t>(key);
    if (found > 1) fail(Kind::data, who_, ": ", key, " is a bool of ", int(found), ", expected 0 or 1");
    return found == 1;
  }

  Value value(const std::string& key, ValueType type) {
    Value out{.type = type};
    if (type == ValueType::text)
      out.held = cursor_.text("bytes of " + key);
    else if (type == ValueType::list)
      fill_list(key, out);
    else if (type == ValueType::yes_or_no)
      out.held = yes_or_no(key);
    else if (type == ValueType::f32 || type == ValueType::f64)
      out.held = real_number(key, type);
    else
      out.held = whole_number(key, type);
    return out;
  }

  void fill_list(const std::string& key, Value& out) {
    out.element = type_at(key);
    if (out.element == ValueType::list)
      fail(Kind::data, who_, ": ", key, " is a list of lists, which weft does not read");
    const std::int64_t count = cursor_.count("elements of " + key, least_of(out.element));
    if (out.element == ValueType::text) {
      std::vector<std::string> words;
      words.reserve(std::size_t(count));
      for (std::int64_t i = 0; i < count; ++i) words.push_back(cursor_.text("bytes in " + key));
      out.held = std::move(words);
    } else if (out.element == ValueType::f32 || out.element == ValueType::f64) {
      std::vector<double> reals;
      reals.reserve(std::size_t(count));
      for (std::int64_t i = 0; i < count; ++i) reals.push_back(real_number(key, out.element));
      out.held = std::move(reals);
    } else {
      std::vector<std::int64_t> wholes;
      wholes.reserve(std::size_t(count));
      for (std::int64_t i = 0; i < count; ++i)
        wholes.push_back(out.element == ValueType::yes_or_no ? yes_or_no(key)
                                                             : whole_number(key, out.element));
      out.held = std::move(wholes);
    }
  }

  static std::int64_t least_of(ValueType type) {
    switch (type) {
      case ValueType::u8:
      case ValueType::i8:
      case ValueType::yes_or_no:
        return 1;
      case ValueType::u16:
      case ValueType::i16:
        return 2;
      case ValueType::u32:
      case ValueType::i32:
      case ValueType::f32:
        return 4;
      default:
        return 8;
    }
  }

  void find_alignment() {
    const Value* value = out_.values.find(alignment_key);
    if (value == nullptr) return;
    const std::int64_t* found = value->as<std::int64_t>();
    if (value->type != ValueType::u32 || *found < 1 || (*found & (*found - 1)) != 0)
      fail(Kind::data, who_, ": ", alignment_key, " is ",
           found != nullptr ? text(*found) : text(what_is(value->type)), ", expected a power of two as u32");
    alignment_ = *found;
  }

  void tensor() {
    StoredTensor one{.name = cursor_.text("bytes of a tensor's name")};
    if (one.name.empty() || one.name.size() > longest_name)
      fail(Kind::data, who_, ": a tensor's name of ", one.name.size(), " bytes, expected 1 to ",
           longest_name);
    if (!names_.insert(one.name).second) fail(Kind::data, who_, ": holds two tensors ", one.name);
    const auto dims = cursor_.number<std::uint32_t>(one.name);
    if (dims > most_dims)
      fail(Kind::data, who_, ": ", one.name, " has ", dims, " dimensions, expected at most 4");
    for (std::uint32_t i = 0; i < dims; ++i) one.sizes.push_back(size_of_dim(one.name));
    const auto type = cursor_.number<std::uint32_t>(one.name);
    const auto known = number_type(type);
    if (!known)
      fail(Kind::data, who_, ": ", one.name, " is of ", name_of(type), ", and weft reads ", names_of_all(),
           ": take the file of one of these, or the model that it was made of");
    one.type = *known;
    if (one.width() % unit_of(one.type) != 0)
      fail(Kind::data, who_, ": ", one.name, " has rows of ", one.width(), " numbers, and ",
           name_of(one.type), " has blocks of ", unit_of(one.type));
    measure(one);
    const auto offset = cursor_.number<std::uint64_t>(one.name);
    if (offset % std::uint64_t(alignment_) != 0)
      fail(Kind::data, who_, ": ", one.name, " lies at ", offset, ", which is no multiple of ", alignment_);
    one.at = offset > std::uint64_t(size_) ? size_ + 1 : std::int64_t(offset);
    out_.tensors.push_back(std::move(one));
  }

  std::int64_t size_of_dim(const std::string& name) {
    const auto found = cursor_.number<std::uint64_t>(name);
    if (found < 1 || found > std::uint64_t(INT64_MAX))
      fail(Kind::data, who_, ": ", name, " has a size of ", found, ", expected 1 or more");
    return std::int64_t(found);
  }

  // What has more numbers than bytes can hold is no tensor of the file.
  void measure(StoredTensor& one) const {
    std::int64_t elements = 1;
    for (const std::int64_t size : one.sizes) {
      if (size > size_ * most_in_a_byte / elements)
        fail(Kind::data, who_, ": ", one.name, " is larger than the file");
      elements *= size;
    }
    one.bytes = bytes_of(one.type, elements);
  }

  void place() {
    const std::int64_t start = round_up(cursor_.at(), alignment_);
    std::vector<const StoredTensor*> sorted;
    for (StoredTensor& one : out_.tensors) {
      if (one.at > size_ - start || one.bytes > size_ - start - one.at)
        fail(Kind::data, who_, ": ", one.name, " reaches beyond the file's ", size_,
             " bytes: it is cut off, or none of its kind");
      one.at += start;
      sorted.push_back(&one);
    }
    std::ranges::sort(sorted, {}, &StoredTensor::at);
    for (std::size_t i = 1; i < sorted.size(); ++i)
      if (sorted[i - 1]->at + sorted[i - 1]->bytes > sorted[i]->at)
        fail(Kind::data, who_, ": ", sorted[i - 1]->name, " and ", sorted[i]->name, " overlap");
  }

  Cursor cursor_;
  const std::string& who_;
  std::int64_t size_, alignment_ = usual_alignment;
  std::set<std::string> names_;
  Header out_;
};

}  // namespace

std::int64_t StoredTensor::elements() const {
  std::int64_t out = 1;
  for (const std::int64_t size : sizes) out *= size;
  return out;
}

bool begins_as_gguf(std::span<const std::byte> file) {
  return file.size() >= magic.size() &&
         std::string_view(reinterpret_cast<const char*>(file.data()), magic.size()) == magic;
}

Header read_header(std::span<const std::byte> file, const std::string& who) {
  return HeaderReader(file, who).all();
}

}  // namespace weft::exchange::gguf
