// Every file has a name of its generation, 0 or 1, so that a checkpoint can be replaced in its own directory:
// the mark goes over from the old index to the new one in one rename.
#include "weft/checkpoint/save.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/number.h"
#include "weft/checkpoint/agree.h"
#include "weft/checkpoint/finite.h"
#include "weft/checkpoint/index.h"
#include "weft/checkpoint/safetensors.h"
#include "weft/checkpoint/step.h"
#include "weft/checkpoint/strict_json.h"

namespace weft::checkpoint {
namespace {

// "index", "json", 1 -> "index.1.json"; generation 0 leaves no trace.
std::string generation_name(const std::string& stem, const char* ending, int generation) {
  return generation == 0 ? text(stem, '.', ending) : text(stem, '.', generation, '.', ending);
}

// The one that a complete checkpoint in the directory does not use.
int free_generation(const std::filesystem::path& directory) {
  std::error_code error;
  if (!std::filesystem::exists(directory / complete_name, error)) return 0;
  const std::string mark = read_file(directory / complete_name);
  return mark.find("index.1.json") == std::string::npos ? 1 : 0;
}

// A stretch of a rank's memory that is one block.
struct Source {
  const Named* named = nullptr;
  Box box;
  std::int64_t at = 0;
};

// Cuts a piece along its first dimension; rows stay whole.
void cut(const Named& named, const Piece& piece, std::vector<Source>& out) {
  const Box box = box_of(piece);
  const std::int64_t elements = box.shape.elements();
  if (piece.where.replica != 0 || elements == 0) return;
  if (box.shape.rank() == 0) {
    out.push_back({&named, box, piece.at});
    return;
  }
  const std::int64_t row = elements / box.shape[0];
  const std::int64_t rows_at_once =
      std::max<std::int64_t>(1, block_bytes / (row * size_of(named.tensor.dtype())));
  for (std::int64_t first = 0; first < box.shape[0]; first += rows_at_once) {
    Dims offset = box.offset;
    Dims shape = box.shape;
    offset[0] += first;
    shape[0] = std::min(rows_at_once, box.shape[0] - first);
    out.push_back({&named, {Shape(offset), Shape(shape)}, piece.at + first * row});
  }
}

void must_be_finite(const Source& source, std::span<const std::byte> part) {
  if (first_not_finite(part, source.named->tensor.dtype()) < 0) return;
  fail(Kind::usage, source.named->name, " holds numbers that are not finite, and such a model is not saved");
}

// Copies the block out of the device a buffer at a time.
Hash write_block(const Source& source, File& file, Numbers numbers) {
  const Tensor& tensor = source.named->tensor;
  const std::int64_t width = size_of(tensor.dtype());
  const std::int64_t bytes = source.box.shape.elements() * width;
  const std::int64_t first = (tensor.offset() + source.at) * width;
  std::vector<std::byte> buffer(std::size_t(std::min(bytes, std::int64_t{4} << 20)));
  Hasher hasher;
  for (std::int64_t done = 0; done < bytes;) {
    const std::int64_t now = std::min(bytes - done, static_cast<std::int64_t>(buffer.size()));
    tensor.device().copy_to_host(buffer.data(), *tensor.storage(), first + done, now).wait();
    const std::span<const std::byte> part(buffer.data(), std::size_t(now));
    if (numbers == Numbers::finite) must_be_finite(source, part);
    hasher.add(part);
    file.write(part);
    done += now;
  }
  return hasher.hash();
}

// Writes this rank's file, if it has boxes to write, and returns its part of the index.
Index write_mine(const std::filesystem::path& path, std::span<const Named> mine, Numbers numbers,
                 const FileSystem& files) {
  Index part;
  std::vector<Source> sources;
  for (const Named& named : mine) {
    check(named);
    if (named.pieces.empty()) continue;
    merge(part, {.tensors = {{named.name, {named.tensor.dtype(), named.pieces.front().where.global, {}}}}});
    for (const Piece& piece : named.pieces) cut(named, piece, sources);
  }
  if (sources.empty()) return part;
  std::vector<Entry> entries;
  std::map<std::string, const Source*> by_name;
  for (const Source& source : sources) {
    const Shape& global = source.named->pieces.front().where.global;
    entries.push_back({block_name(source.named->name, global, source.box), source.named->tensor.dtype(),
                       source.box.shape, 0});
    by_name[entries.back().name] = &source;
  }
  const std::string first_bytes = lay_out(entries);
  write_tensors(
      path, first_bytes, entries,
      [&](const Entry& entry, File& file) {
        const Source& source = *by_name.at(entry.name);
        part.tensors.at(source.named->name)
            .blocks.push_back({0, source.box, write_block(source, file, numbers)});
      },
      files);
  const auto header_bytes = static_cast<std::int64_t>(first_bytes.size());
  const std::int64_t bytes = header_bytes + entries.back().begin + entries.back().bytes();
  part.files.push_back({path.filename().string(), bytes, header_bytes, hash(first_bytes)});
  return part;
}

// "tokenizer", 1 -> "tokenizer.1".
std::string generation_folder(const std::string& folder, int generation) {
  return generation == 0 ? folder : text(folder, '.', generation);
}

void attach(const std::filesystem::path& directory, const Attached& file, int generation,
            const FileSystem& files) {
  const auto folder = directory / generation_folder(file.folder, generation);
  make_directories(folder, files);
  write_atomically(folder / file.name, std::string_view(file.content), files);
}

// Everything in a folder that is not one of `needed`, and then the folder, if it is empty.
void tidy_folder(const std::filesystem::path& folder, const std::vector<std::string>& needed,
                 const FileSystem& files) {
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = folder.filename() / entry->path().filename();
    if (std::find(needed.begin(), needed.end(), name) == needed.end()) files.remove(entry->path().c_str());
  }
  std::filesystem::remove(folder, error);
}

// What earlier saves left in the directory and the new index does not name. A failure here costs only room.
void tidy(const std::filesystem::path& directory, const Index& index, const std::string& index_name,
          const FileSystem& files) {
  std::vector<std::string> needed{complete_name, index_name, index.facts_file};
  for (const FileFact& file : index.files) needed.push_back(file.name);
  for (const AttachedFact& file : index.attached) needed.push_back(file.name);
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code unknown;
    if (name.starts_with("tokenizer") && entry->is_directory(unknown)) {
      tidy_folder(entry->path(), needed, files);
      continue;
    }
    const bool ours = name.starts_with("rank_") || name.starts_with("index.") || name.starts_with("facts.") ||
                      name == "replay.json" || is_partial(entry->path());
    if (ours && std::find(needed.begin(), needed.end(), name) == needed.end())
      files.remove(entry->path().c_str());
  }
}

