// A family's line stands here; the rest of it in its folder.
#include "weft/model/kinds.h"

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/model/bert/bert.h"
#include "weft/model/gpt/gpt.h"
#include "weft/model/t5/t5.h"

namespace weft {
namespace {

std::vector<std::string_view> names() {
  std::vector<std::string_view> out;
  for (const ModelKind& kind : model_kinds()) out.push_back(kind.name);
  return out;
}

}  // namespace

std::vector<ModelKind> model_kinds() { return {gpt_kind(), bert_kind(), t5_kind()}; }

std::optional<ModelKind> find_kind(std::string_view name) {
  for (const ModelKind& kind : model_kinds())
    if (kind.name == name) return kind;
  return std::nullopt;
}

ModelKind kind_named(std::string_view name) {
  if (const auto found = find_kind(name)) return *found;
  fail(Kind::usage, "model: no family is called ", name, ", weft has ", join(names(), ", "));
}

std::string kinds_to_choose() { return join(names(), "|"); }

ModelKind kind_of(const ModelConfig& config) { return kind_named(config.kind); }

std::int64_t Samples::length(data::Field field) const {
  using data::Field;
  if (field == Field::sentence_order || field == Field::truncated) return 1;
  const bool of_encoder = field == Field::encoder_tokens || field == Field::encoder_mask;
  return of == Of::hidden_spans && !of_encoder ? decoder : sequence;
}

void complete(ModelConfig& config) { kind_of(config).complete(config); }

}  // namespace weft
