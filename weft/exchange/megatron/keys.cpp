#include "weft/exchange/megatron/keys.h"

#include <array>
#include <cctype>
#include <utility>

#include "weft/exchange/megatron/family.h"

namespace weft::exchange::megatron {
namespace {

constexpr std::string_view layers_word = "layers.", stack_word = ".experts.experts.",
                           experts_word = ".experts.";

bool begins_with_digit(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) != 0;
}

/// Ours and what Megatron calls it, within a layer; where there are two, with and without Transformer Engine.
using Names = std::pair<std::string_view, std::array<std::string_view, 2>>;
constexpr Names in_layer[] = {
    {"attention_norm.", {"self_attention.linear_qkv.layer_norm_", "input_layernorm."}},
    {"mlp_norm.", {"mlp.linear_fc1.layer_norm_", "pre_mlp_layernorm."}},
    {"attention.qkv.", {"self_attention.linear_qkv.", ""}},
    {"attention.q_norm.", {"self_attention.q_layernorm.", ""}},
    {"attention.k_norm.", {"self_attention.k_layernorm.", ""}},
    {"attention.sinks", {"self_attention.core_attention.softmax_offset", ""}},
    {"attention.query.", {"self_attention.linear_q_proj.", ""}},
    {"attention.query_down.", {"self_attention.linear_q_down_proj.", ""}},
    {"attention.query_norm.", {"self_attention.linear_q_up_proj.layer_norm_", "self_attention.q_layernorm."}},
    {"attention.query_up.", {"self_attention.linear_q_up_proj.", ""}},
    {"attention.key_value_down.", {"self_attention.linear_kv_down_proj.", ""}},
    {"attention.key_value_norm.",
     {"self_attention.linear_kv_up_proj.layer_norm_", "self_attention.kv_layernorm."}},
    {"attention.key_value_up.", {"self_attention.linear_kv_up_proj.", ""}},
    {"attention.project.", {"self_attention.linear_proj.", ""}},
    {"cross_norm.", {"pre_cross_attn_layernorm.", ""}},
    {"cross.query.", {"cross_attention.linear_q.", ""}},
    {"cross.key_value.", {"cross_attention.linear_kv.", ""}},
    {"cross.project.", {"cross_attention.linear_proj.", ""}},
    {"mlp.up.", {"mlp.linear_fc1.", ""}},
    {"mlp.down.", {"mlp.linear_fc2.", ""}},
    {"router.", {"mlp.router.", ""}},
    {"shared.gate.weight", {"mlp.shared_experts.gate_weight", ""}},
    {"shared.up.", {"mlp.shared_experts.linear_fc1.", ""}},
    {"shared.down.", {"mlp.shared_experts.linear_fc2.", ""}},
};
constexpr Names outside[] = {
    {"embedding.words", {"embedding.word_embeddings.weight", ""}},
    {"embedding.positions", {"embedding.position_embeddings.weight", ""}},
    {"embedding.types", {"embedding.tokentype_embeddings.weight", ""}},
    {"encoder.distances", {"encoder_relative_pos_emb.relative_attention_bias.weight", ""}},
    {"decoder.distances", {"decoder_relative_pos_emb.relative_attention_bias.weight", ""}},
    {"encoder.final_norm.", {"encoder.final_layernorm.", ""}},
    {"decoder.final_norm.", {"decoder.final_layernorm.", ""}},
    {"pooler.", {"pooler.dense.", ""}},
    {"sentence_order.", {"binary_head.", ""}},
    {"transform.norm.", {"lm_head.layer_norm.", ""}},
    {"transform.", {"lm_head.dense.", ""}},
};
/// What stands in front of a further token's layer, and behind it.
constexpr Names ahead[] = {
    {"word_norm.", {"enorm.", ""}},
    {"hidden_norm.", {"hnorm.", ""}},
    {"join.", {"eh_proj.", ""}},
    {"final_norm.", {"final_layernorm.", ""}},
};

/// A norm's gain is a weight there.
std::string ending(std::string_view ours) { return ours == "gain" ? "weight" : std::string(ours); }

/// Of rows that begin alike the longer one stands first.
void add_names(std::span<const Names> table, std::string_view ours, const std::string& front,
               std::vector<std::string>& out) {
  for (const auto& [mine, theirs] : table) {
    if (!ours.starts_with(mine)) continue;
    for (const std::string_view name : theirs)
      if (!name.empty()) out.push_back(front + std::string(name) + ending(ours.substr(mine.size())));
    return;
  }
}

}  // namespace

