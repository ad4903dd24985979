// Rows stand there as here: queries, keys and values by key groups, gates above what they gate.
#include "weft/exchange/megatron/weights.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/exchange/megatron/keys.h"
#include "weft/model/kinds.h"

namespace weft::exchange::megatron {
namespace {

const Tensors& tensors_of(const Checkpoint& checkpoint, Part part) {
  if (part == Part::first_moments) return checkpoint.first_moments();
  return part == Part::second_moments ? checkpoint.second_moments() : checkpoint.model();
}

std::string_view ending_of(Part part) {
  if (part == Part::first_moments) return ".m";
  return part == Part::second_moments ? ".v" : "";
}

std::string in_capitals(std::string word) {
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return char(std::toupper(c)); });
  return word;
}

/// Makes the recipes of one part of a checkpoint.
class Cook {
 public:
  Cook(const ModelConfig& model, const Checkpoint& checkpoint, Part part)
      : model_(model),
        tensors_(tensors_of(checkpoint, part)),
        part_(part),
        where_(checkpoint.iteration().directory.string()) {}

  std::vector<Recipe> all() {
    std::vector<Recipe> out;
    std::set<std::string> used;
    const ParameterList list = kind_of(model_).parameters(model_);
    for (const WholeParameter& ours : list.all())
      if (auto recipe = recipe_of(ours)) {
        used.insert(recipe->parts.front().name);
        out.push_back(*std::move(recipe));
      }
    for (const auto& [name, tensor] : tensors_.all())
      if (!used.contains(name))
        fail(Kind::data, where_, ": holds ", name, ", which is no part of the ", in_capitals(model_.kind),
             " that its args describe");
    return out;
  }

 private:
  /// Ours, made of the first of its names that is there. What no gradient moves has no moments.
  std::optional<Recipe> recipe_of(const WholeParameter& ours) const {
    const std::vector<std::string> names = their_names(ours.name, model_);
    const auto there =
        std::ranges::find_if(names, [&](const std::string& n) { return tensors_.find(n) != nullptr; });
    if (there == names.end() && part_ != Part::weights) return std::nullopt;
    if (there == names.end())
      fail(Kind::data, where_, ": lacks ", names.empty() ? ours.name : join(names, " or "),
           ", which its args ask for");
    const Shape& found = tensors_.find(*there)->shape;
    if (found != ours.shape)
      fail(Kind::data, where_, ": ", *there, " is ", found, ", its args ask for ", ours.shape);
    return Recipe{ours.name + std::string(ending_of(part_)),
                  ours.shape,
                  {Theirs{.name = *there, .shape = ours.shape}},
                  {{0, 0, 0, ours.shape[0]}}};
  }

  const ModelConfig& model_;
  const Tensors& tensors_;
  Part part_;
  std::string where_;
};

}  // namespace

Weights::Weights(std::shared_ptr<const Checkpoint> checkpoint, const ModelConfig& model, Part part)
    : TheirWeights(checkpoint->iteration().directory.string(), Cook(model, *checkpoint, part).all()),
      checkpoint_(std::move(checkpoint)),
      part_(part) {}

// What was trained in few bits has masters, which are more than what was multiplied.
const TheirTensor& Weights::tensor(const Theirs& theirs) const {
  const TheirTensor& multiplied = *tensors_of(*checkpoint_, part_).find(theirs.name);
  if (part_ != Part::weights) return multiplied;
  const TheirTensor* master = checkpoint_->masters().find(theirs.name);
  return master != nullptr && master->shape == multiplied.shape ? *master : multiplied;
}

Dtype Weights::dtype_of_part(const Theirs& theirs) const { return tensor(theirs).dtype; }

void Weights::read_row(const Theirs& theirs, std::int64_t row, std::int64_t column,
                       std::span<float> to) const {
  megatron::read(tensor(theirs), row, column, to);
}

}  // namespace weft::exchange::megatron
