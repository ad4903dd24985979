// Mixtures of experts, apart or in one tensor a layer.
#include "weft/model/gpt/hub_cook.h"

namespace weft {

void GptCook::experts(const std::string& ours, const std::string& theirs) {
  const bool hunyuan = type_ == GptType::hunyuan_v1_moe;
  linear(ours + ".router", theirs + (hunyuan ? ".gate.wg" : ".gate"));
  if (list_.has(ours + ".router.expert_bias")) {
    const std::string gate = type_ == GptType::minimax_m2 ? "" : ".gate";
    same(ours + ".router.expert_bias", theirs + gate + ".e_score_correction_bias");
    out_.back().parts.front().always_f32 = true;
  }
  for (int e = 0; e < m_.experts.count; ++e)
    expert(ours + ".experts." + std::to_string(e), theirs + ".experts." + std::to_string(e));
  if (list_.has(ours + ".latent.in.weight")) {
    linear(ours + ".latent.in", theirs + ".fc1_latent_proj");
    linear(ours + ".latent.out", theirs + ".fc2_latent_proj");
  }
  if (!list_.has(ours + ".shared.up.weight")) return;
  mlp(ours + ".shared", theirs + (hunyuan                  ? ".shared_mlp"
                                  : has_shared_gate(type_) ? ".shared_expert"
                                                           : ".shared_experts"));
  if (list_.has(ours + ".shared.gate.weight")) linear(ours + ".shared.gate", theirs + ".shared_expert_gate");
}

void GptCook::expert(const std::string& ours, const std::string& theirs) {
  if (!names_as_mixtral(type_)) return mlp(ours, theirs);
  two_halves(ours + ".up.weight", theirs + ".w1.weight", theirs + ".w3.weight");
  linear(ours + ".down", theirs + ".w2");
}

void GptCook::stacked_experts(const std::string& ours, const std::string& theirs) {
  linear(ours + ".router", theirs + ".router");
  for (int e = 0; e < m_.experts.count; ++e) {
    const std::string expert = ours + ".experts." + std::to_string(e);
    for (const auto& [what, theirs_end] : {std::pair{".weight", ""}, std::pair{".bias", "_bias"}}) {
      stacked(expert + ".up" + what, theirs + ".experts.gate_up_proj" + theirs_end, e);
      const std::int64_t f = out_.back().shape[0] / 2;
      out_.back().runs = {{0, 0, 0, f, 2}, {0, 1, f, f, 2}};
      stacked(expert + ".down" + what, theirs + ".experts.down_proj" + theirs_end, e);
    }
  }
}

void GptCook::experts_of_llama4(const std::string& ours, const std::string& theirs) {
  linear(ours + ".router", theirs + ".router");
  for (int e = 0; e < m_.experts.count; ++e) {
    const std::string expert = ours + ".experts." + std::to_string(e);
    stacked(expert + ".up.weight", theirs + ".experts.gate_up_proj", e);
    stacked(expert + ".down.weight", theirs + ".experts.down_proj", e);
  }
  mlp(ours + ".shared", theirs + ".shared_expert");
}

void GptCook::stacked(const std::string& ours, std::string theirs, std::int64_t e) {
  const Shape& shape = shape_of(ours);
  const bool matrix = shape.rank() == 2;
  const Shape stored =
      matrix ? Shape{m_.experts.count, shape[1], shape[0]} : Shape{m_.experts.count, shape[0]};
  Theirs whole{std::move(theirs), stored, matrix};
  whole.slab = e;
  out_.push_back({ours, shape, {std::move(whole)}, {{0, 0, 0, shape[0]}}});
}

}  // namespace weft
