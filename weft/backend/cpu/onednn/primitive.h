// One matrix product of the library as an object: what it is made for, its operands' handles, its workspace.
#pragma once

#include <cstdint>
#include <dnnl.hpp>

#include "weft/backend/cpu/product/run.h"

namespace weft::onednn {

/// Everything that a primitive is made for.
struct Key {
  std::int64_t m = 0, n = 0, k = 0, a_row = 0, b_row = 0, out_row = 0;
  fast::Type type{}, out{}, bias{};
  bool a_turned = false, b_turned = false, adds = false, has_bias = false;
  int threads = 0;
  bool operator==(const Key&) const = default;
};
Key key_of(const product::Problem& problem, int threads);

struct Mix {
  std::size_t operator()(const Key& key) const;
};

/// The calling thread's team for as long as this lives; other ranks have calling threads of their own.
class Team {
 public:
  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

 private:
  int before_;
};

struct Made {
  dnnl::matmul primitive;
  dnnl::memory a, b, out, bias, scratch;
  std::int64_t scratch_bytes = 0;
};

dnnl::memory::data_type type_of(fast::Type type);
dnnl::memory::desc rows_of(std::int64_t rows, std::int64_t columns, fast::Type type, std::int64_t row,
                           bool turned);
Made make(const Key& key, const dnnl::engine& engine);
dnnl_status_t execute(Made& made, const product::Problem& problem, const dnnl::stream& stream,
                      float* workspace);
/// Fails where the library did.
void check(const product::Problem& problem, dnnl_status_t status);

/// On older processors the library has no bf16, and other loops for f32, whose order of sums depends on
/// where rows are cut among threads.
bool has_avx512();

}  // namespace weft::onednn
