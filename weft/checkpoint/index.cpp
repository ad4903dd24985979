// The index as JSON, with every number checked on the way in.
#include "weft/checkpoint/index.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/checkpoint/safetensors.h"
#include "weft/checkpoint/strict_json.h"

namespace weft::checkpoint {
namespace {

using nlohmann::json;

constexpr const char* format_word = "weft checkpoint";

json list_of(const Dims& dims) { return std::vector<std::int64_t>(dims.all().begin(), dims.all().end()); }

Hash hash_at(const json& object, const char* name, const std::string& who) {
  const std::string digits = word(object, name, who);
  if (digits.size() != 32 || digits.find_first_not_of("0123456789abcdef") != std::string::npos) {
    fail(Kind::data, who, ": \"", name, "\" is ", json(digits).dump().substr(0, 80),
         ", expected 32 hexadecimal digits");
  }
  return {.high = std::stoull(digits.substr(0, 16), nullptr, 16),
          .low = std::stoull(digits.substr(16), nullptr, 16)};
}

// A name from a file must not lead out of the checkpoint's directory.
bool is_plain(std::string_view name) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !name.empty() && name.size() <= 255 && name.front() != '.' &&
         name.find("..") == std::string_view::npos &&
         name.find_first_not_of(letters) == std::string_view::npos;
}

[[noreturn]] void refuse_name(const std::string& name, const std::string& who) {
  fail(Kind::data, who, ": ", json(name).dump().substr(0, 80),
       " is no name of a file of a checkpoint: expected letters, digits, '.', '_' and '-'");
}

std::string file_name_at(const json& object, const std::string& who) {
  std::string name = word(object, "file", who);
  if (!is_plain(name)) refuse_name(name, who);
  return name;
}

AttachedFact attached_from(const json& from, const std::string& who) {
  std::string name = word(from, "file", who);
  const auto folder = std::min(name.find('/'), name.size() - 1);
  if (!is_plain(std::string_view(name).substr(0, folder)) ||
      !is_plain(std::string_view(name).substr(folder + 1)))
    refuse_name(name, who);
  return {.name = std::move(name),
          .bytes = whole_number(from, "bytes", who),
          .hash = hash_at(from, "xxh3_128", who)};
}

Dtype dtype_at(const json& object, const std::string& who) {
  const std::string wanted = word(object, "dtype", who);
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::f8e4m3, Dtype::f8e5m2, Dtype::f64,
                            Dtype::i64, Dtype::i32, Dtype::u8})
    if (wanted == name(dtype)) return dtype;
  fail(Kind::data, who, ": its type ", json(wanted).dump().substr(0, 80), " is none that weft holds");
}

json block_json(const Block& block) {
  return {{"file", block.file},
          {"offset", list_of(block.box.offset)},
          {"shape", list_of(block.box.shape)},
          {"xxh3_128", block.hash.hex()}};
}

const json& list_at(const json& object, const char* name, const std::string& who) {
  const json& list = member(object, name, who);
  if (!list.is_array()) fail(Kind::data, who, ": \"", name, "\" is ", list.type_name(), ", expected a list");
  return list;
}

FileFact file_from(const json& from, const std::string& who) {
  const std::string name = file_name_at(from, who);
  return {.name = name,
          .bytes = whole_number(from, "bytes", who),
          .header_bytes = whole_number(from, "header_bytes", who),
          .header = hash_at(from, "header_xxh3_128", who)};
}

Stored stored_from(const json& from, std::size_t num_files, const std::string& who) {
  Stored out{.dtype = dtype_at(from, who), .global = shape(from, "shape", who)};
  for (const json& one : list_at(from, "blocks", who)) {
    Block block{.file = std::size_t(whole_number(one, "file", who)),
                .box = {shape(one, "offset", who), shape(one, "shape", who)},
                .hash = hash_at(one, "xxh3_128", who)};
    if (block.file >= num_files)
      fail(Kind::data, who, ": a block lies in file ", block.file, " of ", num_files);
    if (!fits(block.box, out.global)) {
      fail(Kind::data, who, ": a block ", block.box.shape, " at ", block.box.offset, " is not within ",
           out.global);
    }
    out.blocks.push_back(block);
  }
  return out;
}

