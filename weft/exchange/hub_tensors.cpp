// One file or many: the index and the files' own headers must say the same.
#include "weft/exchange/hub_tensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/checkpoint/strict_json.h"
#include "weft/exchange/their_weights.h"

namespace weft::exchange {
namespace {

using nlohmann::json;

constexpr const char* single_name = "model.safetensors";
constexpr const char* index_name = "model.safetensors.index.json";

bool plain_file_name(const std::string& name) {
  return checkpoint::good_name(name) && name.size() <= 255 && name.find('/') == std::string::npos &&
         name.find('\\') == std::string::npos && name.ends_with(".safetensors");
}

[[noreturn]] void nothing_to_read(const std::filesystem::path& directory) {
  std::error_code error;
  for (const char* other : {"pytorch_model.bin", "pytorch_model.bin.index.json"})
    if (std::filesystem::exists(directory / other, error))
      fail(Kind::data, directory.string(), ": holds ", other,
           ", which runs Python code when it is read; save the model as safetensors");
  fail(Kind::data, directory.string(), ": holds neither ", single_name, " nor ", index_name);
}

}  // namespace

std::map<std::string, std::string> hub_index_from_json(std::string_view from, const std::string& who) {
  const json object = checkpoint::strict_json(from, who, 4);
  const json& map = checkpoint::member(object, "weight_map", who);
  if (!map.is_object())
    fail(Kind::data, who, ": \"weight_map\" is ", map.type_name(), ", expected an object");
  std::map<std::string, std::string> out;
  for (const auto& [name, file] : map.items()) {
    if (!checkpoint::good_name(name))
      fail(Kind::data, who, ": a tensor's name of ", name.size(), " bytes is empty, unprintable or too long");
    if (!file.is_string() || !plain_file_name(file.get<std::string>()))
      fail(Kind::data, who, ": ", name, " lies in ", file.dump().substr(0, 80),
           ", expected a safetensors file of the same directory");
    out[name] = file.get<std::string>();
  }
  if (out.empty()) fail(Kind::data, who, ": \"weight_map\" names no tensor");
  return out;
}

HubTensors::HubTensors(const std::filesystem::path& directory, TextName text) : directory_(directory) {
  place();
  if (text != nullptr) rename(text);
}

void HubTensors::rename(TextName text) {
  const std::map<std::string, Placed> stored = std::exchange(placed_, {});
  for (const auto& [name, place] : stored) {
    const std::string alone = text(name);
    if (alone.empty())
      others_.push_back(name);
    else if (const auto [at, fresh] = placed_.try_emplace(alone, place); !fresh)
      fail(Kind::data, directory_.string(), ": ", at->second.entry->name, " and ", name, " are both ", alone);
  }
}

void HubTensors::place() {
  const std::filesystem::path& directory = directory_;
  std::error_code error;
  const std::filesystem::path index = directory / index_name;
  if (!std::filesystem::exists(index, error)) {
    if (!std::filesystem::exists(directory / single_name, error)) nothing_to_read(directory);
    add(directory / single_name);
    return;
  }
  const auto map = hub_index_from_json(read_file(index), index.string());
  std::set<std::string> names;
  for (const auto& [tensor, file] : map) names.insert(file);
  files_.reserve(names.size());
  for (const std::string& name : names) add(directory / name);
  for (const auto& [tensor, file] : map) {
    const auto found = placed_.find(tensor);
    if (found == placed_.end() || files_[found->second.file].path().filename() != file)
      fail(Kind::data, index.string(), ": ", tensor, " should be in ", file, ", and is not");
  }
  for (const auto& [tensor, place] : placed_)
    if (!map.contains(tensor))
      fail(Kind::data, files_[place.file].path().string(), ": holds ", tensor, ", which ", index_name,
           " does not name");
}

void HubTensors::add(const std::filesystem::path& file) {
  files_.emplace_back(file);
  for (const checkpoint::Entry& entry : files_.back().header().entries) {
    const auto [at, fresh] = placed_.try_emplace(entry.name, Placed{files_.size() - 1, &entry});
    if (!fresh)
      fail(Kind::data, file.string(), ": holds ", entry.name, ", and so does ",
           files_[at->second.file].path().filename().string());
  }
}

std::vector<std::string> HubTensors::names() const {
  std::vector<std::string> out;
  for (const auto& [name, place] : placed_) out.push_back(name);
  return out;
}

const checkpoint::Entry* HubTensors::find(const std::string& name) const {
  const auto found = placed_.find(name);
  return found == placed_.end() ? nullptr : found->second.entry;
}

void HubTensors::read(const std::string& name, const Walk& walk, float* to) const {
  widen(bytes(name), find(name)->dtype, walk, to);
}

bool HubTensors::same(const std::string& a, const std::string& b) const {
  return std::ranges::equal(bytes(a), bytes(b));
}

std::span<const std::byte> HubTensors::bytes(const std::string& name) const {
  const Placed& place = placed_.at(name);
  return files_[place.file].bytes(*place.entry);
}

}  // namespace weft::exchange
