#include "tests/backend/warpgroup_trial.h"

#include <warpgroup.h>

namespace weft::testing {
namespace {

struct Matrices {
  alignas(1024) std::uint16_t of[matrices_there][matrix_halves];
};
/// How the operands of panels lie.
enum class Panels { along, left_by_depth, right_by_depth, by_depth };

/// The next 16 columns, or rows where it lies by depth.
constexpr int sixteen(bool by_depth) { return by_depth ? 16 * 128 : 32; }

template <class Half, Products which, bool adds, Misuse misuse, Panels lie>
__global__ void multiply(float* d, const std::uint16_t* matrices, const std::uint32_t* halves) {
  constexpr int eights = sums_of(which) / 4;
  auto& shared = gpu::shared<Matrices>();
  const int thread = int(threadIdx.x);
  for (int i = thread; i < matrices_there * matrix_halves; i += 128)
    shared.of[i / matrix_halves][i % matrix_halves] = matrices[i];
  if (misuse != Misuse::not_shown && misuse != Misuse::shown_behind_the_barrier) gpu::show_products();
  __syncthreads();
  if (misuse == Misuse::shown_behind_the_barrier) gpu::show_products();
  float sums[eights][4];
  std::uint32_t left[4];
  for (int i = 0; i < 4 * eights; ++i) sums[i / 4][i % 4] = d[thread * 4 * eights + i];
  for (int i = 0; i < 4; ++i) left[i] = halves[4 * thread + i];
  if (misuse != Misuse::not_begun) gpu::begin_products();
  const bool other = misuse == Misuse::unaligned || (misuse == Misuse::apart && thread / 32 == 2);
  const gpu::Matrix a = gpu::matrix_at(shared.of[0]), b = gpu::matrix_at(shared.of[1] + (other ? 64 : 0));
  constexpr bool left_by_depth = lie == Panels::left_by_depth || lie == Panels::by_depth,
                 right_by_depth = lie == Panels::right_by_depth || lie == Panels::by_depth;
  if constexpr (which == Products::of_panels)
    gpu::multiply_panels<Half, left_by_depth, right_by_depth>(
        sums, gpu::further(a, sixteen(left_by_depth)),
        gpu::further(right_by_depth ? gpu::spread(b, 2 * matrix_halves) : b, sixteen(right_by_depth)));
  else if constexpr (which == Products::of_columns)
    gpu::multiply_columns<Half, 0>(sums, left, gpu::further(b, 2048));
  else
    gpu::multiply_rows<Half, adds>(sums, gpu::further(a, 32), gpu::further(b, 32));
  gpu::commit_products();
  if (misuse == Misuse::written_early) sums[0][0] = 0;
  if (misuse == Misuse::refilled) {
    __syncthreads();
    shared.of[1][thread + 16 * 64] = 0;
    __syncthreads();
  }
  if (misuse != Misuse::read_early && misuse != Misuse::left_under_way) gpu::wait_products<0>();
  for (int i = 0; i < 4 * eights; ++i) d[thread * 4 * eights + i] = sums[i / 4][i % 4];
  if (misuse == Misuse::read_early) gpu::wait_products<0>();
}

struct Launch {
  float* d;
  const std::uint16_t* matrices;
  const std::uint32_t* halves;

  template <class Half, Products which, bool adds, Misuse misuse = Misuse::none, Panels lie = Panels::along>
  void run() const {
    gpu::launch(cudaStream_t{}, {1, 128, sizeof(Matrices)}, multiply<Half, which, adds, misuse, lie>, d,
                matrices, halves);
  }
  template <class Half, Panels lie>
  void panels() const {
    run<Half, Products::of_panels, true, Misuse::none, lie>();
  }
  template <class Half>
  void right(const ProductTrial& trial) const {
    switch (trial.which) {
      case Products::of_64_rows:
        return trial.adds ? run<Half, Products::of_64_rows, true>()
                          : run<Half, Products::of_64_rows, false>();
      case Products::of_32_rows:
        return trial.adds ? run<Half, Products::of_32_rows, true>()
                          : run<Half, Products::of_32_rows, false>();
      case Products::of_columns:
        return run<Half, Products::of_columns, true>();
      case Products::of_panels:
        if (trial.left_by_depth)
          return trial.right_by_depth ? panels<Half, Panels::by_depth>()
                                      : panels<Half, Panels::left_by_depth>();
        return trial.right_by_depth ? panels<Half, Panels::right_by_depth>() : panels<Half, Panels::along>();
    }
  }
  template <Misuse... all>
  void wrong(Misuse misuse) const {
    ((misuse == all ? run<bf16, Products::of_columns, true, all>() : void()), ...);
  }
};

}  // namespace

void multiply_matrices(const ProductTrial& trial, float* d, const std::uint16_t* matrices,
                       const std::uint32_t* halves) {
  const Launch launch{d, matrices, halves};
  if (trial.misuse == Misuse::none) return trial.bf16 ? launch.right<bf16>(trial) : launch.right<f16>(trial);
  launch.wrong<Misuse::not_begun, Misuse::not_shown, Misuse::shown_behind_the_barrier, Misuse::read_early,
               Misuse::written_early, Misuse::refilled, Misuse::unaligned, Misuse::apart,
               Misuse::left_under_way>(trial.misuse);
}

}  // namespace weft::testing
