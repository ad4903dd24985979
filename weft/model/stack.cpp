#include "weft/model/stack.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/number.h"
#include "weft/model/layer_parts.h"

namespace weft {
namespace {

bool has_states(const ModelConfig& m) { return parts_in_all(m, LayerPart::state) > 0; }

void check_layers(const ModelConfig& m, int tp) {
  if (m.heads % tp != 0)
    fail(Kind::usage, m.heads, " attention heads cannot be shared by ", tp, " tensor-parallel ranks");
  if (m.qk_norm_whole && m.groups % tp != 0)
    fail(Kind::usage, "{model.qk_norm_whole}: ", m.groups, " query groups cannot be shared by ", tp,
         " tensor-parallel ranks, which show each other theirs");
  if (m.delta.on && m.delta.key_heads % tp != 0)
    fail(Kind::usage, "{model.delta.key_heads} ", m.delta.key_heads, " cannot be shared by ", tp,
         " tensor-parallel ranks");
  if (has_states(m) && m.state.groups % tp != 0)
    fail(Kind::usage, "{model.state.groups} ", m.state.groups, " cannot be shared by ", tp,
         " tensor-parallel ranks");
  if (m.groups % tp != 0 && tp % m.groups != 0)
    fail(Kind::usage, m.groups, " query groups are neither a multiple nor a divisor of ", tp,
         " tensor-parallel ranks");
  if (m.attention_gate && m.exact && tp > m.groups)
    fail(Kind::usage, "{model.attention_gate}: in exact mode ", tp, " tensor-parallel ranks cannot share ",
         m.groups, " query groups");
  if (m.ffn_hidden % tp != 0)
    fail(Kind::usage, "the MLP's width ", m.ffn_hidden, " cannot be shared by ", tp,
         " tensor-parallel ranks");
}

void check_sequence(const ModelConfig& m, const CutOver& cut) {
  if (cut.cp > 1 && m.sequence % (2 * cut.cp) != 0)
    fail(Kind::usage, "sequence length ", m.sequence, " is not a multiple of ", 2 * cut.cp,
         ", twice the context-parallel ranks");
  if (cut.sequence && m.sequence / cut.cp % cut.tp != 0)
    fail(Kind::usage, "{parallel.sequence}: ", m.sequence / cut.cp, " tokens of a rank cannot be shared by ",
         cut.tp, " tensor-parallel ranks");
  if (m.delta.on && m.delta.key_heads / cut.tp % cut.cp != 0)
    fail(Kind::usage, "{model.delta.key_heads}: ", m.delta.key_heads / cut.tp,
         " key heads of a rank cannot be shared by ", cut.cp,
         " context-parallel ranks, which trade them in layers that remember");
  if (has_states(m) && m.state.groups / cut.tp % cut.cp != 0)
    fail(Kind::usage, "{model.state.groups}: ", m.state.groups / cut.tp,
         " groups of a rank cannot be shared by ", cut.cp,
         " context-parallel ranks, which trade them in state spaces");
  const int groups = std::max(m.groups / cut.tp, 1);
  if (groups % cut.trading != 0)
    fail(Kind::usage,
         cut.trading == cut.cp ? "{parallel.context=heads}: " : "{parallel.context=two_levels}: ", groups,
         " key heads of a rank cannot be shared by ", cut.trading,
         " context-parallel ranks; take p2p or all_gather");
}

}  // namespace

std::vector<StagePart> cut_stack(const ModelConfig& config, const StageCut& cut) {
  StageCut with_ahead = cut;
  with_ahead.ahead = config.ahead.depths;
  return cut_stages(config.layers, with_ahead);
}

Shape hidden_shape(const ModelConfig& config, const Sequences& read, const CutOver& cut) {
  const std::int64_t parts = cut.sequence ? cut.tp : 1;
  return {exact(read.tokens.dim(0), parts), read.tokens.dim(1), config.hidden};
}

Carried carried_by_stack(const ModelConfig& config, const StagePart&, const Batch& batch,
                         const CutOver& cut) {
  return {.hidden = hidden_shape(config, batch.text, cut)};
}

void check_stack_cut(const ModelConfig& config, const CutOver& cut) {
  check_layers(config, cut.tp);
  check_sequence(config, cut);
}

std::vector<ExactWidth> stack_exact_widths(const ModelConfig& m) {
  const std::int64_t keys =
      m.latent.on ? m.heads * (m.latent.plain_channels + m.latent.value_channels) : qkv_rows(m);
  std::vector<ExactWidth> widths{{m.heads * m.channels, "the width of all heads,"},
                                 {m.heads * value_channels(m), "the width of all values,"},
                                 {keys, m.latent.on ? "the width of all keys and values,"
                                                    : "the width of all queries, keys and values,"},
                                 {m.ffn_hidden, "the MLP's width,"},
                                 {m.padded_vocabulary, "the padded vocabulary,"}};
  if (m.delta.on) {
    const MemoryShape shape = m.delta.shape();
    widths.push_back({shape.keys * shape.width(), "the width of what layers that remember make,"});
    widths.push_back({shape.keys * shape.values(), "the width of all that they say,"});
  }
  if (has_states(m)) {
    const MemoryShape shape = m.state.shape();
    widths.push_back({shape.keys * shape.width(), "the width of what state spaces make,"});
    widths.push_back({shape.keys * shape.values(), "the width of all that they say,"});
  }
  if (m.experts.count > 0) widths.push_back({m.experts.ffn_hidden, "an expert's width,"});
  if (m.experts.beside() > 0) widths.push_back({m.experts.beside(), "the shared experts' width,"});
  return widths;
}

std::string stack_exact_notice(const ModelConfig& config, const CutOver& cut) {
  if (cut.cp == 1 || cut.trading == cut.cp) return {};
  const std::int64_t groups = config.groups * sums_of(config).key_parts(config.heads, config.groups) / cut.tp;
  if (groups % cut.cp == 0)
    return "exact mode: context-parallel ranks trade heads, as with {parallel.context=heads}";
  return text("exact mode: ", groups, " key heads of a rank cannot be shared by ", cut.cp,
              " context-parallel ranks, so each of them computes attention for all");
}

}  // namespace weft
