// A YAML (or JSON) file of settings as a list of names and words; maps inside are headings, not part of the
// names.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace weft {

struct Setting {
  std::string name;
  std::vector<std::string> words;  // one for a value, several for a list, none for "name:"
  bool list = false;
};

std::vector<Setting> read_settings(const std::filesystem::path& file);

}  // namespace weft
