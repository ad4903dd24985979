#include "weft/exchange/gguf/layout.h"

#include <algorithm>
#include <charconv>

#include "weft/base/error.h"

namespace weft::exchange::gguf {
namespace {

/// A name without its numbers: of "model.layers.3.mlp.experts.1.up_proj.weight" layer 3, expert 1.
struct Apart {
  int layer = -1, expert = -1;
  std::string rest;
};

int leading_number(std::string_view text) {
  int out = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), out);
  return end.ec == std::errc() && end.ptr < text.data() + text.size() && *end.ptr == '.' ? out : -1;
}

Apart apart(const Architecture& architecture, const std::string& name) {
  Apart out{.rest = name};
  if (!name.starts_with(architecture.layers)) return out;
  out.layer = leading_number(std::string_view(name).substr(architecture.layers.size()));
  out.rest = name.substr(name.find('.', architecture.layers.size()) + 1);
  constexpr std::string_view before = "experts.";
  const auto at = out.rest.find(before);
  if (at == std::string::npos) return out;
  const auto number = at + before.size();
  out.expert = leading_number(std::string_view(out.rest).substr(number));
  if (out.expert >= 0) out.rest.replace(number, out.rest.find('.', number) - number, "*");
  return out;
}

const TensorName* find_name(const Architecture& architecture, const std::string& theirs) {
  for (const auto& list : architecture.names)
    for (const TensorName& one : list)
      if (one.theirs == theirs) return &one;
  return nullptr;
}

class Planner {
 public:
  Planner(const Architecture& architecture, const ModelConfig& model)
      : architecture_(architecture), model_(model) {}

  void add(const Recipe& recipe, std::size_t part) {
    const Theirs& theirs = recipe.parts[part];
    const Apart name = apart(architecture_, theirs.name);
    const TensorName* known = find_name(architecture_, name.rest);
    if (known == nullptr || theirs.slab)
      fail(Kind::usage, "llama.cpp's ", architecture_.name, " has no place for ", theirs.name,
           ", which the model has; Hugging Face's form holds it");
    Placed placed{.ours = std::string(known->ours), .order = known->order, .plus = float(known->plus)};
    if (name.layer >= 0) placed.ours = text("blk.", name.layer, ".", known->ours);
    placed.heads = known->order == Order::keys ? model_.groups : model_.heads;
    const bool turned = known->order == Order::turned;
    const Shape& shape = theirs.shape;
    placed.columns = shape.rank() < 2 ? 1 : turned ? shape[0] : shape[1];
    placed.rows = shape.rank() < 2 || !turned ? shape[0] : shape[1];
    const auto [at, fresh] = places_.emplace(placed.ours, out_.size());
    if (fresh) out_.push_back({placed.ours, sizes_of(shape, known->order), {}});
    FileTensor& tensor = out_[at->second];
    placed.slab = name.expert >= 0 ? name.expert : 0;
    tensor.slabs.push_back({&recipe, part, std::move(placed)});
    if (name.expert >= 0) stacked_.insert(at->second);
  }

  std::vector<FileTensor> all() {
    for (const std::size_t i : stacked_) {
      std::ranges::sort(out_[i].slabs, {}, [](const Source& one) { return one.placed.slab; });
      out_[i].sizes.push_back(std::ssize(out_[i].slabs));
    }
    return std::move(out_);
  }

 private:
  static std::vector<std::int64_t> sizes_of(const Shape& shape, Order order) {
    std::vector<std::int64_t> out(shape.all().rbegin(), shape.all().rend());
    if (order == Order::turned) std::ranges::reverse(out);
    return out;
  }

  const Architecture& architecture_;
  const ModelConfig& model_;
  std::map<std::string, std::size_t> places_;
  std::set<std::size_t> stacked_;
  std::vector<FileTensor> out_;
};

}  // namespace

bool FileTensor::always_f32() const {
  if (sizes.size() < 2 || !name.ends_with(".weight")) return true;
  return name.ends_with("_norm.weight") || name.ends_with("ffn_gate_inp.weight") ||
         name.ends_with("ffn_gate_inp_shexp.weight") || name == "position_embd.weight";
}

std::vector<FileTensor> lay_out(const Architecture& architecture, const ModelConfig& model,
                                const std::vector<Recipe>& recipes) {
  Planner planner(architecture, model);
  for (const Recipe& recipe : recipes)
    for (std::size_t part = 0; part < recipe.parts.size(); ++part) planner.add(recipe, part);
  return planner.all();
}

std::int64_t row_in_file(const Placed& placed, std::int64_t row) {
  const std::int64_t first = placed.slab * placed.rows;
  if (placed.order != Order::queries && placed.order != Order::keys) return first + row;
  const std::int64_t width = placed.rows / placed.heads, head = row / width, in_head = row % width;
  const std::int64_t half = in_head / (width / 2), pair = in_head % (width / 2);
  return first + head * width + 2 * pair + half;
}

}  // namespace weft::exchange::gguf
