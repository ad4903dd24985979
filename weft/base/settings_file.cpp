#include "weft/base/settings_file.h"

#include <yaml-cpp/yaml.h>

#include <set>

#include "weft/base/error.h"
#include "weft/base/flags.h"

namespace weft {
namespace {

void must_be_new(std::set<std::string>& seen, const std::string& key, int line) {
  if (!seen.insert(dashed(key)).second)
    fail(Kind::usage, key, " is given twice, the second time in line ", line + 1);
}

// YAML itself forbids a key given twice, its reader does not mind; headings are none of a setting's name, so
// under two of them it is given twice as well.
void flatten(const YAML::Node& map, std::set<std::string>& settings, std::vector<Setting>& out) {
  std::set<std::string> headings;
  for (const auto& item : map) {
    if (!item.first.IsScalar())
      fail(Kind::usage, "line ", item.first.Mark().line + 1,
           ": a list or map stands where a name was expected");
    Setting setting{item.first.as<std::string>(), {}, item.second.IsSequence()};
    must_be_new(item.second.IsMap() ? headings : settings, setting.name, item.first.Mark().line);
    if (item.second.IsMap()) {
      flatten(item.second, settings, out);
      continue;
    }
    if (item.second.IsScalar()) setting.words.push_back(item.second.Scalar());
    for (const auto& word : item.second) {
      if (!word.IsScalar())
        fail(Kind::usage, setting.name, ": a list or map stands where one value was expected");
      setting.words.push_back(word.Scalar());
    }
    out.push_back(std::move(setting));
  }
}

YAML::Node load(const std::filesystem::path& file) {
  try {
    return YAML::LoadFile(file.string());
  } catch (const YAML::BadFile&) {
    fail(Kind::usage, file.string(), ": cannot be read");
  } catch (const YAML::Exception& e) {
    fail(Kind::data, file.string(), ": not YAML: ", e.what());
  }
}

}  // namespace

std::vector<Setting> read_settings(const std::filesystem::path& file) {
  const YAML::Node root = load(file);
  if (!root.IsMap()) fail(Kind::data, file.string(), ": not a map of settings");
  std::vector<Setting> out;
  try {
    std::set<std::string> settings;
    flatten(root, settings, out);
  } catch (const Error& e) {
    fail(e.kind(), file.string(), ": ", e.what());
  }
  return out;
}

}  // namespace weft
