// A T5's config.json, both ways; what weft or transformers cannot compute is refused by name.
#include "weft/model/t5/hub.h"

#include <cmath>

#include "weft/base/error.h"
#include "weft/model/gpt/hub.h"
#include "weft/model/hub_settings.h"

namespace weft {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view gate = "gated-";

// Where the output is the embedding, transformers divides what it multiplies by the root of the width.
double their_output_multiplier(const ModelConfig& m) {
  return m.tied_output ? 1 / std::sqrt(double(m.hidden)) : 1;
}

bool near(double a, double b) { return std::abs(a - b) <= 1e-6 * std::abs(b); }

std::string_view no_t5_has_in_layers(const ModelConfig& m) {
  if (m.positions != Positions::relative) return "no relative positions";
  if (m.norm != NormKind::rms) return "layer norms, not {model.norm=rms}";
  if (m.linear_bias || m.qkv_bias) return "biases, not {model.linear_bias=false}";
  if (!near(m.softmax_scale, 1)) return "scores that are scaled, not {model.softmax_scale=1}";
  if (m.residual_after_norm) return "blocks that add to what their norm gave";
  if (m.residual_multiplier != 1) return "a multiplier of what attention and MLPs add";
  if (m.gated && m.activation == Activation::gelu_erf) return "MLPs gated by the exact gelu";
  if (m.gated && (m.gate_limit != 0 || m.gate_offset != 0)) return "gates with a limit or an offset";
  return "";
}

std::string_view no_t5_has_at_the_ends(const ModelConfig& m) {
  if (m.embedding_multiplier != 1) return "an embedding multiplier";
  if (m.mup.on) return "multipliers of muP";
  if (m.tied_output && m.output_bias) return "biases of its logits, not {model.output_bias=false}";
  if (!near(m.output_multiplier, their_output_multiplier(m)))
    return m.tied_output
               ? "an output that is the embedding and whose {model.output_multiplier} is not one by "
                 "the root of the hidden size"
               : "an output of its own with a multiplier";
  return "";
}

void read_mlp(ModelConfig& m, HubSettings& s, bool of_mt5) {
  std::string word = s.word("feed_forward_proj", of_mt5 ? "gated-gelu" : "relu");
  m.gated = word.starts_with(gate);
  if (m.gated) word.erase(0, gate.size());
  // Their gated gelu is the one in tanh form.
  if (m.gated && word == "gelu") word = "gelu_new";
  m.activation = hub_activation(word, s, "feed_forward_proj");
  for (const char* that_follows : {"dense_act_fn", "is_gated_act"}) (void)s.find(that_follows);
}

}  // namespace

void read_t5(ModelConfig& m, HubSettings& s, std::string_view type) {
  const bool of_mt5 = type == t5_types.back();
  m.layers = int(s.size("num_layers", HubSettings::most_layers));
  m.decoder_layers = int(s.size_or("num_decoder_layers", m.layers, HubSettings::most_layers));
  m.hidden = s.size("d_model", HubSettings::widest);
  m.channels = s.size("d_kv", HubSettings::widest);
  m.ffn_hidden = s.size("d_ff", HubSettings::widest);
  m.heads = m.groups = int(s.size("num_heads", HubSettings::most_heads));
  m.max_positions = m.decoder_sequence = s.size_or("n_positions", 512);
  m.positions = Positions::relative;
  m.relative = {.buckets = int(s.size_or("relative_attention_num_buckets", 32, 1 << 16)),
                .farthest = int(s.size_or("relative_attention_max_distance", 128))};
  m.norm = NormKind::rms;
  m.norm_epsilon = s.positive("layer_norm_epsilon", 1e-6);
  m.hidden_dropout = m.attention_dropout = s.fraction("dropout_rate", 0.1);
  m.linear_bias = m.qkv_bias = m.output_bias = false;
  m.softmax_scale = 1;
  m.tied_output = s.yes("tie_word_embeddings", !of_mt5);
  if (s.yes("scale_decoder_outputs", m.tied_output)) m.output_multiplier = 1 / std::sqrt(double(m.hidden));
  read_mlp(m, s, of_mt5);
  for (const char* of_beginnings_and_other_tasks : {"initializer_factor", "classifier_dropout"})
    (void)s.find(of_beginnings_and_other_tasks);
}

std::string_view type_for_t5(const ModelConfig& m) {
  std::string_view reason = no_t5_has_in_layers(m);
  if (reason.empty()) reason = no_t5_has_at_the_ends(m);
  if (!reason.empty())
    fail(Kind::usage, "exchange: no Hugging Face model of two stacks that weft writes (t5) has ", reason);
  return t5_types.front();
}

ordered_json write_t5(const ModelConfig& m, std::string_view type) {
  const std::string_view word =
      m.gated && m.activation == Activation::gelu ? "gelu" : hub_activation_word(m.activation);
  return {{"architectures", {"T5ForConditionalGeneration"}},
          {"model_type", type},
          {"is_encoder_decoder", true},
          {"num_layers", m.layers},
          {"num_decoder_layers", m.decoder_layers},
          {"d_model", m.hidden},
          {"d_kv", m.channels},
          {"d_ff", m.ffn_hidden},
          {"num_heads", m.heads},
          {"n_positions", m.max_positions},
          {"relative_attention_num_buckets", m.relative.buckets},
          {"relative_attention_max_distance", m.relative.farthest},
          {"layer_norm_epsilon", m.norm_epsilon},
          {"dropout_rate", m.hidden_dropout},
          {"feed_forward_proj", text(m.gated ? gate : "", word)}};
}

// Biases of distances that old programs stored for attention to the encoder, which has none.
bool is_known_t5_table(std::string_view name) {
  return name == "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight";
}

// Newer versions of transformers say "tie_word_embeddings" of every T5, and of one with an output of its own
// that it is not scaled.
void settle_t5(ModelConfig& m, const IsStored& stored) {
  if (m.tied_output && m.output_multiplier == 1 && stored("lm_head.weight")) m.tied_output = false;
}

// Relative positions know no last one, so lengths are a run's own.
ModelConfig plain_t5(ModelConfig m) {
  m = plain_gpt(std::move(m));
  if (m.positions == Positions::relative)
    m.max_positions = m.decoder_sequence = 0;
  else
    m.relative = {};
  if (!m.tied_output) m.output_bias = false;
  return m;
}

}  // namespace weft
