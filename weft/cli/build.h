// What the build knew: filled in by CMake.
#pragma once

#include <span>
#include <string_view>

namespace weft::cli {

struct Library {
  std::string_view name, version;  // no version: not found when weft was built
};

std::string_view version_number();
std::string_view compiler();  // "GNU 12.2.0, Release"
std::span<const Library> libraries_found();
bool has_library(std::string_view name);

}  // namespace weft::cli
