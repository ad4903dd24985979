// A folder of links to a known one's files but for one, which each input of a fuzz target stands for.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace weft::exchange {

struct Place {
  std::filesystem::path directory, file;
  void put(const std::uint8_t* data, std::size_t size) const {
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  }
};

/// A process's own, empty.
inline std::filesystem::path own_folder(const std::string& name) {
  std::filesystem::path own =
      std::filesystem::temp_directory_path() / (name + '_' + std::to_string(::getpid()));
  std::filesystem::remove_all(own);
  return own;
}

inline Place place_in(const std::filesystem::path& own, const std::filesystem::path& from,
                      const std::string& file) {
  namespace fs = std::filesystem;
  for (const auto& entry : fs::recursive_directory_iterator(from)) {
    if (!entry.is_regular_file()) continue;
    const fs::path at = fs::relative(entry.path(), from);
    fs::create_directories((own / at).parent_path());
    if (at != file) fs::create_symlink(entry.path(), own / at);
  }
  return {own, own / file};
}

}  // namespace weft::exchange
