#include "weft/train/step_numbers.h"

#include "weft/mesh/samples.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/reduce.h"
#include "weft/tensor/host.h"

namespace weft {

StepNumbers::StepNumbers(Device& device, const ProcessMesh& mesh, std::size_t losses)
    : mesh_(mesh),
      losses_(std::int64_t(losses)),
      sums_(ops::zeros(device, {losses_ + norm_parts + 1, exact_digits}, Dtype::f64)) {}

void StepNumbers::add(std::size_t loss, const Tensor& terms, float share) {
  const Tensor digits = sums_.slice(0, std::int64_t(loss), 1).view({exact_digits});
  if (share == 1) return ops::sum_exact_into(digits, terms);
  const Tensor scaled = empty_like(terms);
  ops::copy_into(scaled, terms);
  ops::scale_in_place(scaled, share);
  ops::sum_exact_into(digits, scaled);
}

void StepNumbers::count_tokens(double here) { ops::fill(single(0, 1), here); }
void StepNumbers::count_samples(double here) { ops::fill(single(1, 1), here); }
void StepNumbers::count_samples(const Tensor& mask) { ops::copy_into(single(1, 1), ops::sum(mask)); }

void StepNumbers::everywhere() {
  const Tensor losses = sums_.slice(0, 0, losses_);
  mesh_.along(data_axes(View::dense)).all_reduce(losses, Reduce::sum).wait();
  mesh_.along(Axis::pp).all_reduce(losses, Reduce::sum).wait();
  mesh_.along(sample_axes).all_reduce(single(0, first_zeros), Reduce::sum).wait();
}

void StepNumbers::read() { weft::read(sums_, std::span(host_).first(std::size_t(sums_.elements()))); }

}  // namespace weft
