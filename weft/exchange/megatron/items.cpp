#include "weft/exchange/megatron/items.h"

#include "weft/base/error.h"
#include "weft/base/legal.h"
#include "weft/exchange/torch/unpickle.h"
#include "weft/tensor/shape.h"

namespace weft::exchange::megatron {
namespace {

using torch::Map;
using torch::Value;

const Value& member(const Map& map, std::string_view name, const std::string& who) {
  const Value* found = map.find(name);
  if (found == nullptr) fail(Kind::data, who, ": ", map.type, " has no ", name);
  return *found;
}

const Map& map_at(const Map& map, std::string_view name, const std::string& who) {
  const Map* found = member(map, name, who).map();
  if (found == nullptr) fail(Kind::data, who, ": ", name, " is ", member(map, name, who).kind());
  return *found;
}

std::string text_at(const Map& map, std::string_view name, const std::string& who) {
  const std::string* found = member(map, name, who).text();
  if (found == nullptr) fail(Kind::data, who, ": ", name, " is ", member(map, name, who).kind());
  return *found;
}

std::int64_t number_at(const Map& map, std::string_view name, const std::string& who) {
  const std::int64_t* found = member(map, name, who).integer();
  if (found == nullptr || *found < 0)
    fail(Kind::data, who, ": ", name, " is ", member(map, name, who).kind(), ", expected a place in a file");
  return *found;
}

Numbers numbers_of(const Value& value, const std::string& who) {
  const auto* list = value.list();
  if (list == nullptr || list->size() > std::size_t(Dims::max_rank))
    fail(Kind::data, who, ": sizes are ", value.kind(), ", expected ", Dims::max_rank, " numbers at most");
  Numbers out;
  for (const Value& one : *list) {
    if (one.integer() == nullptr || *one.integer() < 0 || double(*one.integer()) > legal::size_limit)
      fail(Kind::data, who, ": a size is ", one.kind(), ", expected a number from 0 to ", legal::size_limit);
    out.push_back(*one.integer());
  }
  return out;
}

}  // namespace

Items::Items(std::filesystem::path directory)
    : directory_(std::move(directory)), who_((directory_ / ".metadata").string()) {
  const MappedFile file(directory_ / ".metadata");
  index_ = torch::unpickled(file.bytes(), who_);
  if (index_.map() == nullptr)
    fail(Kind::data, who_, ": holds ", index_.kind(), ", expected torch's Metadata");
  find_places(map_at(*index_.map(), "storage_data", who_));
  for (const auto& [key, what] : map_at(*index_.map(), "state_dict_metadata", who_).entries)
    if (key.text() != nullptr && what.map() != nullptr && what.map()->find("chunks") != nullptr)
      tensors_[*key.text()] = what.map();
}

void Items::find_places(const Map& storage) {
  for (const auto& [index, info] : storage.entries) {
    if (index.map() == nullptr || info.map() == nullptr)
      fail(Kind::data, who_, ": storage_data holds ", index.kind(), " and ", info.kind());
    const Value* offset = index.map()->find("offset");
    Numbers at = offset == nullptr || offset->is_none() ? Numbers() : numbers_of(*offset, who_);
    Place place{.file = text_at(*info.map(), "relative_path", who_),
                .offset = number_at(*info.map(), "offset", who_),
                .length = number_at(*info.map(), "length", who_)};
    const Value* packed = info.map()->find("transform_descriptors");
    if (packed != nullptr && !packed->is_none())
      fail(Kind::data, who_, ": ", place.file,
           " is packed by an extension of torch's, which weft does not read");
    places_[{text_at(*index.map(), "fqn", who_), std::move(at)}] = std::move(place);
  }
}

std::vector<std::string> Items::objects() const {
  std::vector<std::string> out;
  for (const auto& [key, place] : places_)
    if (key.second.empty()) out.push_back(key.first);
  return out;
}

Boxes Items::boxes_of(const std::string& tensor) const {
  const std::string who = text(who_, ": ", tensor);
  const Map& what = *tensors_.at(tensor);
  Boxes out{numbers_of(member(what, "size", who), who), {}};
  const auto* chunks = member(what, "chunks", who).list();
  if (chunks == nullptr) fail(Kind::data, who, ": its chunks are ", member(what, "chunks", who).kind());
  for (const Value& one : *chunks) {
    if (one.map() == nullptr) fail(Kind::data, who, ": a chunk is ", one.kind());
    out.chunks.push_back({numbers_of(member(*one.map(), "offsets", who), who),
                          numbers_of(member(*one.map(), "sizes", who), who)});
    const Box& box = out.chunks.back();
    if (!places_.contains({tensor, box.from}) || box.from.size() != out.whole.size() ||
        box.size.size() != out.whole.size())
      fail(Kind::data, who, ": a chunk has no place in a file");
  }
  return out;
}

const Items::Place& Items::place_of(const std::string& key, const Numbers& at) const {
  const auto found = places_.find({key, at});
  if (found == places_.end()) fail(Kind::data, who_, ": has no ", key);
  return found->second;
}

std::span<const std::byte> Items::bytes_of(const Place& place) {
  if (place.file.empty() || place.file.find('/') != std::string::npos ||
      place.file.find('\0') != std::string::npos || place.file == "..")
    fail(Kind::data, who_, ": a chunk lies in '", place.file, "', expected a file of the same directory");
  auto file = files_.find(place.file);
  if (file == files_.end()) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(directory_ / place.file, error))
      fail(Kind::data, who_, ": chunks lie in ", place.file, ", which is not there");
    file = files_.try_emplace(place.file, directory_ / place.file).first;
  }
  return file->second.bytes(place.offset, place.length);
}

const torch::Archive& Items::open(const std::string& key, const Numbers& at) {
  archives_.push_back(std::make_unique<torch::Archive>(bytes_of(place_of(key, at)), name_of(key, at)));
  return *archives_.back();
}

Items::Opened Items::open_chunk(const std::string& key, const Box& box) {
  const torch::Archive& archive = open(key, box.from);
  const torch::StoredTensor* stored = archive.value().tensor();
  if (stored == nullptr || stored->size != box.size)
    fail(Kind::data, name_of(key, box.from), ": is ", archive.value().kind(),
         ", expected a tensor as large as its chunk");
  if (stored->elements() == 0 || !stored->contiguous())
    fail(Kind::data, name_of(key, box.from), ": is empty, or no block of memory");
  return {archive, *stored};
}

std::string Items::name_of(const std::string& key, const Numbers& at) const {
  return text((directory_ / place_of(key, at).file).string(), ": ", key);
}

}  // namespace weft::exchange::megatron
