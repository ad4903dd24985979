#include "weft/train/fp8_scales.h"

#include "weft/mesh/samples.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/scaled.h"

namespace weft {

Fp8Scales::Fp8Scales(const std::map<int, Stage>& stages, const ProcessMesh& mesh, Device& device)
    : mesh_(mesh) {
  std::vector<Fp8*> products;
  for (const auto& [number, stage] : stages)
    stage.each_parameter([&](Parameter& weight) {
      if (weight.fp8.wanted()) products.push_back(&weight.fp8);
    });
  if (products.empty()) return;
  rules_ = products.front()->rules;
  rows_ = ops::zeros(device, {std::ssize(products), fp8_operands, ScaleRow::met + rules_.remembers},
                     Dtype::f32, Use::optimizer);
  ops::fill(rows_.slice(2, 0, ScaleRow::met), 1);
  for (std::size_t i = 0; i < products.size(); ++i) {
    names_.push_back(products[i]->name);
    products[i]->scales = rows_.at(0, std::int64_t(i));
  }
}

Tensor Fp8Scales::met() const { return rows_.slice(2, ScaleRow::met, 1); }

void Fp8Scales::begin_step() const {
  if (!empty() && rules_.delayed()) ops::fill(met(), 0);
}

// Gradients are the last of a product's operands, and may be of a type of their own.
void Fp8Scales::follow() const {
  if (empty() || !rules_.delayed()) return;
  const Tensor greatest = ops::contiguous(met());
  mesh_.along(stage_axes).all_reduce(greatest, Reduce::max).wait();
  ops::copy_into(met(), greatest);
  constexpr auto dy = std::int64_t(Fp8Operand::dy);
  const ScaleArgs how{.dtype = rules_.values, .margin = rules_.margin, .of_window = rules_.of_window};
  ops::renew_scales(rows_.slice(1, 0, dy), how);
  ScaleArgs of_grads = how;
  of_grads.dtype = rules_.grads;
  ops::renew_scales(rows_.slice(1, dy, 1), of_grads);
}

std::vector<checkpoint::Named> Fp8Scales::named() const {
  std::vector<checkpoint::Named> out;
  if (empty() || !rules_.delayed()) return out;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    out.push_back(checkpoint::whole(names_[i], rows_.at(0, std::int64_t(i))));
    out.back().pieces.front().where.replica = mesh_.place(stage_axes);
  }
  return out;
}

}  // namespace weft
