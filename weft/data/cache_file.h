// Writing files that can be made again: whole or not at all, but without waiting for the disk.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include "weft/base/file.h"

namespace weft::data {

/// Calls `writer` with a new file beside `path` and gives it the name. Unlike write_atomically() nothing is
/// synced: after a power cut the file may be missing or short, which readers must find out, and is made
/// again. A sync here would wait for all that the machine writes.
void write_cache_file(const std::filesystem::path& path, const std::function<void(File&)>& writer);
void write_cache_file(const std::filesystem::path& path, std::string_view content);
/// The folder for such files. Where it or a file cannot be made, the message says how to name another.
void make_cache_folder(const std::filesystem::path& folder);

}  // namespace weft::data
