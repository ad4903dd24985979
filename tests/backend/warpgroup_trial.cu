#include "tests/backend/warpgroup_trial.h"

#include <warpgroup.h>

namespace weft::testing {
namespace {

struct Matrices {
  alignas(1024) std::uint16_t of[2][matrix_halves];
};

template <class Half, Products which, bool adds, Misuse misuse>
__global__ void multiply(float* d, const std::uint16_t* matrices, const std::uint32_t* halves) {
  constexpr int eights = sums_of(which) / 4;
  auto& shared = gpu::shared<Matrices>();
  const int thread = int(threadIdx.x);
  for (int i = thread; i < 2 * matrix_halves; i += 128)
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
  if constexpr (which == Products::of_columns)
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

  template <class Half, Products which, bool adds, Misuse misuse = Misuse::none>
  void run() const {
    gpu::launch(cudaStream_t{}, {1, 128, sizeof(Matrices)}, multiply<Half, which, adds, misuse>, d, matrices,
                halves);
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
