// Any bytes as a plain, gzip or zstd file: at most so many lines, or a refusal.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "weft/base/error.h"
#include "weft/data/lines.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::data;
  const std::string path =
      (std::filesystem::temp_directory_path() / ("weft_fuzz_" + std::to_string(getpid()))).string();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  try {
    LineReader reader({path});
    LineBlock block;
    std::size_t bytes = 0;
    // A small packed file may hold gigabytes: some megabytes are enough to see that it is read by pieces.
    while (bytes < (std::size_t{8} << 20) && reader.next(block)) {
      bytes += block.text.size();
      for (std::size_t i = 0; i < block.size(); ++i) asm volatile("" : : "r"(block.line(i).size()));
    }
  } catch (const weft::Error& e) {
    if (e.kind() != weft::Kind::data) __builtin_trap();
  }
  std::filesystem::remove(path);
  return 0;
}
