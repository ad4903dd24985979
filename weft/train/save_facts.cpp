#include "weft/train/save_facts.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/fields.h"
#include "weft/base/file.h"
#include "weft/base/hash.h"
#include "weft/train/save_describe.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* format_word = "weft run";
constexpr std::int64_t format_version = 1;

// What Fields cannot place any more: settings that a later or an earlier weft has.
void drop_unknown(Json& from, const std::string& path, const Fields& fields) {
  for (auto item = from.begin(); item != from.end();) {
    const std::string here = path.empty() ? item.key() : path + "." + item.key();
    if (item->is_object()) {
      drop_unknown(*item, here, fields);
      ++item;
    } else {
      item = fields.find(here) == nullptr ? from.erase(item) : std::next(item);
    }
  }
}

void check_format(const Json& all, const std::string& who) {
  const auto format = all.is_object() ? all.find("format") : all.end();
  if (!all.is_object() || format == all.end() || *format != format_word)
    fail(Kind::data, who, ": not the facts of a run of weft");
  const auto version = all.find("version");
  if (version == all.end() || *version != format_version)
    fail(Kind::data, who, ": version ", version == all.end() ? "none" : version->dump(),
         " of the facts of a run, this weft reads version ", format_version);
}

}  // namespace

std::string to_json(const RunFacts& facts) {
  RunFacts copy = facts;
  Json out{{"format", format_word}, {"version", format_version}};
  out.update(Json::parse(to_json(Fields(copy))));
  // Facts that do not say it are a GPT's, as they were when there was no other family.
  if (copy.configuration.model.kind == ModelConfig().kind) out.erase("family");
  return out.dump(1) + "\n";
}

RunFacts facts_from_json(std::string_view json, const std::string& who) {
  Json all = Json::parse(json, nullptr, false);
  check_format(all, who);
  all.erase("format");
  all.erase("version");
  RunFacts out;
  Fields fields(out);
  if (all.contains("configuration")) drop_unknown(all["configuration"], "configuration", fields);
  try {
    from_json(fields, all.dump(), Origin::checkpoint);
  } catch (const Error& error) {
    fail(Kind::data, who, ": ", error.what());
  }
  return out;
}

std::string settings_to_take(const RunFacts& facts, bool tokenizer_too) {
  TrainConfig copy = facts.configuration;
  const Json all = Json::parse(to_json(Fields(copy)));
  Json out{{"model", all["model"]}};
  // What depends on this run and not on the model.
  for (const char* own : {"recompute", "precision", "residual_in_f32", "exact", "padded_vocabulary"})
    out["model"].erase(own);
  if (tokenizer_too) out["data"]["tokenizer"] = all["data"]["tokenizer"];
  return out.dump();
}

RunTokenizer tokenizer_fact(const TokenizerConfig& c, std::int64_t size) {
  RunTokenizer out{.type = c.type, .size = size};
  for (const std::string& named : {c.model, c.vocab_file, c.merge_file}) {
    if (named.empty()) continue;
    std::error_code error;
    const std::filesystem::path path(named);
    const auto file = std::filesystem::is_directory(path, error) ? path / "tokenizer.json" : path;
    if (!std::filesystem::is_regular_file(file, error)) continue;
    out.files.push_back(file.string());
    out.hashes.push_back(hash(MappedFile(file).bytes()).hex());
  }
  return out;
}

}  // namespace weft