Key::Key(std::string_view key) {
  const std::size_t layers = key.find(layers_word);
  const bool in_a_layer = layers != std::string_view::npos && (layers == 0 || key[layers - 1] == '.');
  if (in_a_layer && !begins_with_digit(key.substr(layers + layers_word.size()))) {
    of_layers_ = true;
    front_ = key.substr(0, layers + layers_word.size());
    key.remove_prefix(front_.size());
  }
  const std::size_t experts = key.find(stack_word);
  const bool apart = experts != std::string_view::npos;
  const std::string_view behind = apart ? key.substr(experts + stack_word.size()) : key;
  of_experts_ = apart && !begins_with_digit(behind);
  middle_ = apart ? std::string(key.substr(0, experts)) + std::string(experts_word) : "";
  back_ = behind;
}

std::string Key::at(std::span<const std::int64_t> place) const {
  std::string out = front_;
  std::size_t i = 0;
  if (of_layers_) out += std::to_string(place[i++]) + ".";
  out += middle_;
  if (of_experts_) out += std::to_string(place[i]) + ".";
  return out + back_;
}

std::string plain_name(const std::string& theirs) {
  constexpr std::string_view local = ".experts.local_experts.", grouped = ".experts.linear_fc";
  if (const std::size_t at = theirs.find(local); at != std::string::npos)
    return theirs.substr(0, at) + ".experts." + theirs.substr(at + local.size());
  const std::size_t at = theirs.find(grouped), digits = theirs.find_last_not_of("0123456789") + 1;
  if (at == std::string::npos || digits == theirs.size()) return theirs;
  const std::size_t name = at + experts_word.size();
  return theirs.substr(0, name) + theirs.substr(digits) + "." + theirs.substr(name, digits - name);
}

namespace {

/// Of a layer, or of one of its experts, behind `front`.
std::vector<std::string> names_within(std::string_view name, const std::string& front, bool has_experts) {
  constexpr std::string_view experts = "experts.";
  if (name.starts_with(experts)) {
    name.remove_prefix(experts.size());
    const std::size_t end = name.find('.');
    const std::string expert = front + "mlp.experts." + std::string(name.substr(0, end)) + ".";
    name.remove_prefix(end + 1);
    const bool up = name.starts_with("up.");
    return {expert + (up ? "linear_fc1." : "linear_fc2.") + std::string(name.substr(up ? 3 : 5))};
  }
  std::vector<std::string> out;
  add_names(in_layer, name, front, out);
  // The norm before experts stands alone with Transformer Engine, and has a dense layer's name without.
  if (has_experts && name.starts_with("mlp_norm.")) std::swap(out.front(), out.back());
  return out;
}

std::vector<std::string> names_outside(std::string_view name, const ModelConfig& model) {
  const bool bert = model.kind == name_of(Family::bert), t5 = model.kind == name_of(Family::t5);
  std::vector<std::string> out;
  constexpr std::string_view final_norm = "final_norm.", output = "output.";
  if (name.starts_with(final_norm)) {
    out.push_back((bert ? "encoder." : "decoder.") + std::string("final_layernorm.") +
                  ending(name.substr(final_norm.size())));
  } else if (name.starts_with(output)) {
    const std::string_view what = name.substr(output.size());
    out.push_back((t5 ? "lm_head." : "") + std::string("output_layer.") +
                  (what == "words" ? "weight" : std::string(what)));
  } else {
    add_names(outside, name, "", out);
  }
  return out;
}

}  // namespace

std::vector<std::string> their_names(const std::string& ours, const ModelConfig& model) {
  struct Stack {
    std::string_view mine, theirs;
  };
  const Stack stacks[] = {
      {"encoder.layers.", "encoder.layers."},
      {"decoder.layers.", "decoder.layers."},
      {"ahead.layers.", "mtp.layers."},
      {layers_word, model.kind == name_of(Family::bert) ? "encoder.layers." : "decoder.layers."}};
  for (const auto& [mine, theirs] : stacks) {
    if (!ours.starts_with(mine)) continue;
    const std::size_t dot = ours.find('.', mine.size());
    const std::string number = ours.substr(mine.size(), dot - mine.size());
    std::string front = std::string(theirs) + number + ".";
    const std::string_view name = std::string_view(ours).substr(dot + 1);
    int layer = std::stoi(number);
    if (mine == "ahead.layers.") {
      std::vector<std::string> out;
      add_names(ahead, name, front, out);
      if (!out.empty()) return out;
      front += "transformer_layer.";
      layer = model.layers - 1;  // which those of further tokens are like
    }
    return names_within(name, front, model.experts.at(layer));
  }
  return names_outside(ours, model);
}

}  // namespace weft::exchange::megatron
