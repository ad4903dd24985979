#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::exchange::torch {

/// The checksum of a zip's records. By hand because only the room that reads compressed data may know zlib.
std::uint32_t crc32(std::span<const std::byte> bytes);

}  // namespace weft::exchange::torch
