// Saving: each rank its own boxes, the mark that the checkpoint is complete last.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "weft/base/file.h"
#include "weft/checkpoint/named.h"
#include "weft/comm/communicator.h"

namespace weft::checkpoint {

/// A box is stored in blocks of about this many bytes, cut along its first dimension: what another layout
/// wants is then read and hashed without much else.
inline constexpr std::int64_t block_bytes = std::int64_t{64} << 20;

/// A small file to keep with the tensors, as "tokenizer/vocab.json": one folder, one plain name.
struct Attached {
  std::string folder, name, content;
};

/// Whether numbers that are infinite or NaN are refused.
enum class Numbers : std::uint8_t { any, finite };

/// What lies beside the tensors: one JSON object, and files. Both are taken from rank 0. And what the tensors
/// must be.
struct Beside {
  Beside(std::string facts_json) : facts(std::move(facts_json)) {}
  Beside(const char* facts_json) : facts(facts_json) {}
  Beside(std::string facts_json, std::span<const Attached> with)
      : facts(std::move(facts_json)), files(with) {}

  std::string facts;
  std::span<const Attached> files = {};
  Numbers numbers = Numbers::any;
};

/// A name made of what names in a checkpoint may be made of.
std::string plain_name(std::string_view name);

/// Every rank of `world` calls it. Only pieces of replica 0 are written. Returns on every rank when the
/// checkpoint survives a power cut; throws on every rank with the failure of the first that had one, and the
/// communicator may go on. Numbers that must be finite and are not fail with Kind::usage. A complete
/// checkpoint in `directory` is replaced only when the new one is complete; other directories are not
/// touched.
void save(const std::filesystem::path& directory, std::span<const Named> mine, const Beside& beside,
          Communicator& world, const FileSystem& files = disk());

}  // namespace weft::checkpoint
