#include "weft/exchange/deepspeed/opened.h"

#include <cstring>
#include <span>

#include "weft/base/error.h"
#include "weft/exchange/their_weights.h"

namespace weft::exchange::deepspeed {
namespace {

// Beyond it a whole number may be another one as a double.
constexpr double most_counted = 9007199254740992;

Shape shape_from(std::span<const std::int64_t> sizes, const std::string& who) {
  if (sizes.empty() || std::ssize(sizes) > Dims::max_rank)
    fail(Kind::data, who, " has ", sizes.size(), " dimensions, expected 1 to ", Dims::max_rank);
  std::int64_t elements = 1;
  for (const std::int64_t n : sizes)
    if (n < 1 || __builtin_mul_overflow(elements, n, &elements))
      fail(Kind::data, who, " is ", Dims(sizes), ", expected sizes from 1 on whose product fits 63 bits");
  return Shape(Dims(sizes));
}

}  // namespace

Opened::Opened(const std::filesystem::path& path)
    : file(path), who(path.string()), archive(file.bytes(), who) {}

const torch::Map& Opened::top() const {
  if (archive.value().map() == nullptr)
    fail(Kind::data, who, ": holds ", archive.value().kind(), ", expected a dict");
  return *archive.value().map();
}

const torch::Map& Opened::dict(const torch::Map& in, std::string_view key) const {
  const torch::Map* found = dict_or_none(in, key);
  if (found == nullptr) fail(Kind::data, who, ": has no ", key);
  return *found;
}

const torch::Map* Opened::dict_or_none(const torch::Map& in, std::string_view key) const {
  const torch::Value* found = in.find(key);
  if (found == nullptr || found->is_none()) return nullptr;
  if (found->map() == nullptr)
    fail(Kind::data, who, ": its ", key, " is ", found->kind(), ", expected a dict");
  return found->map();
}

const std::vector<torch::Value>* Opened::list_or_none(const torch::Map& in, std::string_view key) const {
  const torch::Value* found = in.find(key);
  if (found == nullptr || found->is_none()) return nullptr;
  if (found->list() == nullptr)
    fail(Kind::data, who, ": its ", key, " is ", found->kind(), ", expected a list");
  return found->list();
}

std::optional<double> Opened::number(const torch::Map& in, std::string_view key) const {
  const torch::Value* found = in.find(key);
  return found == nullptr ? std::nullopt : number(*found);
}

std::optional<double> Opened::number(const torch::Value& value) const {
  if (value.integer() != nullptr) return double(*value.integer());
  if (value.real() != nullptr) return *value.real();
  const torch::StoredTensor* tensor = value.tensor();
  if (tensor == nullptr || tensor->elements() != 1 || !tensor->held) return std::nullopt;
  if (tensor->dtype == Dtype::i64) {
    std::int64_t whole = 0;
    std::memcpy(&whole, archive.bytes(*tensor).data(), sizeof whole);
    return double(whole);
  }
  if (!is_float(tensor->dtype)) return std::nullopt;
  float one = 0;
  widen(archive.bytes(*tensor), tensor->dtype, {0, 1, 1}, &one);
  return one;
}

std::int64_t Opened::count(const torch::Map& in, std::string_view key) const {
  const torch::Value* found = in.find(key);
  return found == nullptr ? 0 : count(*found);
}

std::int64_t Opened::count(const torch::Value& value) const {
  const double found = number(value).value_or(0);
  return found >= 0 && found < most_counted ? std::int64_t(found) : 0;  // no NaN passes
}

Shape shape_of(const torch::Value& sizes, const std::string& who) {
  std::vector<std::int64_t> numbers;
  if (sizes.list() == nullptr) fail(Kind::data, who, " has ", sizes.kind(), " for a shape, expected a size");
  for (const torch::Value& one : *sizes.list()) {
    if (one.integer() == nullptr)
      fail(Kind::data, who, " has ", one.kind(), " in its shape, expected whole numbers");
    numbers.push_back(*one.integer());
  }
  return shape_from(numbers, who);
}

Shape shape_of(const torch::StoredTensor& stored, const std::string& who) {
  return shape_from(stored.size, who);
}

}  // namespace weft::exchange::deepspeed
