// Saving: each rank its own boxes, the mark that the checkpoint is complete last.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "weft/base/file.h"
#include "weft/checkpoint/named.h"
#include "weft/comm/communicator.h"

namespace weft::checkpoint {

/// A box is stored in blocks of about this many bytes, cut along its first dimension: what another layout
/// wants is then read and hashed without much else.
inline constexpr std::int64_t block_bytes = std::int64_t{64} << 20;

/// Every rank of `world` calls it. Only pieces of replica 0 are written. Returns on every rank when the
/// checkpoint survives a power cut; throws on every rank with the failure of the first that had one, and the
/// communicator may go on. A complete checkpoint in `directory` is replaced only when the new one is
/// complete; other directories are not touched. `facts_json`, one JSON object, is taken from rank 0.
void save(const std::filesystem::path& directory, std::span<const Named> mine, const std::string& facts_json,
          Communicator& world, const FileSystem& files = disk());

}  // namespace weft::checkpoint
