// Headers of safetensors files and indices of checkpoints from anyone: read or refused with Kind::data, and
// every entry that is read lies within the file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "weft/base/error.h"
#include "weft/checkpoint/index.h"
#include "weft/checkpoint/safetensors.h"

namespace {

void read_file(std::span<const std::byte> file) {
  std::int64_t covered = 0;
  const auto header = weft::checkpoint::read_header(file, "fuzz");
  for (const auto& entry : header.entries) {
    if (entry.begin != covered) std::abort();
    covered += entry.bytes();
  }
  if (header.data_at + covered != static_cast<std::int64_t>(file.size())) std::abort();
}

void read_index(std::string_view json) {
  const auto index = weft::checkpoint::index_from_json(json, "fuzz");
  const std::string written = weft::checkpoint::to_json(index);
  if (weft::checkpoint::to_json(weft::checkpoint::index_from_json(written, "fuzz")) != written) std::abort();
  weft::checkpoint::must_be_whole(index, "fuzz");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  try {
    if (input.starts_with("{"))
      read_index(input);
    else
      read_file(std::as_bytes(std::span(input)));
  } catch (const weft::Error& error) {
    if (error.kind() != weft::Kind::data) std::abort();
  }
  return 0;
}
