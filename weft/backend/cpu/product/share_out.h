// Work for the threads of a product.
#pragma once

#include <omp.h>

#include <cstdint>

namespace weft::product {

inline std::int64_t divide(std::int64_t a, std::int64_t by) { return (a + by - 1) / by; }

/// body(i, thread) for every i below count; small work never meets OpenMP.
template <class Body>
void share_out(std::int64_t count, int threads, const Body& body) {
  if (threads == 1 || count == 1) {
    for (std::int64_t i = 0; i < count; ++i) body(i, 0);
    return;
  }
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (std::int64_t i = 0; i < count; ++i) body(i, omp_get_thread_num());
}

}  // namespace weft::product
