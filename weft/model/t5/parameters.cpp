// What a T5 is made of, from the embedding that both stacks share to the output.
#include "weft/model/t5/t5.h"

namespace weft {
namespace {

/// Queries of one stream, keys and values of the other.
void add_cross(ParameterList& list, const ModelConfig& c, const std::string& name) {
  const std::int64_t h = c.hidden, queries = c.heads * c.channels;
  add_norm(list, c, name + ".cross_norm", h);
  add_matrix(list, name + ".cross.query", {queries, h, c.qkv_bias}, matrix_init(c, queries, h));
  add_matrix(list, name + ".cross.key_value", {2 * queries, h, c.qkv_bias}, matrix_init(c, 2 * queries, h));
  add_matrix(list, name + ".cross.project", {h, queries, c.linear_bias}, output_init(c, h, queries));
}

void add_biases(ParameterList& list, const ModelConfig& c, const std::string& name) {
  if (c.positions == Positions::relative)
    list.add(name, {c.relative.buckets, c.heads}, random_init(c, c.relative.buckets, c.heads, c.init.std));
}

}  // namespace

ParameterList t5_parameters(const ModelConfig& config) {
  ParameterList list;
  ModelConfig c = config;
  c.layers = config.decoder_layers;  // both stacks' outputs begin as the decoder's
  const Init words = random_init(c, c.vocabulary, c.hidden, c.init.embedding_std.value_or(c.init.std));
  list.add("embedding.words", {c.vocabulary, c.hidden}, words);
  if (c.positions == Positions::learned)
    list.add("embedding.positions", {c.max_positions, c.hidden},
             random_init(c, c.max_positions, c.hidden, c.init.std));
  add_biases(list, c, "encoder.distances");
  for (int layer = 0; layer < config.layers; ++layer)
    add_block(list, c, "encoder.layers." + std::to_string(layer), layer);
  add_norm(list, c, "encoder.final_norm", c.hidden);
  add_biases(list, c, "decoder.distances");
  for (int layer = 0; layer < config.decoder_layers; ++layer) {
    const std::string name = "decoder.layers." + std::to_string(layer);
    add_block(list, c, name, layer);
    add_cross(list, c, name);
  }
  add_norm(list, c, "decoder.final_norm", c.hidden);
  if (!c.tied_output)
    list.add("output.words", {c.vocabulary, c.hidden}, words);
  else if (c.output_bias)
    list.add("output.bias", {c.vocabulary}, constant_init(0));
  return list;
}

}  // namespace weft
