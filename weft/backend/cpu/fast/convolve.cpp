// Filters over a few steps: pieces of steps for the threads, whose sums for the weights are kept apart and
// added in order.
#include <algorithm>

#include "weft/backend/cpu/fast/kernels.h"
#include "weft/backend/cpu/fast/lines.h"
#include "weft/backend/cpu/fast/parallel.h"

namespace weft {

using fast::in_parallel;
using fast::InRows;
using fast::Lines;
using fast::OutRows;
using fast::ready;

namespace {

/// Channels of a walk: so many that what several steps read, and weights, stay in the first cache.
constexpr std::int64_t most_channels = 512;

/// x [s, b, g, c] and its like. Where the channels of all groups lie side by side in all of them, they are
/// those of one.
struct Filtered {
  std::int64_t steps, batch, groups, channels;

  Filtered(std::initializer_list<const Tensor*> all) {
    const Tensor& x = **all.begin();
    steps = x.dim(0);
    batch = x.dim(1);
    const bool side_by_side = std::all_of(all.begin(), all.end(), [](const Tensor* one) {
      return one->dim(2) == 1 || one->stride(2) == one->dim(3);
    });
    groups = side_by_side ? 1 : x.dim(2);
    channels = side_by_side ? x.dim(2) * x.dim(3) : x.dim(3);
  }
  std::int64_t columns() const { return groups * channels; }
};

/// Where a walk starts.
struct WalkStart {
  std::int64_t step, sequence, group, channel;
};
std::byte* address(const Tensor& x, const WalkStart& at) {
  const std::int64_t offset = at.step * x.stride(0) + at.sequence * x.stride(1) + at.group * x.stride(2);
  return static_cast<std::byte*>(x.address()) + (offset + at.channel) * size_of(x.dtype());
}
InRows rows_from(const Tensor& x, const WalkStart& at) {
  return {{address(x, at), fast::type_of(x.dtype())}, x.stride(0) * size_of(x.dtype())};
}
OutRows rows_to(const Tensor& y, const WalkStart& at, bool past) {
  return {{address(y, at), fast::type_of(y.dtype()), past}, y.stride(0) * size_of(y.dtype())};
}

/// weight [columns, taps] as [taps, columns].
void turn(float* to, const float* weight, std::int64_t columns, std::int64_t taps) {
  for (std::int64_t column = 0; column < columns; ++column)
    for (std::int64_t j = 0; j < taps; ++j) to[j * columns + column] = weight[column * taps + j];
}

bool ready_for(std::initializer_list<const Tensor*> rows, const Filters& filters) {
  return ready(rows) && ready({&filters.weight}) && filters.weight.contiguous() &&
         (!filters.bias || (ready({&filters.bias}) && filters.bias.contiguous())) &&
         (*rows.begin())->elements() > 0;
}

/// Of both: dweight and dbias += sums.
void turn_back(const ConvolveGrads& grads, const float* sums, std::int64_t columns, std::int64_t taps) {
  auto* dweight = grads.dweight.data<float>();
  for (std::int64_t column = 0; column < columns; ++column)
    for (std::int64_t j = 0; j < taps; ++j) dweight[column * taps + j] += sums[j * columns + column];
  if (!grads.dbias) return;
  auto* dbias = grads.dbias.data<float>();
  for (std::int64_t column = 0; column < columns; ++column) dbias[column] += sums[taps * columns + column];
}
/// What there is of a vector in more dimensions.
Tensor flat(const Tensor& x) { return x ? x.view({x.elements()}) : x; }

/// Steps in at most so many pieces, whatever the number of threads.
struct StepPieces {
  explicit StepPieces(std::int64_t count)
      : steps(count), each(std::max<std::int64_t>(128, (count + 31) / 32)) {}
  std::int64_t count() const { return (steps + each - 1) / each; }
  std::int64_t first(std::int64_t piece) const { return std::min(steps, piece * each); }
  std::int64_t steps, each;
};

}  // namespace

void FastKernels::convolve(const Tensor& y, const Tensor& x, const Filters& filters) {
  if (!ready_for({&y, &x}, filters)) return ReferenceKernels::convolve(y, x, filters);
  const Filtered in({&x, &y});
  const std::int64_t taps = filters.weight.dim(2), size = in.columns() * taps;
  float* room = scratch_.take<float>(2 * size + in.columns());
  turn(room, widened(flat(filters.weight), room + size), in.columns(), taps);
  const float* bias = widened(flat(filters.bias), room + 2 * size);
  const bool past = Lines(y, {&x}).past();
  in_parallel(threads_, in.steps, x.elements(), [&](std::int64_t first, std::int64_t last) {
    if (first == last) return;
    for (std::int64_t line = 0; line < in.batch * in.groups; ++line)
      for (std::int64_t channel = 0; channel < in.channels; channel += most_channels) {
        const WalkStart at = {first, line / in.groups, line % in.groups, channel};
        const std::int64_t column = at.group * in.channels + channel;
        loops_.filter.forward(rows_to(y, at, past),
                              {rows_from(x, at), room + column, bias == nullptr ? nullptr : bias + column,
                               in.columns(), taps, last - first, std::min(first, taps - 1), 0},
                              std::min(in.channels - channel, most_channels));
      }
    loops_.elementwise.finish();
  });
}

void FastKernels::convolve_backward(const ConvolveGrads& grads, const Tensor& dy, const Tensor& x,
                                    const Filters& filters) {
  if (!ready_for({&grads.dx, &dy, &x}, filters) || !grads.dweight.contiguous() ||
      (filters.bias && !grads.dbias.contiguous()))
    return ReferenceKernels::convolve_backward(grads, dy, x, filters);
  const Filtered in({&x, &dy, &grads.dx});
  const StepPieces pieces(in.steps);
  const std::int64_t taps = filters.weight.dim(2), size = in.columns() * taps;
  const std::int64_t floats = fast::filter_room(taps, std::min(in.channels, most_channels));
  // Of weights and, where there is a bias, of it, behind them.
  const std::int64_t each = size + (filters.bias ? in.columns() : 0);
  float* room = scratch_.take<float>(2 * size + in.columns() + pieces.count() * each + threads_ * floats);
  turn(room, widened(flat(filters.weight), room + size), in.columns(), taps);
  const float* bias = widened(flat(filters.bias), room + 2 * size);
  float *const sums = room + 2 * size + in.columns(), *const slopes = sums + pieces.count() * each;
  std::fill_n(sums, pieces.count() * each, 0.0F);
  const std::int64_t blocks = (in.channels + most_channels - 1) / most_channels;
  const bool past = Lines(grads.dx, {&x, &dy}).past();
  const auto walk = [&](std::int64_t piece, const WalkStart& at) {
    const std::int64_t end = pieces.first(piece + 1), column = at.group * in.channels + at.channel;
    float* const mine = sums + piece * each + column;
    loops_.filter.backward(
        {rows_to(grads.dx, at, past), rows_from(dy, at), mine, mine + size, slopes + fast::me() * floats},
        {rows_from(x, at), room + column, bias == nullptr ? nullptr : bias + column, in.columns(), taps,
         end - at.step, std::min(at.step, taps - 1), std::min(in.steps - end, taps - 1)},
        std::min(in.channels - at.channel, most_channels));
  };
  const std::int64_t walks = in.groups * blocks;
  in_parallel(threads_, pieces.count() * walks, x.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      for (std::int64_t sequence = 0; sequence < in.batch; ++sequence)
        walk(i / walks, {pieces.first(i / walks), sequence, i % walks / blocks, i % blocks * most_channels});
    loops_.elementwise.finish();
  });
  for (std::int64_t p = 1; p < pieces.count(); ++p)
    loops_.elementwise.add_scaled({sums, fast::Type::f32, false}, {sums + p * each, fast::Type::f32}, 1,
                                  each);
  turn_back(grads, sums, in.columns(), taps);
}

}  // namespace weft
