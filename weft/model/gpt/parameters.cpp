// What a GPT is made of, from the embedding to the output.
#include "weft/model/gpt/gpt.h"

namespace weft {
namespace {

/// W [out, in] and a bias, if there is one.
struct Matrix {
  std::int64_t out, in;
  bool biased;
};

void add_matrix(ParameterList& list, const std::string& name, const Matrix& m, const Init& init) {
  list.add(name + ".weight", {m.out, m.in}, init);
  if (m.biased) list.add(name + ".bias", {m.out}, constant_init(0));
}

void add_layer(ParameterList& list, const ModelConfig& c, const std::string& name) {
  const std::int64_t h = c.hidden, queries = c.heads * c.channels;
  const std::int64_t qkv = (c.heads + 2 * c.groups) * c.channels;
  const std::int64_t up = c.gated ? 2 * c.ffn_hidden : c.ffn_hidden;
  const auto inner = [&](std::int64_t rows) { return random_init(c, rows, h, c.init.std); };
  add_norm(list, c, name + ".attention_norm", h);
  add_matrix(list, name + ".attention.qkv", {qkv, h, c.qkv_bias}, inner(qkv));
  if (c.qk_norm) {
    add_norm(list, c, name + ".attention.q_norm", c.channels);
    add_norm(list, c, name + ".attention.k_norm", c.channels);
  }
  add_matrix(list, name + ".attention.project", {h, queries, c.linear_bias}, output_init(c, h, queries));
  add_norm(list, c, name + ".mlp_norm", h);
  add_matrix(list, name + ".mlp.up", {up, h, c.linear_bias}, inner(up));
  add_matrix(list, name + ".mlp.down", {h, c.ffn_hidden, c.linear_bias}, output_init(c, h, c.ffn_hidden));
}

}  // namespace

ParameterList gpt_parameters(const ModelConfig& c) {
  ParameterList list;
  const Init words = random_init(c, c.vocabulary, c.hidden, c.init.embedding_std.value_or(c.init.std));
  list.add("embedding.words", {c.vocabulary, c.hidden}, words);
  if (c.positions == Positions::learned)
    list.add("embedding.positions", {c.max_positions, c.hidden},
             random_init(c, c.max_positions, c.hidden, c.init.std));
  for (int layer = 0; layer < c.layers; ++layer) add_layer(list, c, "layers." + std::to_string(layer));
  add_norm(list, c, "final_norm", c.hidden);
  if (!c.tied_output) list.add("output.words", {c.vocabulary, c.hidden}, words);
  return list;
}

}  // namespace weft
