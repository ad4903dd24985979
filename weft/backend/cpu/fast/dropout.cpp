// Dropout by address, alone and at the end of half a block.
#include <algorithm>

#include "weft/backend/cpu/fast/drop_rows.h"
#include "weft/backend/cpu/fast/kernels.h"
#include "weft/backend/cpu/fast/lines.h"
#include "weft/backend/cpu/fast/parallel.h"

namespace weft {

using fast::DropRows;
using fast::in_parallel;
using fast::Lines;
using fast::ready;

namespace fast {

DropRows::DropRows(const DropoutArgs& how, Scratch& room)
    : below_(share(double(how.probability))),
      scale_(float(1 / (1 - double(how.probability)))),
      width_(how.width),
      channel_(how.channel) {
  if (below_ == 0) return;
  const std::span<const std::int64_t> samples = how.samples.as<std::int64_t>();
  Draw* draws = room.take<Draw>(std::int64_t(samples.size()));
  for (std::size_t b = 0; b < samples.size(); ++b) {
    Address at = how.at;
    at.sample = std::uint64_t(samples[b]);
    draws[b] = Draw(at);
  }
  draws_ = {draws, samples.size()};
  positions_ = how.positions.as<std::int32_t>();
}

DropRow DropRows::row(std::int64_t line) const {
  if (below_ == 0) return {{}, {}, 0, 0, 1};
  const auto batch = std::int64_t(draws_.size());
  const Draw& draw = draws_[std::size_t(line % batch)];
  const std::int64_t position = positions_[std::size_t(line / batch)];
  return {{draw.key()[0], draw.key()[1]},
          {draw.upper()[0], draw.upper()[1]},
          std::uint64_t(position * width_ + channel_),
          below_,
          scale_};
}

}  // namespace fast

void FastKernels::dropout(const Tensor& y, const Tensor& x, const DropoutArgs& how) {
  if (!ready({&y, &x})) return ReferenceKernels::dropout(y, x, how);
  const Lines to(y, {&x});
  const Lines from(x);
  const DropRows drops(how, few_);
  in_parallel(threads_, to.count(), to.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      loops_.dropout.dropout(to.out(i), from.in(i), drops.row(i), to.width());
    loops_.elementwise.finish();
  });
}

void FastKernels::bias_dropout_add(const Tensor& out, const Tensor& x, const Tensor& bias,
                                   const Tensor& residual, const DropoutArgs& how) {
  if (!ready({&out, &x, &bias, &residual}))
    return ReferenceKernels::bias_dropout_add(out, x, bias, residual, how);
  const Lines to(out, {&x, &residual});
  const Lines from(x);
  const Lines old(residual);
  const DropRows drops(how, few_);
  const float* more =
      arranged(bias, fast::walk_of(to.type(), from.type(), old.type()), scratch_.take<float>(2 * to.width()));
  in_parallel(threads_, to.count(), to.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      loops_.dropout.bias_dropout_add(to.out(i), from.in(i), more, old.in(i), drops.row(i), to.width());
    loops_.elementwise.finish();
  });
}

}  // namespace weft
