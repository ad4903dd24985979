// BERT as a value.
#include <array>

#include "weft/base/error.h"
#include "weft/model/bert/bert.h"
#include "weft/model/bert/hub.h"
#include "weft/model/stack.h"

namespace weft {
namespace {

// As Megatron averages them: each microbatch's mean over its hidden words, and these.
std::vector<NamedLoss> bert_losses(const ModelConfig& config) {
  std::vector<NamedLoss> losses{{.name = "lm loss", .mean = LossMean::microbatches}};
  if (config.sentence_order) losses.push_back({.name = "sop loss", .mean = LossMean::samples});
  return losses;
}

constexpr std::array<BatchField, 7> fields{
    {{.from = data::Field::tokens, .to = [](Batch& b) -> Tensor& { return b.text.tokens; }},
     {.from = data::Field::token_types, .to = [](Batch& b) -> Tensor& { return b.text.types; }},
     {.from = data::Field::encoder_mask,
      .to = [](Batch& b) -> Tensor& { return b.text.segments; },
      .as = BatchField::As::present},
     {.from = data::Field::labels, .to = [](Batch& b) -> Tensor& { return b.targets; }},
     {.from = data::Field::loss_mask,
      .to = [](Batch& b) -> Tensor& { return b.mask; },
      .as = BatchField::As::counts},
     {.from = data::Field::sentence_order,
      .to = [](Batch& b) -> Tensor& { return b.sentence_order; },
      .as = BatchField::As::samples},
     {.from = data::Field::sentence_order,
      .to = [](Batch& b) -> Tensor& { return b.sentence_mask; },
      .as = BatchField::As::counted}}};

void complete_bert(ModelConfig& m) {
  complete_decoder(m);
  if (m.window > 0)
    fail(Kind::usage, "model: a BERT's tokens see the whole text, and no window of ", m.window, " keys");
}

Samples bert_samples(const ModelConfig& config) {
  return {
      .of = Samples::Of::hidden_words, .sequence = config.sequence, .sentence_order = config.sentence_order};
}

}  // namespace

ModelKind bert_kind() {
  return {.name = "bert",
          .usual_tokenizer = "BertWordPieceLowerCase",
          .speech = Speech::guesses,
          .losses = bert_losses,
          .complete = complete_bert,
          .parameters = bert_parameters,
          .training_flops = bert_training_flops,
          .activation_bound = bert_activation_bound,
          .cut = cut_stack,
          .check_cut = check_stack_cut,
          .exact_widths = stack_exact_widths,
          .exact_notice = stack_exact_notice,
          .build = build_bert,
          .carried = carried_by_stack,
          .samples = bert_samples,
          .fields = fields,
          .hub = {.types = bert_types,
                  .read = read_bert,
                  .type_for = type_for_bert,
                  .write = write_bert,
                  .recipes = bert_recipes,
                  .twice = bert_stored_twice,
                  .known_table = is_known_bert_table,
                  .plainly = plain_bert,
                  .beside = beside_a_bert}};
}

}  // namespace weft
