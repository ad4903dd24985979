// Products of four warps beside each other, as g++ or clang++ compiles them: they are carried out as late as
// may be, when they are waited for. Its twin weft/backend/cuda/native/warpgroup.h says the same in PTX.
#pragma once

#include <gpu.h>

#include <type_traits>

#include "tests/support/gpu/products.h"
#include "weft/backend/cuda/matrix_names.h"

namespace emulated {

/// What a warp asks for: sums of 16 rows and 8 `eights` columns, += where it adds.
struct Asked {
  const char* what;
  int line;
  bool is_bf16, adds;
  Lie lie;
  int eights;
  std::uint64_t left, right;    // matrices as the machine names them
  const std::uint32_t* halves;  // of a lane
  float (*sums)[4];             // of a lane
};
void ask_product(const Asked& asked);
void begin_products(int line);
void commit_products(int line);
void wait_products(int groups_left, int line);
void show_products();
/// Where something lies in the block's shared memory.
std::uint32_t place_of(const void* at);

}  // namespace emulated

namespace gpu {

inline constexpr bool has_warpgroups = true;

inline Matrix matrix_at(const void* at) { return matrix_of(emulated::place_of(at)); }

inline void show_products() { emulated::show_products(); }
inline void begin_products(int line = __builtin_LINE()) { emulated::begin_products(line); }
inline void commit_products(int line = __builtin_LINE()) { emulated::commit_products(line); }
template <int groups_left>
void wait_products(int line = __builtin_LINE()) {
  emulated::wait_products(groups_left, line);
}
inline void before_what_follows(float x) {
  if (x < 0) emulated::report("a number that orders what follows is negative, and a GPU would stop");
}

inline std::uint64_t whole(Matrix m) { return std::uint64_t(matrix_form) << 32 | m.low; }

template <class Half, bool adds, int eights>
void multiply_rows(float (&d)[eights][4], Matrix a, Matrix b, int line = __builtin_LINE()) {
  static_assert(eights == 8 || eights == 4);
  emulated::ask_product({"multiply_rows",
                         line,
                         std::is_same_v<Half, weft::bf16>,
                         adds,
                         {},
                         eights,
                         whole(a),
                         whole(b),
                         nullptr,
                         d});
}
template <class Half, int first, int count>
void multiply_columns(float (&d)[count][4], const std::uint32_t (&a)[4], Matrix b,
                      int line = __builtin_LINE()) {
  static_assert(first + 8 <= count);
  emulated::ask_product({"multiply_columns",
                         line,
                         std::is_same_v<Half, weft::bf16>,
                         true,
                         {true, false, true},
                         8,
                         0,
                         whole(b),
                         a,
                         d + first});
}
template <class Half, bool left_by_depth, bool right_by_depth>
void multiply_panels(float (&d)[32][4], Matrix a, Matrix b, int line = __builtin_LINE()) {
  emulated::ask_product({"multiply_panels",
                         line,
                         std::is_same_v<Half, weft::bf16>,
                         true,
                         {false, left_by_depth, right_by_depth},
                         32,
                         whole(a),
                         whole(b),
                         nullptr,
                         d});
}

}  // namespace gpu
