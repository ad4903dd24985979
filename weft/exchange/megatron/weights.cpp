// Rows stand there as here: queries, keys and values by key groups, gates above what they gate. A vocabulary
// is padded, and what stands behind its words is passed over.
#include "weft/exchange/megatron/weights.h"

#include <set>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/exchange/megatron/keys.h"
#include "weft/model/kinds.h"

namespace weft::exchange::megatron {
namespace {

bool is_of_words(const std::string& ours) { return ours == "embedding.words" || ours == "output.words"; }

/// Ours, made of the first of its names that is there.
Recipe recipe_of(const WholeParameter& ours, const ModelConfig& model, const Checkpoint& checkpoint) {
  const std::string where = checkpoint.iteration().directory.string();
  const std::vector<std::string> names = their_names(ours.name, model);
  const TheirTensor* found = nullptr;
  std::string name;
  for (const std::string& one : names)
    if (found == nullptr && (found = checkpoint.model().find(one)) != nullptr) name = one;
  if (found == nullptr)
    fail(Kind::data, where, ": lacks ", names.empty() ? ours.name : join(names, " or "),
         ", which its args ask for");
  Shape shape = ours.shape;
  if (is_of_words(ours.name) && found->shape.rank() == 2 && found->shape[0] > shape[0])
    shape = {found->shape[0], shape[1]};
  if (found->shape != shape)
    fail(Kind::data, where, ": ", name, " is ", found->shape, ", its args ask for ", shape);
  return {ours.name, ours.shape, {Theirs{.name = name, .shape = shape}}, {{0, 0, 0, ours.shape[0]}}};
}

std::vector<Recipe> recipes_of(const ModelConfig& model, const Checkpoint& checkpoint) {
  std::vector<Recipe> out;
  std::set<std::string> used;
  for (const WholeParameter& ours : kind_of(model).parameters(model).all()) {
    out.push_back(recipe_of(ours, model, checkpoint));
    used.insert(out.back().parts.front().name);
  }
  for (const auto& [name, tensor] : checkpoint.model().all())
    if (!used.contains(name))
      fail(Kind::data, checkpoint.iteration().directory.string(), ": holds ", name,
           ", which is no part of the GPT that its args describe");
  return out;
}

}  // namespace

Weights::Weights(std::shared_ptr<const Checkpoint> checkpoint, const ModelConfig& model)
    : TheirWeights(checkpoint->iteration().directory.string(), recipes_of(model, *checkpoint)),
      checkpoint_(std::move(checkpoint)) {}

// What was trained in few bits has masters, which are more than what was multiplied.
const TheirTensor& Weights::tensor(const Theirs& theirs) const {
  const TheirTensor& multiplied = *checkpoint_->model().find(theirs.name);
  const TheirTensor* master = checkpoint_->masters().find(theirs.name);
  return master != nullptr && master->shape == multiplied.shape ? *master : multiplied;
}

Dtype Weights::dtype_of_part(const Theirs& theirs) const { return tensor(theirs).dtype; }

void Weights::read_row(const Theirs& theirs, std::int64_t row, std::int64_t column,
                       std::span<float> to) const {
  megatron::read(tensor(theirs), row, column, to);
}

}  // namespace weft::exchange::megatron
