// The names of GPT-2, GPT-BigCode, GPT-Neo and OPT.
#include "weft/model/gpt/hub_cook.h"

namespace weft {

// OPT keeps two rows in front for what stands before a text, which none reads.
void GptCook::places_of_opt() {
  constexpr std::int64_t in_front = 2;
  const std::string ours = "embedding.positions";
  const Shape& shape = shape_of(ours);
  out_.push_back({ours,
                  shape,
                  {{"model.decoder.embed_positions.weight", rows_of(shape, shape[0] + in_front)}},
                  {{0, in_front, 0, shape[0]}}});
}

std::vector<Recipe> GptCook::learned() {
  const bool opt = type_ == GptType::opt;
  const std::string trunk = opt ? "model.decoder." : "transformer.";
  same("embedding.words", trunk + (opt ? "embed_tokens.weight" : "wte.weight"));
  opt ? places_of_opt() : same("embedding.positions", trunk + "wpe.weight");
  for (int layer = 0; layer < m_.layers; ++layer) opt ? opt_layer(layer) : learned_layer(layer);
  norm("final_norm", trunk + (opt ? "final_layer_norm" : "ln_f"));
  return finished();
}

void GptCook::learned_layer(int layer) {
  const std::string ours = "layers." + std::to_string(layer);
  const std::string theirs = "transformer.h." + std::to_string(layer);
  const bool apart = type_ == GptType::gpt_neo;
  const std::string attention = theirs + (apart ? ".attn.attention" : ".attn");
  norm(ours + ".attention_norm", theirs + ".ln_1");
  if (apart)
    attend(ours + ".attention.qkv", attention, ".weight");
  else
    attend_in_one(ours + ".attention.qkv", attention + ".c_attn");
  linear(ours + ".attention.project", attention + (apart ? ".out_proj" : ".c_proj"));
  norm(ours + ".mlp_norm", theirs + ".ln_2");
  linear(ours + ".mlp.up", theirs + ".mlp.c_fc");
  linear(ours + ".mlp.down", theirs + ".mlp.c_proj");
}

void GptCook::opt_layer(int layer) {
  const std::string ours = "layers." + std::to_string(layer), qkv = ours + ".attention.qkv";
  const std::string theirs = "model.decoder.layers." + std::to_string(layer);
  norm(ours + ".attention_norm", theirs + ".self_attn_layer_norm");
  attend(qkv, theirs + ".self_attn", ".weight");
  if (list_.has(qkv + ".bias")) attend(qkv, theirs + ".self_attn", ".bias");
  linear(ours + ".attention.project", theirs + ".self_attn.out_proj");
  norm(ours + ".mlp_norm", theirs + ".final_layer_norm");
  linear(ours + ".mlp.up", theirs + ".fc1");
  linear(ours + ".mlp.down", theirs + ".fc2");
}

}  // namespace weft
