// The names of Bamba and of Granite 4, whose layers are what mixes tokens and an MLP or experts behind it.
#include "weft/model/gpt/hub_cook.h"

namespace weft {

std::vector<Recipe> GptCook::in_pairs() {
  same("embedding.words", "model.embed_tokens.weight");
  for (int layer = 0; layer < m_.layers; ++layer) {
    const std::string ours = "layers." + std::to_string(layer);
    const std::string theirs = "model.layers." + std::to_string(layer / 2);
    if (layer % 2 == 1) {
      second_of_pair(ours, theirs);
      continue;
    }
    norm(ours + norm_name(part_at(layer, 0)), theirs + ".input_layernorm");
    if (part_at(layer, 0) == LayerPart::state) {
      state(ours + ".state", theirs + ".mamba");
      continue;
    }
    attention(ours + ".attention", theirs + ".self_attn");
    linear(ours + ".attention.project", theirs + ".self_attn.o_proj");
  }
  norm("final_norm", type_ == GptType::bamba ? "model.final_layernorm" : "model.norm");
  return finished();
}

void GptCook::second_of_pair(const std::string& ours, const std::string& theirs) {
  if (type_ == GptType::bamba) {
    norm(ours + ".mlp_norm", theirs + ".pre_ff_layernorm");
    return mlp(ours + ".mlp", theirs + ".feed_forward");
  }
  norm(ours + ".mlp_norm", theirs + ".post_attention_layernorm");
  experts_of_granite(ours, theirs);
}

void GptCook::experts_of_granite(const std::string& ours, const std::string& theirs) {
  const bool mixed = list_.has(ours + ".router.weight");
  const std::string all = ours + (mixed ? ".shared" : ".mlp");
  if (list_.has(all + ".up.weight")) {
    linear(all + ".up", theirs + ".shared_mlp.input_linear");
    linear(all + ".down", theirs + ".shared_mlp.output_linear");
  }
  if (!mixed) return;
  const std::string experts = theirs + ".block_sparse_moe";
  linear(ours + ".router", experts + ".router.layer");
  for (int e = 0; e < m_.experts.count; ++e) {
    const std::string expert = ours + ".experts." + std::to_string(e);
    slab(expert + ".up.weight", experts + ".input_linear.weight", e);
    slab(expert + ".down.weight", experts + ".output_linear.weight", e);
  }
}

void GptCook::slab(const std::string& ours, std::string theirs, std::int64_t e) {
  const Shape& shape = shape_of(ours);
  Theirs whole{std::move(theirs), {m_.experts.count, shape[0], shape[1]}};
  whole.slab = e;
  out_.push_back({ours, shape, {std::move(whole)}, {{0, 0, 0, shape[0]}}});
}

}  // namespace weft
