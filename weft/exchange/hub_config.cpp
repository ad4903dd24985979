// Reading: a family reads what is its own, and what all have in common stands here.
#include "weft/exchange/hub_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/format.h"
#include "weft/checkpoint/find.h"
#include "weft/checkpoint/step.h"
#include "weft/checkpoint/strict_json.h"
#include "weft/exchange/recipe.h"
#include "weft/model/hub_settings.h"
#include "weft/model/kinds.h"

namespace weft::exchange {
namespace {

using nlohmann::json;

const HubWrapper* find_wrapper(const HubSpelling& hub, std::string_view type) {
  const auto found = std::ranges::find(hub.wrappers, type, &HubWrapper::type);
  return found == hub.wrappers.end() ? nullptr : &*found;
}

std::optional<HubWrapper> wrapper_of(std::string_view type) {
  for (const ModelKind& kind : model_kinds())
    if (const HubWrapper* found = find_wrapper(kind.hub, type)) return *found;
  return std::nullopt;
}

ModelKind kind_that_reads(std::string_view type, HubSettings& settings) {
  std::vector<std::string_view> known, wrappers;
  for (const ModelKind& kind : model_kinds()) {
    for (const std::string_view one : kind.hub.types) {
      if (one == type) return kind;
      known.push_back(one);
    }
    for (const HubWrapper& one : kind.hub.wrappers) wrappers.push_back(one.type);
  }
  settings.refuse("model_type",
                  text("weft reads ", join(known, ", "), ", and the text of ", join(wrappers, ", ")));
}

Dtype dtype_of_word(HubSettings& s) {
  const char* name = s.find("dtype") != nullptr ? "dtype" : "torch_dtype";
  const std::string word = s.word(name, "float32");
  if (word == "bfloat16") return Dtype::bf16;
  if (word == "float16") return Dtype::f16;
  return Dtype::f32;
}

std::int32_t id_of(const json& value, const char* name, HubSettings& s) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= std::uint64_t(HubSettings::most))
    s.refuse(name, "expected an id or a list of ids");
  return value.get<std::int32_t>();
}

void read_ends(HubConfig& out, HubSettings& s) {
  if (const json* start = s.find("decoder_start_token_id"))
    out.start = id_of(*start, "decoder_start_token_id", s);
  const json* value = s.find("eos_token_id");
  if (value == nullptr) return;
  const json list = value->is_array() ? *value : json::array({*value});
  for (const json& id : list) out.ends.push_back(id_of(id, "eos_token_id", s));
}

// Python's JSON has a word for infinity, which JSON has not. It becomes what newer programs write.
std::string without_infinities(std::string_view from) {
  constexpr std::string_view word = "Infinity";
  std::string out;
  bool quoted = false;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (!quoted && from.substr(i).starts_with(word)) {
      out += R"({"__float__":"Infinity"})";
      i += word.size() - 1;
      continue;
    }
    out += from[i];
    if (quoted && from[i] == '\\' && i + 1 < from.size())
      out += from[++i];
    else if (from[i] == '"')
      quoted = !quoted;
  }
  return out;
}

HubConfig read_object(const json& object, const std::string& who) {
  HubSettings s(object, who);
  HubConfig out{.type = s.word("model_type", "")};
  ModelConfig& m = out.model;
  const ModelKind kind = kind_that_reads(out.type, s);
  m.kind = kind.name;
  kind.hub.read(m, s, out.type);
  m.vocabulary = m.vocabulary > 0 ? s.size_or("vocab_size", m.vocabulary) : s.size("vocab_size");
  m.sequence = m.max_positions;
  if (!s.asked("quantization_config")) out.blocks = read_code_blocks(s);
  for (const char* name :
       {"num_experts", "num_local_experts", "attn_logit_softcapping", "final_logit_softcapping"})
    if (!s.asked(name)) s.must_be_absent(name);
  out.dtype = dtype_of_word(s);
  read_ends(out, s);
  for (const std::string& name : s.unasked())
    out.notices.push_back(text(who, ": \"", name, "\" is a setting that weft does not know and passes over"));
  try {
    complete(m);
  } catch (const Error& error) {
    fail(Kind::data, who, ": ", error.what());
  }
  if (m.positions == Positions::rotary && turning_channels(m) % 2 != 0)
    fail(Kind::data, who, ": heads of ", m.channels, " channels, and rotary positions turn them in pairs");
  return out;
}

/// What a wrapper says of its text counts more than what the text's own settings say.
HubConfig read_text(const json& object, const HubWrapper& wrapper, const std::string& who) {
  const auto found = object.find("text_config");
  if (found == object.end() || !found->is_object())
    fail(Kind::data, who, ": \"model_type\" is \"", wrapper.type,
         "\", of which weft reads the text, and \"text_config\" is ",
         found == object.end() ? "missing" : found->type_name(), ", expected an object");
  json inner = *found;
  if (!inner.contains("model_type")) inner["model_type"] = wrapper.text;
  for (const char* name :
       {"tie_word_embeddings", "quantization_config", "dtype", "torch_dtype", "eos_token_id"})
    if (const auto outer = object.find(name); outer != object.end() && !outer->is_null())
      inner[name] = *outer;
  HubConfig out = read_object(inner, who + ": text_config");
  out.around = wrapper.type;
  out.notices.insert(out.notices.begin(),
                     text(who, ": is of a ", wrapper.type, ", of which weft reads the text, a ", out.type));
  return out;
}

/// A wrapper says that outputs are embeddings, whatever is so: its tensors know.
void settle_output(HubConfig& config, const HubSource& tensors) {
  for (const StoredTwice& one : kind_of(config.model).hub.twice) {
    const std::string output(one.theirs);
    if (one.ours != "embedding.words" || tensors.find(output) == nullptr) continue;
    const auto all = recipes(config.type, config.model);
    const auto words = std::ranges::find(all, one.ours, &Recipe::name);
    const std::string& embedding = words->parts.front().name;
    const bool same = tensors.find(embedding) != nullptr && tensors.same(embedding, output);
    config.model.tied_output = config.model.tied_output && same;
    return;
  }
  config.model.tied_output = true;
}

}  // namespace

HubConfig hub_config_from_json(std::string_view from, const std::string& who) {
  const json object = checkpoint::strict_json(without_infinities(from), who, 8);
  const auto type = object.find("model_type");
  if (type != object.end() && type->is_string())
    if (const auto wrapper = wrapper_of(type->get<std::string>())) return read_text(object, *wrapper, who);
  return read_object(object, who);
}

void settle(HubConfig& config, const std::function<const HubSource&()>& tensors) {
  if (!config.around.empty()) settle_output(config, tensors());
  if (const auto by_names = kind_of(config.model).hub.settle)
    by_names(config.model, [&](const std::string& name) { return tensors().find(name) != nullptr; });
}

HubConfig read_hub_config(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / "config.json";
  HubConfig out = hub_config_from_json(read_file(file), file.string());
  std::optional<HubTensors> opened;
  settle(out,
         [&]() -> const HubSource& { return opened ? *opened : opened.emplace(directory, text_name(out)); });
  return out;
}

TextName text_name(const HubConfig& config) {
  return config.around.empty() ? nullptr : kind_of(config.model).hub.text_name;
}

bool is_hub_directory(const std::filesystem::path& directory) {
  std::error_code error;
  return std::filesystem::is_regular_file(directory / "config.json", error) &&
         !std::filesystem::exists(directory / checkpoint::complete_name, error) &&
         checkpoint::step_directories(directory).empty();
}

}  // namespace weft::exchange
