// Writing what all families have in common, and comparing a run's model with a directory's.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/fields.h"
#include "weft/base/format.h"
#include "weft/exchange/hub_config.h"
#include "weft/exchange/recipe.h"
#include "weft/model/kinds.h"

namespace weft::exchange {
namespace {

using nlohmann::ordered_json;

void add_tokens(ordered_json& out, const HubTokens& tokens) {
  const auto id = [](std::optional<std::int32_t> token) {
    return token ? ordered_json(*token) : ordered_json();
  };
  out["bos_token_id"] = id(tokens.begin);
  out["eos_token_id"] = tokens.ends.size() > 1 ? ordered_json(tokens.ends) : id(tokens.end);
  if (tokens.pad) out["pad_token_id"] = id(tokens.pad);
  if (tokens.start) out["decoder_start_token_id"] = id(tokens.start);
}

}  // namespace

std::string_view type_for(const ModelConfig& model) { return kind_of(model).hub.type_for(model); }

std::vector<Recipe> recipes(std::string_view type, const ModelConfig& model) {
  return kind_of(model).hub.recipes(model, type);
}

std::string hub_config_json(const ModelConfig& m, Dtype dtype, const HubTokens& named) {
  HubTokens tokens = named;
  if (m.decoder_layers > 0 && !tokens.start) tokens.start = 0;  // transformers generates nothing without one
  const HubSpelling hub = kind_of(m).hub;
  ordered_json out = hub.write(m, hub.type_for(m));
  out["vocab_size"] = m.vocabulary;
  out["tie_word_embeddings"] = m.tied_output;
  out["initializer_range"] = m.init.std;
  out["torch_dtype"] = dtype == Dtype::bf16 ? "bfloat16" : dtype == Dtype::f16 ? "float16" : "float32";
  out["use_cache"] = true;
  add_tokens(out, tokens);
  return out.dump(2) + "\n";
}

std::string generation_config_json(const HubTokens& tokens) {
  ordered_json out = ordered_json::object();
  if (!tokens.generation.empty()) out = ordered_json::parse(tokens.generation);
  add_tokens(out, tokens);
  return out.dump(2) + "\n";
}

std::optional<Disagreement> disagreement(const ModelConfig& run, const ModelConfig& theirs) {
  // What a run may say of a model that config.json does not.
  constexpr std::string_view of_the_run[] = {"sequence", "window_full_every"};
  const HubSpelling spelling = kind_of(run).hub;
  ModelConfig asked = spelling.plainly(run);
  ModelConfig found = spelling.plainly(theirs);
  const Fields left(asked);
  const Fields right(found);
  for (std::size_t i = 0; i < left.all().size(); ++i) {
    const Field& a = *left.all()[i];
    const Field& b = *right.all()[i];
    const std::string& path = a.path();
    const bool may =
        a.on_resume() != OnResume::model || std::ranges::find(of_the_run, path) != std::end(of_the_run);
    if (!may && a.write() != b.write())
      return Disagreement{.path = path, .run = join(a.write(), " "), .theirs = join(b.write(), " ")};
  }
  return std::nullopt;
}

void must_agree(const ModelConfig& run, const ModelConfig& theirs, const std::string& who) {
  if (run.kind != theirs.kind)
    fail(Kind::usage, who, " is of a model of the family ", theirs.kind, ", and ", run.kind, " is asked for");
  if (const auto apart = disagreement(run, theirs))
    fail(Kind::usage, who, " says ", apart->path, " ", apart->theirs, ", and ", apart->run,
         " is asked for; {checkpoint.use_args} takes the model from there");
}

}  // namespace weft::exchange
