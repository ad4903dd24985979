// T5 as a value.
#include <algorithm>
#include <array>

#include "weft/base/error.h"
#include "weft/base/number.h"
#include "weft/model/hub_settings.h"
#include "weft/model/stack.h"
#include "weft/model/t5/t5.h"

namespace weft {
namespace {

std::vector<NamedLoss> t5_losses(const ModelConfig&) { return {{.name = "lm loss"}}; }

constexpr std::array<BatchField, 6> fields{
    {{.from = data::Field::encoder_tokens, .to = [](Batch& b) -> Tensor& { return b.source.tokens; }},
     {.from = data::Field::encoder_mask,
      .to = [](Batch& b) -> Tensor& { return b.source.documents; },
      .as = BatchField::As::present},
     {.from = data::Field::tokens, .to = [](Batch& b) -> Tensor& { return b.text.tokens; }},
     {.from = data::Field::decoder_mask,
      .to = [](Batch& b) -> Tensor& { return b.text.documents; },
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
    fail(Kind::usage, "model: the length of the decoder's sequence is not set; give --decoder-seq-length");
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

// A sum of three is not the same for every order of stages; of two it is.
std::vector<StagePart> cut_t5(const ModelConfig& config, const StageCut& cut) {
  if (config.exact && config.tied_output && cut.ranks * cut.chunks > 1)
    fail(
        Kind::usage,
        "exact mode: a T5's words are read by encoder, decoder and output, whose gradients would be added in "
        "another order on several pipeline stages; take one stage, or "
        "--untie-embeddings-and-output-weights");
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
  Carried out{.hidden = hidden_shape(config, encodes ? batch.source : batch.text, cut)};
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

// ---- Hugging Face's T5s are others
void read_nothing(ModelConfig&, HubSettings&, std::string_view type) {
  fail(Kind::internal, "exchange: no T5 is called ", type);
}
std::string_view no_type(const ModelConfig&) {
  fail(Kind::usage, "exchange: weft writes no Hugging Face model of two stacks yet");
}
nlohmann::ordered_json write_nothing(const ModelConfig&, std::string_view) { return {}; }
std::vector<Recipe> no_recipes(const ModelConfig&, std::string_view) { return {}; }
bool no_table(std::string_view) { return false; }
ModelConfig as_it_is(ModelConfig m) { return m; }

}  // namespace

ModelKind t5_kind() {
  return {.name = "t5",
          .continues = false,
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
          .fields = fields,
          .hub = {.types = {},
                  .read = read_nothing,
                  .type_for = no_type,
                  .write = write_nothing,
                  .recipes = no_recipes,
                  .twice = {},
                  .known_table = no_table,
                  .plainly = as_it_is}};
}

}  // namespace weft
