// What a DeepSpeed configuration says of a run's fields, for tests.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/cli/dialect.h"
#include "weft/cli/dialect/deepspeed_rows.h"

namespace weft::cli {

/// All that a file says: fields by path, and what waits for the number of ranks.
struct Said {
  std::map<std::string, std::vector<std::string>> fields;
  dialect::DeepSpeedSaid rest;
  std::map<std::string, std::vector<std::string>> all() const {
    auto out = fields;
    out["accumulation"] = {write_word(rest.accumulation.value_or(0))};
    out["shard ranks"] = {write_word(rest.shard_ranks.value_or(0))};
    return out;
  }
};

inline Said said(const std::string& json) {
  TrainConfig config;
  Fields fields(config);
  Said out{{}, dialect::read_deepspeed(fields, json, "ds.json")};
  for (const auto& field : fields.all()) out.fields[field->path()] = field->write();
  return out;
}

inline std::string refusal(const std::string& json) {
  try {
    static_cast<void>(said(json));
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

inline nlohmann::json::json_pointer pointer_to(std::string_view path) {
  std::string out;
  for (const std::string_view name : split(path, '.')) out += text("/", name);
  return nlohmann::json::json_pointer(out);
}

/// The file that the table says the key acts in, with a value for it.
inline std::string with(const dialect::ds::Key& key, const nlohmann::json& value) {
  nlohmann::json file = key.with.empty() ? nlohmann::json::object() : nlohmann::json::parse(key.with);
  file[pointer_to(key.path)] = value;
  return file.dump();
}
inline std::string with_sample(const dialect::ds::Key& key) {
  return with(key, nlohmann::json::parse(key.sample));
}

}  // namespace weft::cli
