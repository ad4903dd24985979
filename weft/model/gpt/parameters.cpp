// What a GPT is made of, from the embedding to the output.
#include "weft/model/gpt/gpt.h"

namespace weft {
ParameterList gpt_parameters(const ModelConfig& c) {
  ParameterList list;
  const Init words = random_init(c, c.vocabulary, c.hidden, c.init.embedding_std.value_or(c.init.std));
  list.add("embedding.words", {c.vocabulary, c.hidden}, words);
  if (c.positions == Positions::learned)
    list.add("embedding.positions", {c.max_positions, c.hidden},
             random_init(c, c.max_positions, c.hidden, c.init.std));
  for (int layer = 0; layer < c.layers; ++layer) add_block(list, c, "layers." + std::to_string(layer));
  add_norm(list, c, "final_norm", c.hidden);
  if (!c.tied_output) list.add("output.words", {c.vocabulary, c.hidden}, words);
  return list;
}

}  // namespace weft