void finish(const std::filesystem::path& directory, std::span<const std::string> parts, int generation,
            const Beside& beside, const FileSystem& files) {
  Index index;
  for (std::size_t r = 0; r < parts.size(); ++r)
    merge(index, index_from_json(parts[r], text("rank ", r, "'s part of the index")));
  must_be_whole(index, "checkpoint");
  for (const Attached& file : beside.files) {
    attach(directory, file, generation, files);
    index.attached.push_back({text(generation_folder(file.folder, generation), '/', file.name),
                              std::ssize(file.content), hash(file.content)});
  }
  index.facts_file = generation_name("facts", "json", generation);
  index.facts = hash(beside.facts);
  const std::string index_name = generation_name("index", "json", generation);
  const std::string json = to_json(index);
  write_atomically(directory / index.facts_file, std::string_view(beside.facts), files);
  write_atomically(directory / index_name, std::string_view(json), files);
  write_atomically(directory / complete_name, std::string_view(complete_text(index_name, hash(json))), files);
  tidy(directory, index, index_name, files);
}

}  // namespace

std::string plain_name(std::string_view name) {
  std::string out;
  for (const char c : name.substr(0, 200)) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' ||
                       (c == '.' && !out.empty() && out.back() != '.');
    out += plain ? c : '_';
  }
  return out.empty() ? "_" : out;
}

void save(const std::filesystem::path& directory, std::span<const Named> mine, const Beside& beside,
          Communicator& world, const FileSystem& files) {
  const bool first = world.rank() == 0;
  const auto prepared = agree(world, [&]() -> std::string {
    if (!first) return {};
    (void)strict_json(beside.facts, "checkpoint: the facts of the run", 64);
    make_directories(directory, files);
    // The mark that is read now must be the one on the disk, or the generation it needs may be overwritten.
    sync_directory(directory, files);
    return std::to_string(free_generation(directory));
  });
  const int generation = std::stoi(prepared.front());
  const auto parts = agree(world, [&] {
    char stem[32];
    std::snprintf(stem, sizeof stem, "rank_%05d", world.rank());
    Index part =
        write_mine(directory / generation_name(stem, "safetensors", generation), mine, beside.numbers, files);
    part.facts_file = "-";  // rank 0 adds them
    return to_json(part);
  });
  agree(world, [&]() -> std::string {
    if (first) finish(directory, parts, generation, beside, files);
    return {};
  });
}

}  // namespace weft::checkpoint
