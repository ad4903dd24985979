// GPT as a value.
#include <array>

#include "weft/base/error.h"
#include "weft/model/experts.h"
#include "weft/model/gpt/gpt.h"
#include "weft/model/gpt/hub.h"
#include "weft/model/stack.h"

namespace weft {
namespace {

// Megatron tells further tokens' losses as means of microbatches' means.
std::vector<NamedLoss> gpt_losses(const ModelConfig& config) {
  std::vector<NamedLoss> losses{{.name = "lm loss"}};
  for (int k = 1; k <= config.ahead.depths; ++k)
    losses.push_back({.name = text("mtp_", k, " loss"), .mean = LossMean::microbatches, .ahead = k});
  for (NamedLoss& loss : balancing_losses(config)) losses.push_back(std::move(loss));
  return losses;
}

constexpr std::array<BatchField, 5> fields_of_gpt{
    {{.from = data::Field::tokens, .to = [](Batch& b) -> Tensor& { return b.text.tokens; }},
     {.from = data::Field::labels, .to = [](Batch& b) -> Tensor& { return b.targets; }},
     {.from = data::Field::loss_mask,
      .to = [](Batch& b) -> Tensor& { return b.mask; },
      .as = BatchField::As::counts},
     {.from = data::Field::positions, .to = [](Batch& b) -> Tensor& { return b.text.positions; }},
     {.from = data::Field::documents,
      .to = [](Batch& b) -> Tensor& { return b.text.segments; },
      .as = BatchField::As::rows,
      .may_lack = true}}};

void complete_gpt(ModelConfig& m) {
  complete_decoder(m, {.experts = true,
                       .latent = true,
                       .further_tokens = true,
                       .sinks = true,
                       .delta = true,
                       .gates = true,
                       .hybrid = true,
                       .norm_places = true,
                       .scores = true,
                       .parallel = true,
                       .logits_bias = true,
                       .alibi = true,
                       .embedding_norm = true,
                       .bare = true});
}

Samples gpt_samples(const ModelConfig& config) { return {.sequence = config.sequence}; }

}  // namespace

ModelKind gpt_kind() {
  return {.name = "gpt",
          .usual_tokenizer = "GPT2BPETokenizer",
          .losses = gpt_losses,
          .complete = complete_gpt,
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
          .fields = fields_of_gpt,
          .hub = {.types = gpt_types,
                  .read = read_gpt,
                  .type_for = type_for_gpt,
                  .write = write_gpt,
                  .recipes = gpt_recipes,
                  .twice = gpt_stored_twice,
                  .known_table = is_known_gpt_table,
                  .plainly = plain_gpt,
                  .unmade_part = is_unmade_part_of_gpt,
                  .settle = settle_gpt,
                  .other_ways = other_ways_of_gpt,
                  .wrappers = gpt_wrappers,
                  .text_name = text_name_of_gpt}};
}

}  // namespace weft
