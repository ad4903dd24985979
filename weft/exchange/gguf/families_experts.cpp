// Qwen's mixtures of experts.
#include "weft/exchange/gguf/family_parts.h"

namespace weft::exchange::gguf {
namespace {

constexpr TensorName shared_expert[]{{"mlp.shared_expert.gate_proj.weight", "ffn_gate_shexp.weight"},
                                     {"mlp.shared_expert.up_proj.weight", "ffn_up_shexp.weight"},
                                     {"mlp.shared_expert.down_proj.weight", "ffn_down_shexp.weight"},
                                     {"mlp.shared_expert_gate.weight", "ffn_gate_inp_shexp.weight"}};

constexpr Setting of_experts[]{{"expert_count", "num_experts"},
                               {"expert_used_count", "num_experts_per_tok"},
                               {"expert_feed_forward_length", "moe_intermediate_size"}};
constexpr Setting of_the_shared_one[]{
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"}};

// Every layer has experts there.
void read_experts(const Keys& keys, Json& theirs, bool divided) {
  read_heads(keys, theirs);
  theirs["use_sliding_window"] = false;
  theirs["decoder_sparse_step"] = 1;
  theirs["mlp_only_layers"] = Json::array();
  theirs["norm_topk_prob"] = divided;
}
void write_qwen2moe(const Json& theirs, KeysToWrite& keys) {
  must_fill("qwen2moe", theirs);
  must_have_output("qwen2moe", theirs);
  write_heads(theirs, keys);
}
void read_qwen2moe(const Keys& keys, Json& theirs) {
  read_experts(keys, theirs, false);
  theirs["qkv_bias"] = keys.contents().has("blk.0.attn_q.bias");
}
void read_qwen3moe(const Keys& keys, Json& theirs) { read_experts(keys, theirs, true); }

constexpr std::string_view qwen2moe_types[]{"qwen2_moe"};
constexpr std::string_view qwen3moe_types[]{"qwen3_moe"};

}  // namespace

std::vector<Architecture> architectures_with_experts() {
  return {{.name = "qwen2moe",
           .types = qwen2moe_types,
           .layers = "model.layers.",
           .names = {around, norms_before, attention, attention_biases, experts, shared_expert},
           .settings = {rotary_settings, of_experts, of_the_shared_one},
           .write = write_qwen2moe,
           .read = read_qwen2moe},
          {.name = "qwen3moe",
           .types = qwen3moe_types,
           .layers = "model.layers.",
           .names = {around, norms_before, attention, head_norms, experts},
           .settings = {rotary_settings, of_experts},
           .write = write_heads,
           .read = read_qwen3moe}};
}

}  // namespace weft::exchange::gguf
