// How each of our tensors is made of a Hugging Face model's: which rows of which of theirs.
#pragma once

#include <string>
#include <vector>

#include "weft/exchange/hub_config.h"
#include "weft/tensor/shape.h"

namespace weft::exchange {

/// One of their tensors. Turned ones are stored [in, out] where we have [out, in].
struct Theirs {
  std::string name;
  Shape shape;  // as they store it
  bool turned = false;
  std::int64_t rows() const { return turned ? shape[1] : shape[0]; }
};

/// Rows [to, to + count) of ours are rows [from, from + count) of theirs[part].
struct RowRun {
  std::size_t part = 0;
  std::int64_t from = 0, to = 0, count = 0;
};

/// The runs fill ours in ascending order of `to`, and use every row of every part once.
struct Recipe {
  std::string name;  // ours
  Shape shape;
  std::vector<Theirs> parts;
  std::vector<RowRun> runs;
  double plus = 0;  // theirs = ours + plus: a gain that we store around zero

  std::int64_t columns() const { return shape.rank() == 2 ? shape[1] : 1; }
};

/// Every tensor of the model, in the order of its layers.
std::vector<Recipe> recipes(Family family, const ModelConfig& model);

/// Whether a tensor that no recipe names is a table that old programs saved and none needs.
bool is_known_table(std::string_view their_name);

}  // namespace weft::exchange
