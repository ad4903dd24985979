// What a BERT is made of, from the embedding to the two heads.
#include "weft/model/bert/bert.h"

namespace weft {

ParameterList bert_parameters(const ModelConfig& c) {
  ParameterList list;
  const std::int64_t h = c.hidden;
  const auto table = [&](std::int64_t rows) { return random_init(c, rows, h, c.init.std); };
  const Init words = random_init(c, c.vocabulary, h, c.init.embedding_std.value_or(c.init.std));
  list.add("embedding.words", {c.vocabulary, h}, words);
  if (c.positions == Positions::learned)
    list.add("embedding.positions", {c.max_positions, h}, table(c.max_positions));
  if (c.sentence_order || c.token_types) list.add("embedding.types", {2, h}, table(2));
  for (int layer = 0; layer < c.layers; ++layer) add_block(list, c, "layers." + std::to_string(layer), layer);
  add_norm(list, c, "final_norm", h);
  if (c.sentence_order) {
    add_matrix(list, "pooler", {h, h}, matrix_init(c, h, h));
    add_matrix(list, "sentence_order", {2, h}, matrix_init(c, 2, h));
  }
  add_matrix(list, "transform", {h, h}, matrix_init(c, h, h));
  add_norm(list, c, "transform.norm", h);
  if (!c.tied_output) list.add("output.words", {c.vocabulary, h}, words);
  if (c.output_bias) list.add("output.bias", {c.vocabulary}, constant_init(0));
  return list;
}

}  // namespace weft
