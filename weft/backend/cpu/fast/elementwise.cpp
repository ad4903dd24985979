// Element by element: fills, copies, sums, products, and what is done with rows and a vector.
#include <algorithm>
#include <cstring>

#include "weft/backend/cpu/fast/kernels.h"
#include "weft/backend/cpu/fast/lines.h"
#include "weft/backend/cpu/fast/parallel.h"

namespace weft {

using fast::in_parallel;
using fast::Lines;
using fast::ready;
using fast::Together;

void FastKernels::fill(const Tensor& out, double value) {
  // Sums in f64 are set to zero in every step: without the reference's row.
  if (out.dtype() == Dtype::f64 && out.contiguous()) {
    std::fill_n(out.data<double>(), out.elements(), value);
    return;
  }
  // Moments of 8 bits are many: without rows of doubles.
  if (value == 0 && size_of(out.dtype()) == 1 && out.contiguous()) {
    std::memset(out.address(), 0, std::size_t(out.bytes()));
    return;
  }
  if (!ready({&out})) return ReferenceKernels::fill(out, value);
  const Together walk({&out});
  in_parallel(threads_, walk.pieces(), walk.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      loops_.elementwise.fill(walk.out(i), float(value), walk.count(i));
    loops_.elementwise.finish();
  });
}

void FastKernels::copy(const Tensor& out, const Tensor& in) {
  const bool same = out.dtype() == in.dtype();
  if (!fast::in_lines({&out, &in}) || !(same || fast::all_floats({&out, &in})))
    return ReferenceKernels::copy(out, in);
  const Together walk({&out, &in});
  const std::int64_t size = size_of(out.dtype());
  in_parallel(threads_, walk.pieces(), walk.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t n = walk.count(i);
      // As they are: a NaN keeps its bits.
      if (same && (!walk.past() || n * size % 4 != 0))
        std::memcpy(walk.at(0, i), walk.at(1, i), std::size_t(n * size));
      else if (same)
        loops_.elementwise.copy({walk.at(0, i), fast::Type::f32, true}, {walk.at(1, i), fast::Type::f32},
                                n * size / 4);
      else
        loops_.elementwise.copy(walk.out(i), walk.in(1, i), n);
    }
    loops_.elementwise.finish();
  });
}

void FastKernels::add(const Tensor& out, const Tensor& a, const Tensor& b) {
  if (!ready({&out, &a, &b})) return ReferenceKernels::add(out, a, b);
  const Together walk({&out, &a, &b});
  in_parallel(threads_, walk.pieces(), walk.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      loops_.elementwise.add(walk.out(i), walk.in(1, i), walk.in(2, i), walk.count(i));
    loops_.elementwise.finish();
  });
}

void FastKernels::multiply(const Tensor& out, const Tensor& a, const Tensor& b) {
  if (!ready({&out, &a, &b})) return ReferenceKernels::multiply(out, a, b);
  const Together walk({&out, &a, &b});
  in_parallel(threads_, walk.pieces(), walk.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      loops_.elementwise.multiply(walk.out(i), walk.in(1, i), walk.in(2, i), walk.count(i));
    loops_.elementwise.finish();
  });
}

void FastKernels::add_scaled(const Tensor& out, const Tensor& x, float alpha) {
  if (!ready({&out, &x})) return ReferenceKernels::add_scaled(out, x, alpha);
  const Together walk({&out, &x, &out});
  in_parallel(threads_, walk.pieces(), walk.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      loops_.elementwise.add_scaled(walk.out(i), walk.in(1, i), alpha, walk.count(i));
  });
}

void FastKernels::scale(const Tensor& x, float alpha) {
  if (!ready({&x})) return ReferenceKernels::scale(x, alpha);
  const Together walk({&x, &x});
  in_parallel(threads_, walk.pieces(), walk.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      loops_.elementwise.scale(walk.out(i), walk.in(0, i), alpha, walk.count(i));
  });
}

const float* FastKernels::widened(const Tensor& vector, float* room) const {
  if (!vector) return nullptr;
  if (vector.dtype() == Dtype::f32) return vector.data<float>();
  loops_.elementwise.copy({room, fast::Type::f32, false}, Lines(vector).in(0), vector.elements());
  return room;
}

const float* FastKernels::arranged(const Tensor& vector, fast::Walk walk, float* room, int pieces) const {
  if (!vector || walk != fast::Walk::bf16) return widened(vector, room);
  const std::int64_t n = vector.elements();
  const float* plain = widened(vector, room + n);
  for (int i = 0; i < pieces; ++i)
    loops_.elementwise.arrange(room + i * n / pieces, plain + i * n / pieces, n / pieces);
  return room;
}

void FastKernels::add_bias(const Tensor& x, const Tensor& bias) {
  if (!ready({&x, &bias})) return ReferenceKernels::add_bias(x, bias);
  const Lines rows(x);
  const Lines more(bias);
  in_parallel(threads_, rows.count(), rows.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      loops_.elementwise.add(rows.out(i), rows.in(i), more.in(0), rows.width());
  });
}

void FastKernels::sum_rows(const Tensor& dbias, const Tensor& dy) {
  if (!ready({&dbias, &dy})) return ReferenceKernels::sum_rows(dbias, dy);
  const Lines rows(dy);
  const fast::Pieces pieces(rows.count());
  const std::int64_t h = rows.width();
  float* sums = scratch_.take<float>(pieces.count() * h);
  in_parallel(threads_, pieces.count(), rows.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t p = first; p < last; ++p) {
      float* sum = sums + p * h;
      std::fill_n(sum, h, 0.0F);
      for (std::int64_t i = pieces.first(p); i < pieces.first(p + 1); ++i)
        loops_.elementwise.add({sum, fast::Type::f32, false}, {sum, fast::Type::f32}, rows.in(i), h);
    }
  });
  add_pieces(dbias, sums, h, pieces.count());
}

void FastKernels::add_pieces(const Tensor& total, float* sums, std::int64_t step, std::int64_t count) const {
  const std::int64_t h = total.elements();
  const fast::Out sum = {sums, fast::Type::f32, false};
  for (std::int64_t p = 1; p < count; ++p)
    loops_.elementwise.add(sum, {sums, fast::Type::f32}, {sums + p * step, fast::Type::f32}, h);
  const Lines to(total);
  if (count > 0) loops_.elementwise.add(to.out(0), to.in(0), {sums, fast::Type::f32}, h);
}

void FastKernels::scale_rows(const Tensor& y, const Tensor& x, const Tensor& factor) {
  if (!ready({&y, &x}) || !factor.contiguous()) return ReferenceKernels::scale_rows(y, x, factor);
  const Lines to(y, {&x});
  const Lines from(x);
  const auto* by = factor.data<float>();
  in_parallel(threads_, to.count(), to.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      loops_.elementwise.scale(to.out(i), from.in(i), by[i], to.width());
    loops_.elementwise.finish();
  });
}

void FastKernels::dot_rows(const Tensor& out, const Tensor& a, const Tensor& b) {
  if (!ready({&a, &b}) || !out.contiguous()) return ReferenceKernels::dot_rows(out, a, b);
  const Lines left(a);
  const Lines right(b);
  auto* dots = out.data<float>();
  in_parallel(threads_, left.count(), left.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      dots[i] = loops_.elementwise.dot(left.in(i), right.in(i), left.width());
  });
}

}  // namespace weft
