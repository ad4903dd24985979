// How Megatron's ranks cut a tensor that several of them hold.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/exchange/megatron/arguments.h"
#include "weft/exchange/megatron/tensors.h"

namespace weft::exchange::megatron {

enum class Cut : std::uint8_t { not_at_all, rows, halves_of_rows, columns };
/// Whether it is one of the experts that expert ranks share.
bool is_of_experts(std::string_view name);

/// How many ranks share a model, along each way of cutting it.
struct Degrees {
  std::int64_t tp = 1, pp = 1, ep = 1;
  std::int64_t experts_tp = 1;  // ranks that cut an expert's tensors
  bool gated = false;           // MLPs, whose gates stand above what they gate
  bool latents_cut = false;     // what makes latents is cut; with Transformer Engine all ranks hold it whole
};
Degrees degrees_of(const Arguments& args);

/// Of a tensor of such a plain name.
Cut cut_of(std::string_view name, const Degrees& ways);

/// Rows of a rank's matrix that follow each other in the whole one, too.
struct Block {
  std::int64_t first = 0, rows = 0;  // of the rank's
  std::int64_t row = 0, column = 0;  // in the whole
};
/// What a rank holds of a tensor, as a matrix.
struct Portion {
  std::int64_t rows = 0, columns = 0;
  std::vector<Block> blocks;

  std::int64_t elements() const { return rows * columns; }
};
/// Of rank `rank` of `ways`; nothing where so many ranks cannot cut it.
Portion portion_of(const TheirTensor& whole, Cut cut, std::int64_t ways, std::int64_t rank);

/// A rank's own tensor in a file.
struct Stored {
  const torch::Archive& archive;
  const torch::StoredTensor& tensor;
};
/// Adds what a rank stores as a tensor of its own, of one or two dimensions.
void add_portion(Tensors& into, const std::string& name, const TheirTensor& whole, const Portion& portion,
                 const Stored& stored);

}  // namespace weft::exchange::megatron
