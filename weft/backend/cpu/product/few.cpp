#include "weft/backend/cpu/product/few.h"

#include <algorithm>

#include "weft/backend/cpu/product/share_out.h"

namespace weft::product {
namespace {

/// Enough that a thread that comes late leaves little to wait for.
constexpr std::int64_t items_a_thread = 2, least_columns = 64;

FewRows few_rows(const Problem& p, const Plan& plan) {
  return {.a = static_cast<const float*>(p.a.from),
          .a_row = p.a.row,
          .b = p.b,
          .rows = p.m,
          .columns = p.n,
          .k = p.k,
          .part = plan.part,
          .out = p.out,
          .out_row = p.out_row,
          .bias = p.bias,
          .has_bias = p.has_bias,
          .add = p.accumulate};
}

/// Columns of the result from j on.
FewRows columns(FewRows f, std::int64_t j, std::int64_t count) {
  f.b.from = static_cast<const char*>(f.b.from) + j * f.b.row * size_of(f.b.type);
  f.out.to = static_cast<char*>(f.out.to) + j * size_of(f.out.type);
  if (f.has_bias) f.bias.from = static_cast<const char*>(f.bias.from) + j * size_of(f.bias.type);
  f.columns = count;
  return f;
}

}  // namespace

void run_few(const Problem& problem, const Loops& loops, const Plan& plan, float* workspace) {
  FewRows all = few_rows(problem, plan);
  if (plan.shared_rows > 0) {
    loops.widen(workspace, problem.a, problem.m, problem.k);
    all.a = workspace;
    all.a_row = problem.k;
  }
  const std::int64_t wanted = plan.threads > 1 ? items_a_thread * plan.threads : 1;
  const std::int64_t each = divide(std::max(divide(problem.n, wanted), least_columns), panel) * panel;
  share_out(divide(problem.n, each), plan.threads, [&](std::int64_t i, int) {
    const std::int64_t j = i * each;
    loops.multiply_few(columns(all, j, std::min(each, problem.n - j)));
  });
}

}  // namespace weft::product
