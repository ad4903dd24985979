// OLMo 1, whose norms have nothing to learn; and what few types have, which others are refused by name.
#include "weft/model/gpt/hub.h"
#include "weft/model/hub_settings.h"

namespace weft {
namespace {

constexpr double epsilon_of_olmo = 1e-5;  // said nowhere

}  // namespace

double read_hub_limit(HubSettings& s) {
  const double limit = s.find("clip_qkv") == nullptr ? 0 : s.positive("clip_qkv", 0);
  if (limit > 0 && limit < 1) s.refuse("clip_qkv", "weft can only compute 1 and more");
  return limit;
}

void read_olmo(ModelConfig& m, HubSettings& s) {
  m.norm_epsilon = epsilon_of_olmo;
  m.norm_gain = false;
  m.gated = true;
  m.hidden_dropout = 0;
  m.linear_bias = m.qkv_bias = s.yes("attention_bias", false);
  m.mlp_bias = !m.linear_bias;  // there are none
  m.qkv_limit = read_hub_limit(s);
}

std::string_view no_olmo1(const ModelConfig& m) {
  if (m.positions != Positions::rotary) return "norms without gains, without rotary positions";
  if (m.norm_epsilon != epsilon_of_olmo) return "norms without gains, with another epsilon than 1e-5";
  if (m.parallel_sublayers != ParallelSublayers::none || !m.gated)
    return "norms without gains, with layers beside each other, or with an MLP that is not gated";
  if ((m.qkv_bias || m.linear_bias) && !biases_attention_alone(m))
    return "norms without gains, with biases of MLPs or of no projection";
  if (has_window(m) || turns_a_part(m))
    return "norms without gains, with a window, or heads of which a part turns";
  if (m.channels * m.heads != m.hidden)
    return "norms without gains, with heads that are not hidden / heads wide";
  return m.output_multiplier == 1 ? "" : "norms without gains, with an output multiplier";
}

bool biases_attention_alone(const ModelConfig& m) {
  return m.qkv_bias && m.linear_bias && m.project_bias && !m.mlp_bias;
}

std::string_view no_such_details(const ModelConfig& m, GptType type) {
  if (m.linear_bias && !m.mlp_bias && (!may_bias_attention_alone(type) || !biases_attention_alone(m)))
    return "biases of attention's products and none of MLPs, in such a model";
  if (m.qk_norm_each && type != GptType::cohere && type != GptType::stablelm)
    return "norms of queries and keys with gains of each head's own, in such a model";
  if (m.qkv_limit > 0 && type != GptType::olmo && type != GptType::mpt)
    return "queries, keys and values that are limited, in such a model";
  return m.qk_norm_turned && !is_hunyuan(type) ? "norms of queries and keys behind turning, in such a model"
                                               : "";
}

}  // namespace weft
