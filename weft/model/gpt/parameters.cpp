// What a GPT is made of, from the embedding to the output.
#include "weft/model/gpt/gpt.h"

namespace weft {
namespace {

/// What a further token is guessed by, or all of them.
void add_depth(ParameterList& list, const ModelConfig& c, int depth) {
  const std::string name = "ahead.layers." + std::to_string(depth);
  add_hidden_norm(list, c, name + ".word_norm");
  add_hidden_norm(list, c, name + ".hidden_norm");
  add_matrix(list, name + ".join", {c.hidden, 2 * c.hidden, false}, matrix_init(c, c.hidden, 2 * c.hidden));
  add_block(list, c, name, c.layers + depth);
  add_hidden_norm(list, c, name + ".final_norm");
}

}  // namespace

ParameterList gpt_parameters(const ModelConfig& c) {
  ParameterList list;
  const Init words = random_init(c, c.vocabulary, c.hidden, c.init.embedding_std.value_or(c.init.std));
  list.add("embedding.words", {c.vocabulary, c.hidden}, words);
  if (c.positions == Positions::learned)
    list.add("embedding.positions", {c.max_positions, c.hidden},
             random_init(c, c.max_positions, c.hidden, c.init.std));
  if (c.embedding_norm) add_hidden_norm(list, c, "embedding.norm");
  for (int layer = 0; layer < c.layers; ++layer) add_block(list, c, "layers." + std::to_string(layer), layer);
  add_hidden_norm(list, c, "final_norm");
  for (int depth = 0; depth < c.ahead.layers(); ++depth) add_depth(list, c, depth);
  if (!c.tied_output) list.add("output.words", {c.vocabulary, c.hidden}, words);
  if (c.logits_bias) list.add("output.bias", {c.vocabulary}, constant_init(0));
  return list;
}

}  // namespace weft