// Sorted by the first dimension, a block needs comparing only with those that start before it ends.
void must_not_overlap(const std::string& name, const Stored& stored, const std::string& who) {
  std::vector<const Block*> blocks;
  for (const Block& block : stored.blocks) blocks.push_back(&block);
  if (stored.global.rank() == 0) {
    if (blocks.size() > 1) fail(Kind::data, who, ": ", name, " is held ", blocks.size(), " times");
    return;
  }
  std::sort(blocks.begin(), blocks.end(),
            [](const Block* a, const Block* b) { return a->box.offset[0] < b->box.offset[0]; });
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Box& box = blocks[i]->box;
    for (std::size_t k = i + 1; k < blocks.size(); ++k) {
      const Box& other = blocks[k]->box;
      if (other.offset[0] >= box.offset[0] + box.shape[0]) break;
      if (overlap(box, other)) {
        fail(Kind::data, who, ": ", name, ": the blocks ", box.shape, " at ", box.offset, " and ",
             other.shape, " at ", other.offset, " overlap");
      }
    }
  }
}

}  // namespace

std::string block_name(const std::string& name, const Shape& global, const Box& box) {
  if (box.shape == global) return name;
  return text(name, '@', join(box.offset.all(), ","), '+', join(box.shape.all(), ","));
}

std::string to_json(const Index& index) {
  json out{{"format", format_word},
           {"version", format_version},
           {"facts", {{"file", index.facts_file}, {"xxh3_128", index.facts.hex()}}},
           {"files", json::array()},
           {"tensors", json::object()}};
  for (const FileFact& file : index.files) {
    out["files"].push_back({{"file", file.name},
                            {"bytes", file.bytes},
                            {"header_bytes", file.header_bytes},
                            {"header_xxh3_128", file.header.hex()}});
  }
  for (const AttachedFact& file : index.attached)
    out["attached"].push_back({{"file", file.name}, {"bytes", file.bytes}, {"xxh3_128", file.hash.hex()}});
  for (const auto& [tensor, stored] : index.tensors) {
    json blocks = json::array();
    for (const Block& block : stored.blocks) blocks.push_back(block_json(block));
    out["tensors"][tensor] = {
        {"dtype", name(stored.dtype)}, {"shape", list_of(stored.global)}, {"blocks", std::move(blocks)}};
  }
  return json_text(out, "checkpoint") + "\n";
}

Index index_from_json(std::string_view from, const std::string& who) {
  const json all = strict_json(from, who, 6);
  if (word(all, "format", who) != format_word)
    fail(Kind::data, who, ": its format is not \"", format_word, "\"");
  if (const std::int64_t version = whole_number(all, "version", who); version != format_version) {
    fail(Kind::data, who, ": version ", version, ", this weft reads version ", format_version,
         "; a newer weft may have written it");
  }
  Index out;
  const json& facts = member(all, "facts", who);
  out.facts_file = file_name_at(facts, who);
  out.facts = hash_at(facts, "xxh3_128", who);
  for (const json& file : list_at(all, "files", who)) out.files.push_back(file_from(file, who));
  if (all.contains("attached"))
    for (const json& file : list_at(all, "attached", who)) out.attached.push_back(attached_from(file, who));
  const json& tensors = member(all, "tensors", who);
  if (!tensors.is_object())
    fail(Kind::data, who, ": \"tensors\" is ", tensors.type_name(), ", expected an object");
  for (const auto& [name, stored] : tensors.items()) {
    if (!good_name(name))
      fail(Kind::data, who, ": a tensor's name ", json(name).dump().substr(0, 80),
           " is empty, unprintable or too long");
    out.tensors[name] = stored_from(stored, out.files.size(), text(who, ": ", name));
  }
  return out;
}

void merge(Index& whole, const Index& part) {
  const std::size_t before = whole.files.size();
  whole.files.insert(whole.files.end(), part.files.begin(), part.files.end());
  for (const auto& [tensor, stored] : part.tensors) {
    const auto [place, fresh] = whole.tensors.try_emplace(tensor, Stored{stored.dtype, stored.global, {}});
    Stored& into = place->second;
    if (into.dtype != stored.dtype || into.global != stored.global) {
      fail(Kind::internal, "checkpoint: ", tensor, " is ", name(into.dtype), ' ', into.global,
           " on one rank and ", name(stored.dtype), ' ', stored.global, " on another");
    }
    for (Block block : stored.blocks) {
      block.file += before;
      into.blocks.push_back(block);
    }
  }
}

void must_be_whole(const Index& index, const std::string& who) {
  for (const auto& [name, stored] : index.tensors) {
    must_not_overlap(name, stored, who);
    std::int64_t held = 0;
    for (const Block& block : stored.blocks) held += block.box.shape.elements();
    if (held != stored.global.elements()) {
      fail(Kind::data, who, ": ", name, " ", stored.global, ": ", held, " of its ", stored.global.elements(),
           " elements are held");
    }
  }
}

}  // namespace weft::checkpoint
