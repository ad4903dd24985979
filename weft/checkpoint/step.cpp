// Trust goes from the mark to the index, from the index to facts, headers and blocks: each hash covers the
// next.
#include "weft/checkpoint/step.h"

#include <system_error>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/file.h"

namespace weft::checkpoint {
namespace {

constexpr std::string_view mark_start = "weft checkpoint 1\n";

// "weft checkpoint 1\nindex.json 0123…\n": only the name is taken from it, the rest must be as expected.
std::string index_named_by(const std::string& mark, const std::filesystem::path& path) {
  const std::size_t end =
      mark.starts_with(mark_start) ? mark.find(' ', mark_start.size()) : std::string::npos;
  if (end != std::string::npos) {
    std::string name = mark.substr(mark_start.size(), end - mark_start.size());
    if (name == "index.json" || name == "index.1.json") return name;
  }
  fail(Kind::data, path.string(), ": the mark of a complete checkpoint is damaged");
}

std::string read_mark(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    fail(Kind::data, path.parent_path().string(), ": no complete checkpoint, its mark ", complete_name,
         " is missing");
  }
  return read_file(path);
}

}  // namespace

std::string complete_text(const std::string& index_name, const Hash& index) {
  return text(mark_start, index_name, ' ', index.hex(), '\n');
}

OpenStep::OpenStep(std::filesystem::path directory) : directory_(std::move(directory)) {
  const auto mark_path = directory_ / complete_name;
  const std::string mark = read_mark(mark_path);
  index_name_ = index_named_by(mark, mark_path);
  const auto index_path = directory_ / index_name_;
  const std::string json = read_file(index_path);
  index_hash_ = hash(json);
  if (mark != complete_text(index_name_, index_hash_))
    fail(Kind::data, index_path.string(), ": damaged, its hash is not the one in ", complete_name);
  index_ = index_from_json(json, index_path.string());
  must_be_whole(index_, index_path.string());
  const auto facts_path = directory_ / index_.facts_file;
  facts_ = read_file(facts_path);
  if (hash(facts_) != index_.facts)
    fail(Kind::data, facts_path.string(), ": damaged, its hash is not the one in ", index_name_);
  for (const FileFact& file : index_.files) must_measure(file.name, file.bytes);
  for (const AttachedFact& file : index_.attached) must_measure(file.name, file.bytes);
}

void OpenStep::must_measure(const std::string& name, std::int64_t bytes) const {
  const auto path = directory_ / name;
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) fail_errno("measure", path, error.value());
  if (static_cast<std::int64_t>(size) != bytes)
    fail(Kind::data, path.string(), ": holds ", size, " bytes, ", bytes, " were written");
}

void OpenStep::check(const AttachedFact& file) const {
  if (hash(MappedFile(directory_ / file.name).bytes()) != file.hash)
    fail(Kind::data, (directory_ / file.name).string(), ": damaged, its hash is not the one in ",
         index_name_);
}

void OpenStep::check_attached() const {
  for (const AttachedFact& file : index_.attached) check(file);
}

// A folder has the number of its generation behind its name, if it has one.
std::filesystem::path OpenStep::attached(std::string_view folder, std::string_view name) const {
  for (const AttachedFact& file : index_.attached) {
    const std::filesystem::path path(file.name);
    if (path.parent_path().stem() != folder || path.filename() != name) continue;
    check(file);
    return directory_ / path;
  }
  return {};
}

std::int64_t OpenStep::bytes() const {
  std::int64_t sum = 0;
  for (const FileFact& file : index_.files) sum += file.bytes;
  return sum;
}

const TensorFile& OpenStep::file(std::size_t number) {
  if (const auto found = files_.find(number); found != files_.end()) return found->second;
  const FileFact& fact = index_.files[number];
  const auto path = directory_ / fact.name;
  // The header's hash comes first, so that damage is called damage and not a strange header.
  {
    const MappedFile map(path);
    if (map.size() != fact.bytes)
      fail(Kind::data, path.string(), ": holds ", map.size(), " bytes, ", fact.bytes, " were written");
    if (hash(map.bytes(0, fact.header_bytes)) != fact.header)
      fail(Kind::data, path.string(), ": its header is damaged, its hash is not the one in ", index_name_);
  }
  return files_.emplace(number, TensorFile(path)).first->second;
}

std::span<const std::byte> OpenStep::read(const std::string& tensor, const Stored& stored,
                                          const Block& block) {
  const TensorFile& from = file(block.file);
  const std::string name = block_name(tensor, stored.global, block.box);
  const Entry& entry = from.at(name);
  if (entry.dtype != stored.dtype || entry.shape != block.box.shape) {
    fail(Kind::data, from.path().string(), ": ", name, " is ", weft::name(entry.dtype), ' ', entry.shape,
         ", ", index_name_, " says ", weft::name(stored.dtype), ' ', block.box.shape);
  }
  const auto bytes = from.bytes(entry);
  if (hash(bytes) != block.hash) {
    fail(Kind::data, from.path().string(), ": ", name, " is damaged, its hash is not the one in ",
         index_name_);
  }
  return bytes;
}

Verified verify(const std::filesystem::path& directory) {
  OpenStep step(directory);
  step.check_attached();
  Verified out;
  std::map<std::size_t, std::int64_t> held;
  for (const auto& [name, stored] : step.index().tensors) {
    ++out.tensors;
    for (const Block& block : stored.blocks) {
      const auto bytes = static_cast<std::int64_t>(step.read(name, stored, block).size());
      ++out.blocks;
      out.bytes += bytes;
      held[block.file] += bytes;
    }
  }
  for (std::size_t i = 0; i < step.index().files.size(); ++i) {
    const FileFact& file = step.index().files[i];
    if (held[i] + file.header_bytes != file.bytes) {
      fail(Kind::data, (directory / file.name).string(), ": holds ", file.bytes - file.header_bytes,
           " bytes of tensors, and ", step.index_name(), " accounts for ", held[i]);
    }
  }
  return out;
}

}  // namespace weft::checkpoint
