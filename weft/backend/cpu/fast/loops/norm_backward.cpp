// The derivative of layer norm and RMS norm: of several rows together, so that gain, dgain and dbias, which
// are f32 and as long as a row, come from the second-level cache once for all of them.
#include "weft/backend/cpu/fast/loops/norm.h"
#include "weft/backend/cpu/fast/math.h"
#include "weft/backend/cpu/fast/wide.h"

namespace weft::fast::WEFT_ISA {
namespace {

/// Each row keeps eight running sums, and of registers there are 32 or 16.
inline constexpr int rows_at_once = width == 16 ? 2 : 1;

template <int rows>
struct Operands {
  In dy[rows], x[rows], residual[rows];
  // To the rows that come next.
  std::int64_t dy_step, x_step;
  NormRow stats[rows];
  const float* gain;

  template <class At>
  [[gnu::always_inline]] F centered(int r, At at) const {
    return load(x[r], at) - all(stats[r].mean);
  }
};

/// The means of g and of g xhat.
template <int rows>
struct Means {
  float g[rows], gx[rows];
};

/// And dgain and dbias on the way.
template <Walk walk, int rows>
[[gnu::always_inline]] inline Means<rows> means_of(const Operands<rows>& of, float* dgain, float* dbias,
                                                   std::int64_t n) {
  Sums g[rows];
  Sums gx[rows];
  const auto add = [&](auto at, int i) __attribute__((always_inline)) {
    const F gain = along(of.gain, at);
    F to_gain = dgain ? along(dgain, at) : all(0.0F);
    F to_bias = dbias ? along(dbias, at) : all(0.0F);
    for (int r = 0; r < rows; ++r) {
      ask_later(of.dy[r], at, of.dy_step);
      ask_later(of.x[r], at, of.x_step);
      const F dy = load(of.dy[r], at);
      const F xhat = of.centered(r, at) * all(of.stats[r].rstd);
      const F weighted = dy * gain;  // 0 beyond a tail
      g[r].of[i] = g[r].of[i] + weighted;
      gx[r].of[i] = fused(weighted, xhat, gx[r].of[i]);
      to_gain = fused(dy, xhat, to_gain);
      to_bias = to_bias + dy;
    }
    if (dgain) keep_along(dgain, at, to_gain);
    if (dbias) keep_along(dbias, at, to_bias);
  };
  each_of_four(walk, n, add);
  Means<rows> means;
  for (int r = 0; r < rows; ++r) {
    means.g[r] = g[r].total() / float(n);
    means.gx[r] = gx[r].total() / float(n);
  }
  return means;
}

/// What the means take from the gradient of a row: slope times what is centered, and an offset.
struct Line {
  float slope, offset;
};
template <int rows>
[[gnu::always_inline]] inline Line taken_by(NormKind kind, const Means<rows>& means, int r, float rstd) {
  return {-rstd * rstd * means.gx[r], kind == NormKind::rms ? 0.0F : -rstd * means.g[r]};
}

template <Walk walk, int rows>
[[gnu::noinline, gnu::flatten]] void backward_group(const NormBackward& lines, std::int64_t first,
                                                    const float* gain, float* dgain, float* dbias,
                                                    const NormShape& shape) {
  const bool adds = lines.residual.first.from != nullptr;
  Operands<rows> of;
  Outs<rows> dx;
  of.gain = gain;
  of.dy_step = rows * lines.dy.step;
  of.x_step = rows * lines.x.step;
  for (int r = 0; r < rows; ++r) {
    of.dy[r] = settled<walk>(row_of(lines.dy, first + r));
    of.x[r] = settled<walk>(row_of(lines.x, first + r));
    of.stats[r] = {lines.mean ? lines.mean[first + r] : 0.0F, lines.rstd[first + r]};
    dx.of[r] = settled<walk>(row_of(lines.dx, first + r));
    if (adds) of.residual[r] = settled<walk>(row_of(lines.residual, first + r));
  }
  const Means<rows> means = means_of<walk>(of, dgain, dbias, shape.n);
  Line taking[rows];
  for (int r = 0; r < rows; ++r) taking[r] = taken_by(shape.kind, means, r, of.stats[r].rstd);
  map(
      dx, walk, shape.n, [&](auto at) __attribute__((always_inline)) {
        const F factor = along(gain, at);
        Values<rows, Rough> out;
        for (int r = 0; r < rows; ++r) {
          const F taken = fused(of.centered(r, at), all(taking[r].slope), all(taking[r].offset));
          F d = fused(load(of.dy[r], at) * factor, all(of.stats[r].rstd), taken);
          if (adds) d = d + load(Coming{of.residual[r]}, at);
          out.of[r] = {d};
        }
        return out;
      });
}

template <Walk walk>
void backward_as(const NormBackward& rows, const float* gain, float* dgain, float* dbias,
                 const NormShape& shape) {
  std::int64_t i = 0;
  for (; i + rows_at_once <= rows.count; i += rows_at_once)
    backward_group<walk, rows_at_once>(rows, i, gain, dgain, dbias, shape);
  if constexpr (rows_at_once > 1)
    for (; i < rows.count; ++i) backward_group<walk, 1>(rows, i, gain, dgain, dbias, shape);
}

}  // namespace

void norm_backward(const NormBackward& rows, const float* gain, float* dgain, float* dbias,
                   const NormShape& shape) {
  const Type dx = rows.dx.first.type;
  const In residual = rows.residual.first;
  const Walk walk = walk_of(dx, rows.dy.first.type, residual.from ? residual.type : dx, rows.x.first.type);
  if (walk == Walk::bf16) return backward_as<Walk::bf16>(rows, gain, dgain, dbias, shape);
  if (walk == Walk::f32) return backward_as<Walk::f32>(rows, gain, dgain, dbias, shape);
  backward_as<Walk::mixed>(rows, gain, dgain, dbias, shape);
}

}  // namespace weft::fast::WEFT_ISA
