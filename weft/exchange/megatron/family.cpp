#include "weft/exchange/megatron/family.h"

#include <algorithm>
#include <utility>

#include "weft/base/error.h"

namespace weft::exchange::megatron {

std::string_view name_of(Family family) {
  switch (family) {
    case Family::gpt:
      return "gpt";
    case Family::bert:
      return "bert";
    case Family::t5:
      break;
  }
  return "t5";
}

// Every layer of a T5's decoder looks at its encoder, and a BERT has no decoder.
Family family_of(const Tensors& model) {
  const auto any = [&](std::string_view part) {
    return std::ranges::any_of(model.all(),
                               [&](const auto& one) { return one.first.find(part) != std::string::npos; });
  };
  if (any(".cross_attention.")) return Family::t5;
  return any("encoder.layers.") ? Family::bert : Family::gpt;
}

void drop_second_names(Tensors& tensors, const std::string& who) {
  const std::pair<std::string_view, std::string_view> names[] = {
      {"lm_head.", "output_layer.weight"},
      {"lm_head.", "output_layer.bias"},
      {"embedding.", "position_embeddings.weight"}};
  for (const auto& [owner, name] : names) {
    const std::string second(name), first = std::string(owner) + second;
    const TheirTensor *one = tensors.find(first), *other = tensors.find(second);
    if (other == nullptr) continue;
    if (one == nullptr) {
      tensors.rename(second, first);
      continue;
    }
    if (!same(*one, *other))
      fail(Kind::data, who, ": ", second, " is not ", first, ", and a T5's are one and the same");
    tensors.drop(second);
  }
}

}  // namespace weft::exchange::megatron
