// The names of GPT-NeoX, GPT-J, Phi, Falcon and Cohere, of BLOOM, MPT, StableLM, StarCoder 2, OLMo 1 and
// Nemotron.
#include "weft/model/gpt/hub_cook.h"

namespace weft {
namespace {

/// Of a layer's parts behind its own name; where norms have names of their own by where they stand, see
/// below.
struct Names {
  std::string words, layers, norm, mlp_norm, attention, project, up, down, last_norm;
  bool in_one = false;  // queries, keys and values
};

Names names_of(GptType type, ParallelSublayers sublayers) {
  if (type == GptType::gpt_neox)
    return {"gpt_neox.embed_in",
            "gpt_neox.layers.",
            ".input_layernorm",
            ".post_attention_layernorm",
            ".attention",
            ".attention.dense",
            ".mlp.dense_h_to_4h",
            ".mlp.dense_4h_to_h",
            "gpt_neox.final_layer_norm",
            true};
  if (type == GptType::gptj)
    return {"transformer.wte", "transformer.h.", ".ln_1",           "", ".attn", ".attn.out_proj",
            ".mlp.fc_in",      ".mlp.fc_out",    "transformer.ln_f"};
  if (type == GptType::phi)
    return {"model.embed_tokens",   "model.layers.",    ".input_layernorm", "",
            ".self_attn",           ".self_attn.dense", ".mlp.fc1",         ".mlp.fc2",
            "model.final_layernorm"};
  if (type != GptType::olmo && stands_serially(type)) {
    const bool coder = type == GptType::starcoder2;
    return {"model.embed_tokens",
            "model.layers.",
            ".input_layernorm",
            ".post_attention_layernorm",
            ".self_attn",
            ".self_attn.o_proj",
            coder ? ".mlp.c_fc" : ".mlp.up_proj",
            coder ? ".mlp.c_proj" : ".mlp.down_proj",
            "model.norm"};
  }
  if (type == GptType::mpt)
    return {"transformer.wte", "transformer.blocks.", ".norm_1",        ".norm_2",           ".attn",
            ".attn.out_proj",  ".ffn.up_proj",        ".ffn.down_proj", "transformer.norm_f"};
  if (is_cohere(type) || type == GptType::stablelm || type == GptType::olmo)
    return {"model.embed_tokens",
            "model.layers.",
            ".input_layernorm",
            ".post_attention_layernorm",
            ".self_attn",
            ".self_attn.o_proj",
            "",
            "",
            "model.norm"};
  const bool own = sublayers == ParallelSublayers::own_norms;
  return {"transformer.word_embeddings",
          "transformer.h.",
          own ? ".ln_attn" : ".input_layernorm",
          own ? ".ln_mlp" : ".post_attention_layernorm",
          ".self_attention",
          ".self_attention.dense",
          ".mlp.dense_h_to_4h",
          ".mlp.dense_4h_to_h",
          "transformer.ln_f",
          true};
}

}  // namespace

std::vector<Recipe> GptCook::beside() {
  const Names names = names_of(type_, m_.parallel_sublayers);
  same("embedding.words", names.words + ".weight");
  if (list_.has("embedding.norm.gain")) norm("embedding.norm", names.words + "_layernorm");
  for (int layer = 0; layer < m_.layers; ++layer) layer_beside(layer);
  norm("final_norm", names.last_norm);
  return finished();
}

void GptCook::layer_beside(int layer) {
  const Names names = names_of(type_, m_.parallel_sublayers);
  const std::string ours = "layers." + std::to_string(layer), qkv = ours + ".attention.qkv";
  const std::string theirs = names.layers + std::to_string(layer);
  norm(ours + ".attention_norm", theirs + names.norm);
  if (list_.has(ours + ".mlp_norm.gain")) norm(ours + ".mlp_norm", theirs + names.mlp_norm);
  if (names.in_one) {
    const std::size_t first = out_.size();
    linear(qkv, theirs + names.attention + ".query_key_value");
    for (std::size_t i = first; i < out_.size(); ++i) out_[i].runs = in_groups();
  } else if (type_ == GptType::mpt) {
    attend_in_one(qkv, theirs + names.attention + ".Wqkv");
  } else {
    attend(qkv, theirs + names.attention, ".weight");
    if (list_.has(qkv + ".bias")) attend(qkv, theirs + names.attention, ".bias");
  }
  if (list_.has(ours + ".attention.q_norm.gain"))
    head_norms_beside(ours + ".attention", theirs + names.attention);
  linear(ours + ".attention.project", theirs + names.project);
  if (m_.gated) return mlp(ours + ".mlp", theirs + ".mlp");
  linear(ours + ".mlp.up", theirs + names.up);
  linear(ours + ".mlp.down", theirs + names.down);
}

void GptCook::head_norms_beside(const std::string& ours, const std::string& theirs) {
  const std::string end = type_ == GptType::cohere ? "_norm" : "_layernorm";
  if (!m_.qk_norm_each) {
    head_norm(ours + ".q_norm", theirs + ".q" + end);
    return head_norm(ours + ".k_norm", theirs + ".k" + end);
  }
  norm_of_each(ours + ".q_norm", theirs + ".q" + end, m_.heads);
  norm_of_each(ours + ".k_norm", theirs + ".k" + end, m_.groups);
}

void GptCook::norm_of_each(const std::string& ours, const std::string& theirs, std::int64_t heads) {
  const std::int64_t d = m_.channels;
  Recipe recipe{ours + ".gain", shape_of(ours + ".gain"), {}, {}, plus_};
  const bool apart = type_ == GptType::stablelm;
  if (!apart) recipe.parts.push_back({.name = theirs + ".weight", .shape = {heads, d}, .flat = true});
  for (std::int64_t i = 0; i < heads; ++i) {
    if (apart) recipe.parts.push_back({theirs + ".norms." + std::to_string(i) + ".weight", {d}});
    turning(recipe.runs, apart ? std::size_t(i) : 0, apart ? 0 : i * d, i * d);
  }
  out_.push_back(std::move(recipe));
}

std::vector<RowRun> GptCook::in_groups() const {
  const std::int64_t d = m_.channels, of_group = m_.heads / m_.groups + 2;
  std::vector<RowRun> runs;
  for (std::int64_t g = 0; g < m_.groups; ++g)
    for (std::int64_t i = 0; i < of_group; ++i) {
      const std::int64_t at = (g * of_group + i) * d;
      if (i + 1 < of_group)
        turning(runs, 0, at, at);
      else
        runs.push_back({0, at, at, d});
    }
  return runs;
}

}  // namespace weft
