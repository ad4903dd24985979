// T5 as a value.
#include <algorithm>
#include <array>

#include "weft/base/error.h"
#include "weft/base/number.h"
#include "weft/model/stack.h"
#include "weft/model/t5/hub.h"
#include "weft/model/t5/t5.h"

namespace weft {
namespace {

std::vector<NamedLoss> t5_losses(const ModelConfig&) { return {{.name = "lm loss"}}; }

constexpr std::array<BatchField, 6> fields_of_t5{
    {{.from = data::Field::encoder_tokens, .to = [](Batch& b) -> Tensor& { return b.source.tokens; }},
     {.from = data::Field::encoder_mask,
      .to = [](Batch& b) -> Tensor& { return b.source.segments; },
      .as = BatchField::As::present},
     {.from = data::Field::tokens, .to = [](Batch& b) -> Tensor& { return b.text.tokens; }},
     {.from = data::Field::decoder_mask,
      .to = [](Batch& b) -> Tensor& { return b.text.segments; },
      .as = BatchField::As::present},
     {.from = data::Field::labels, .to = [](Batch& b) -> Tensor& { return b.targets; }},
     {.from = data::Field::loss_mask,
      .to = [](Batch& b) -> Tensor& { return b.mask; },
      .as = BatchField::As::counts}}};

void check_distances(const RelativeConfig& r) {
  if (r.buckets < 4 || r.buckets % 2 != 0)
    fail(Kind::usage, "model: ", r.buckets, " buckets of distances, an even number from 4 on was expected");
  if (r.farthest <= r.buckets / 2)
    fail(Kind::usage, "model: distances of ", r.farthest, " and more are alike, but the first ",
         r.buckets / 2, " of ", r.buckets, " buckets hold one distance each; take a greater one");
}

void complete_t5(ModelConfig& m) {
  if (m.decoder_layers == 0) m.decoder_layers = m.layers;
  if (m.decoder_sequence == 0)
    fail(Kind::usage,
         "model: the length of the decoder's sequence is not set; give {model.decoder_sequence}");
  if (m.max_positions == 0) m.max_positions = std::max(m.sequence, m.decoder_sequence);
  complete_layers(m);
  if (m.max_positions < m.decoder_sequence)
    fail(Kind::usage, "model: ", m.max_positions, " positions are fewer than the decoder's sequence length ",
         m.decoder_sequence);
  if (m.groups != m.heads)
    fail(Kind::usage, "model: a T5's heads have keys of their own, not ", m.groups, " query groups for ",
         m.heads, " heads");
  if (m.window > 0)
    fail(Kind::usage, "model: a T5's tokens see the whole text, and no window of ", m.window, " keys");
  if (m.qk_norm) fail(Kind::usage, "model: a T5 has no norms of queries and keys");
  if (m.positions == Positions::relative) check_distances(m.relative);
}

std::vector<StagePart> cut_t5(const ModelConfig& config, const StageCut& cut) {
  return cut_stages(config.layers + config.decoder_layers, cut);
}

void check_t5_cut(const ModelConfig& config, const CutOver& cut) {
  check_stack_cut(config, cut);
  ModelConfig decoder = config;
  decoder.sequence = config.decoder_sequence;
  check_stack_cut(decoder, cut);
}

std::vector<ExactWidth> t5_exact_widths(const ModelConfig& m) {
  std::vector<ExactWidth> widths = stack_exact_widths(m);
  widths.push_back({2 * m.heads * m.channels, "the width of all keys and values,"});
  return widths;
}

/// An encoder's hidden states up to the border; behind it a decoder's, and what its layers look at.
Carried carried_by_t5(const ModelConfig& config, const StagePart& into, const Batch& batch,
                      const CutOver& cut) {
  const bool encodes = into.first_layer <= config.layers;
  const bool ends = into.first_layer == config.layers + config.decoder_layers;
  Carried out{.hidden = hidden_shape(config, encodes ? batch.source : batch.text, cut),
              .of_encoder = encodes};
  if (!encodes && !ends) out.memory = hidden_shape(config, batch.source, cut);
  const bool begins = into.embeds || into.first_layer == config.layers;
  const std::int64_t length = encodes ? config.sequence : config.decoder_sequence;
  if (config.positions == Positions::relative && !begins && !ends)
    out.biases = {exact(std::int64_t{config.heads}, std::int64_t{cut.tp}), 2 * length - 1};
  return out;
}

Samples t5_samples(const ModelConfig& config) {
  return {.of = Samples::Of::hidden_spans, .sequence = config.sequence, .decoder = config.decoder_sequence};
}

}  // namespace

ModelKind t5_kind() {
  return {.name = "t5",
          .usual_tokenizer = "BertWordPieceLowerCase",
          .speech = Speech::answers,
          .losses = t5_losses,
          .complete = complete_t5,
          .parameters = t5_parameters,
          .training_flops = t5_training_flops,
          .activation_bound = t5_activation_bound,
          .cut = cut_t5,
          .check_cut = check_t5_cut,
          .exact_widths = t5_exact_widths,
          .exact_notice = stack_exact_notice,
          .build = build_t5,
          .carried = carried_by_t5,
          .samples = t5_samples,
          .fields = fields_of_t5,
          .hub = {.types = t5_types,
                  .read = read_t5,
                  .type_for = type_for_t5,
                  .write = write_t5,
                  .recipes = t5_recipes,
                  .twice = t5_stored_twice,
                  .known_table = is_known_t5_table,
                  .plainly = plain_t5,
                  .settle = settle_t5}};
}

}  // namespace weft
