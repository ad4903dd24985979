// Cache files: written beside their name, then renamed.
#include "weft/data/cache_file.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "weft/base/error.h"

namespace weft::data {
namespace {

// A name that no other process takes at the same time; is_partial() knows its form.
std::filesystem::path partial_name(const std::filesystem::path& path) {
  const auto now = static_cast<unsigned>(std::chrono::steady_clock::now().time_since_epoch().count());
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08x", now * 2654435761U ^ static_cast<unsigned>(getpid()));
  return path.string() + ".partial-" + digits;
}

template <class Make>
auto made(const Make& make) {
  try {
    return make();
  } catch (const Error& e) {
    fail(e.kind(), e.what(),
         "; indices of samples are kept there: name a folder that may be written to with {data.cache}");
  }
}

}  // namespace

void make_cache_folder(const std::filesystem::path& folder) {
  made([&] { make_directories(folder); });
}

void write_cache_file(const std::filesystem::path& path, const std::function<void(File&)>& writer) {
  const auto partial = partial_name(path);
  File file = made([&] { return File(partial, Open::fresh); });
  try {
    writer(file);
    file.close();
    std::filesystem::rename(partial, path);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(partial, ignored);
    throw;
  }
}

void write_cache_file(const std::filesystem::path& path, std::string_view content) {
  write_cache_file(path, [&](File& out) { out.write(content); });
}

}  // namespace weft::data
