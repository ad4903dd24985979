// Layer norms and rotary positions, attention and MLPs one behind the other: StarCoder 2, Nemotron and
// OLMo 1.
#include <nlohmann/json.hpp>

#include "weft/model/gpt/hub.h"
#include "weft/model/hub_settings.h"

namespace weft {
namespace {

using nlohmann::ordered_json;

void read_starcoder(ModelConfig& m, HubSettings& s) {
  m.norm_epsilon = s.positive("norm_epsilon", 1e-5);
  m.hidden_dropout = s.fraction("residual_dropout", 0);
  (void)s.find("embedding_dropout");
  m.linear_bias = m.qkv_bias = s.yes("use_bias", true);
  for (const auto& [name, word] : {std::pair{"mlp_type", "default"}, std::pair{"norm_type", "layer_norm"}})
    s.must_be(name, word);
}

void read_nemotron(ModelConfig& m, HubSettings& s) {
  m.norm_epsilon = s.positive("norm_eps", 1e-5);
  m.norm_centered_gain = true;
  m.hidden_dropout = 0;
  m.channels = s.size_or("head_dim", 0, HubSettings::widest / 16);
  m.linear_bias = m.qkv_bias = s.yes("attention_bias", false);
  s.must_be("mlp_bias", m.linear_bias);
}

}  // namespace

void read_serial(ModelConfig& m, GptType type, HubSettings& s) {
  const bool nemotron = type == GptType::nemotron, olmo = type == GptType::olmo;
  m.parallel_sublayers = ParallelSublayers::none;
  m.groups = int(s.size_or("num_key_value_heads", nemotron || olmo ? m.heads : 2, HubSettings::most_heads));
  m.ffn_hidden = s.size("intermediate_size", HubSettings::widest);
  m.max_positions = s.size("max_position_embeddings");
  const char* const usual = nemotron ? "relu2" : olmo ? "silu" : "gelu_pytorch_tanh";
  m.activation = hub_activation(s.word("hidden_act", usual), s, "hidden_act");
  m.attention_dropout = s.fraction("attention_dropout", 0);
  nemotron ? read_nemotron(m, s) : olmo ? read_olmo(m, s) : read_starcoder(m, s);
  read_hub_rotary(m, type, s);
  if (!nemotron && !olmo) read_hub_window(m, type, s);
}

void write_serial(ordered_json& out, const ModelConfig& m, GptType type) {
  out["num_key_value_heads"] = m.groups;
  if (type == GptType::olmo) {
    out["attention_bias"] = m.linear_bias;
    out["clip_qkv"] = m.qkv_limit > 0 ? ordered_json(m.qkv_limit) : ordered_json();
    out["pad_token_id"] = nullptr;  // unsaid it is a word of theirs
    return;
  }
  if (type == GptType::nemotron) {
    out["head_dim"] = m.channels;
    out["norm_eps"] = m.norm_epsilon;
    out["partial_rotary_factor"] = m.rotary.percent;
    out["attention_bias"] = out["mlp_bias"] = m.linear_bias;
    return;
  }
  out["norm_epsilon"] = m.norm_epsilon;
  out["residual_dropout"] = out["embedding_dropout"] = m.hidden_dropout;
  out["use_bias"] = m.linear_bias;
  write_hub_window(out, m, type);
}

std::string_view no_serial(const ModelConfig& m, GptType type) {
  if (m.qkv_bias != m.linear_bias) return "layers as StarCoder 2's or Nemotron's, with biases in some places";
  if (type == GptType::nemotron) return "";
  if (turns_a_part(m)) return "layers as StarCoder 2's, with a window and heads of which a part turns";
  if (!all_windowed(m)) return "layers as StarCoder 2's, with a window in some";
  return "";
}

}  // namespace weft
