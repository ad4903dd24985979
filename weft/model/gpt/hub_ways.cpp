// Other names of tensors, and tensors that hold several of those that we know.
#include "weft/model/gpt/hub.h"

namespace weft {
namespace {

constexpr std::string_view trunk = "backbone.", end = ".weight";

/// All experts' matrices of the same kind in one tensor, as transformers has them in memory. `theirs` is one
/// expert's, whose name has a number behind `experts`; else nothing comes back.
std::optional<Theirs> stacked(const ModelConfig& m, const Theirs& theirs, std::string_view experts) {
  const std::size_t at = theirs.name.find(experts);
  if (theirs.slab || at == std::string::npos) return std::nullopt;  // or it is in one already
  const std::size_t number = at + experts.size(), dot = theirs.name.find('.', number);
  Theirs slab = theirs;
  slab.slab = std::stoll(theirs.name.substr(number, dot - number));
  slab.shape = {m.experts.count, theirs.shape[0], theirs.shape[1]};
  slab.name =
      theirs.name.substr(0, number) + theirs.name.substr(dot + 1, theirs.name.size() - dot - 1 - end.size());
  return slab;
}

// As published, and as transformers saves it, all begins with "backbone." and experts are apart. In memory
// transformers calls it "model", and has all of a layer's experts in two tensors, which others write as it
// is.
std::vector<Theirs> ways_of_nemotron(const ModelConfig& m, const Theirs& theirs) {
  std::vector<Theirs> out;
  const auto with_trunk = [&](const Theirs& as) {
    out.push_back(as);
    if (!as.name.starts_with(trunk)) return;
    out.push_back(as);
    out.back().name.replace(0, trunk.size(), "model.");
  };
  with_trunk(theirs);
  if (const auto slab = stacked(m, theirs, ".mixer.experts.")) with_trunk(*slab);
  return out;
}

/// Gates stand above what they let through, as Qwen 3.5 is published.
std::vector<Theirs> ways_of_experts(const ModelConfig& m, const Theirs& theirs) {
  std::optional<Theirs> slab = stacked(m, theirs, ".mlp.experts.");
  if (!slab) return {};
  for (const std::string_view half : {".gate_proj", ".up_proj"}) {
    if (!slab->name.ends_with(half)) continue;
    slab->name.replace(slab->name.size() - half.size(), half.size(), ".gate_up_proj");
    slab->shape[1] *= 2;
    slab->first_row = half == ".up_proj" ? theirs.shape[0] : 0;
    break;
  }
  return {*slab};
}

}  // namespace

std::vector<Theirs> other_ways_of_gpt(const ModelConfig& m, const Theirs& theirs) {
  return m.hybrid.on() ? ways_of_nemotron(m, theirs) : ways_of_experts(m, theirs);
}

// Transformers 5 begins with "model.", older versions with "language_model.".
std::string text_name_of_gpt(std::string_view name) {
  for (const auto& [around, alone] :
       {std::pair{"model.language_model.", "model."}, std::pair{"language_model.model.", "model."},
        std::pair{"language_model.lm_head.", "lm_head."}, std::pair{"lm_head.", "lm_head."},
        std::pair{"mtp.", "mtp."}})
    if (name.starts_with(around)) return alone + std::string(name.substr(std::string_view(around).size()));
  return "";
}

}  // namespace weft
