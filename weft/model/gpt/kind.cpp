// GPT as a value.
#include <array>

#include "weft/model/gpt/gpt.h"
#include "weft/model/gpt/hub.h"
#include "weft/model/stack.h"

namespace weft {
namespace {

std::vector<NamedLoss> gpt_losses(const ModelConfig&) { return {{.name = "lm loss"}}; }

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

Samples gpt_samples(const ModelConfig& config) { return {.sequence = config.sequence}; }

}  // namespace

ModelKind gpt_kind() {
  return {.name = "gpt",
          .losses = gpt_losses,
          .complete = complete_decoder,
          .parameters = gpt_parameters,
          .training_flops = gpt_training_flops,
          .activation_bound = gpt_activation_bound,
          .cut = cut_stack,
          .check_cut = check_stack_cut,
          .exact_widths = stack_exact_widths,
          .exact_notice = stack_exact_notice,
          .build = build_gpt,
          .carried = carried_by_stack,
          .samples = gpt_samples,
          .fields = fields,
          .hub = {.types = gpt_types,
                  .read = read_gpt,
                  .type_for = type_for_gpt,
                  .write = write_gpt,
                  .recipes = gpt_recipes,
                  .twice = gpt_stored_twice,
                  .known_table = is_known_gpt_table,
                  .plainly = plain_gpt}};
}

}  // namespace weft
