// Which tensors a file has, and which of Hugging Face's each is made of.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "weft/exchange/gguf/architecture.h"
#include "weft/exchange/recipe.h"

namespace weft::exchange::gguf {

/// Where one of theirs lies: it is the `slab`-th of a tensor's equal parts, of `rows` rows.
struct Placed {
  std::string ours;
  Order order = Order::same;
  std::int64_t heads = 1;  // whose rows stand in turn
  std::int64_t slab = 0, rows = 1, columns = 1;
  float plus = 0;  // on theirs
};

/// Where a part of our recipes goes.
struct Source {
  const Recipe* recipe = nullptr;
  std::size_t part = 0;
  Placed placed;
};

/// A tensor of a file, whose slabs follow each other in memory.
struct FileTensor {
  std::string name;
  std::vector<std::int64_t> sizes;  // innermost first
  std::vector<Source> slabs;
  bool always_f32() const;
};

/// Every tensor that a model's recipes give, in their order. The recipes must outlive it. Fails with
/// Kind::usage, naming the tensor, where llama.cpp has no place for one.
std::vector<FileTensor> lay_out(const Architecture& architecture, const ModelConfig& model,
                                const std::vector<Recipe>& recipes);

/// Row of a file's tensor that a row of theirs is.
std::int64_t row_in_file(const Placed& placed, std::int64_t row);

}  // namespace weft::exchange::gguf
