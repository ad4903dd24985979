// GPT as a value.
#include <array>

#include "weft/base/number.h"
#include "weft/model/gpt/gpt.h"
#include "weft/model/gpt/hub.h"

namespace weft {
namespace {

constexpr std::array<std::string_view, 1> losses{"lm loss"};

constexpr std::array<BatchField, 5> fields{
    {{.from = data::Field::tokens, .to = [](Batch& b) -> Tensor& { return b.text.tokens; }},
     {.from = data::Field::labels, .to = [](Batch& b) -> Tensor& { return b.targets; }},
     {.from = data::Field::loss_mask,
      .to = [](Batch& b) -> Tensor& { return b.mask; },
      .as = BatchField::As::counts},
     {.from = data::Field::positions, .to = [](Batch& b) -> Tensor& { return b.text.positions; }},
     {.from = data::Field::documents,
      .to = [](Batch& b) -> Tensor& { return b.text.documents; },
      .as = BatchField::As::rows,
      .may_lack = true}}};

std::vector<StagePart> cut_gpt(const ModelConfig& config, const StageCut& cut) {
  return cut_stages(config.layers, cut);
}

Carried hidden_only(const ModelConfig& config, const StagePart&, const Batch& batch, int parts) {
  const Tensor& tokens = batch.text.tokens;
  return {.hidden = {exact(tokens.dim(0), std::int64_t{parts}), tokens.dim(1), config.hidden}};
}

}  // namespace

ModelKind gpt_kind() {
  return {.name = "gpt",
          .losses = losses,
          .complete = complete_decoder,
          .parameters = gpt_parameters,
          .training_flops = gpt_training_flops,
          .activation_bound = gpt_activation_bound,
          .cut = cut_gpt,
          .check_cut = check_gpt_cut,
          .exact_widths = gpt_exact_widths,
          .exact_notice = gpt_exact_notice,
          .build = build_gpt,
          .carried = hidden_only,
          .open = data::open_gpt_datasets,
          .fields = fields,
          .hub = {.types = gpt_types,
                  .read = read_gpt,
                  .type_for = type_for_gpt,
                  .write = write_gpt,
                  .recipes = gpt_recipes,
                  .known_table = is_known_gpt_table,
                  .plainly = plain_gpt}};
}

}  // namespace weft
