// Rows of parameters, as the distributed optimizer has them: one behind the other, each begun at a multiple
// of 64 numbers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/exchange/megatron/cuts.h"
#include "weft/exchange/torch/archive.h"

namespace weft::exchange::megatron {

/// Numbers that lie next to each other in a file, and from which of a bucket's on they are.
struct Piece {
  std::int64_t first = 0;
  const torch::Archive* archive = nullptr;
  const torch::StoredTensor* stored = nullptr;

  std::int64_t end() const { return first + stored->elements(); }
};

enum class State : std::uint8_t { master, first_moment, second_moment };
constexpr std::array<std::string_view, 3> state_names = {"param", "exp_avg", "exp_avg_sq"};

struct Bucket {
  std::int64_t elements = 0;
  std::array<std::vector<Piece>, state_names.size()> states;  // in order, without holes
};

/// What an optimizer keeps of one piece of a model.
struct FlatBuffer {
  std::vector<Bucket> buckets;
  bool joined = false;  // buckets lie as one, and where one ends nobody says

  std::int64_t elements() const;
};

/// A parameter on its way into such a buffer.
struct Lying {
  std::int64_t elements = 0;
  bool alone = false;  // in a bucket of its own
};
struct Slot {
  std::size_t bucket = 0;
  std::int64_t first = 0;
};
/// Where parameters lie that fill a buffer, in the order of the buffer; none where they do not. Where it does
/// not say itself where a bucket ends, that is as soon as it has `bucket_size` numbers; with 0 it has one.
std::optional<std::vector<Slot>> slots_in(const FlatBuffer& buffer, std::span<const Lying> parameters,
                                          std::int64_t bucket_size);

/// What a rank holds of a parameter: by rows, or by columns where it lies on its side.
struct FlatParameter {
  std::string name;
  const TheirTensor* whole = nullptr;
  Portion portion;
  bool on_its_side = false;
};
/// Adds it, from the place `first` of a bucket on.
void add_flat(Tensors& into, const FlatParameter& parameter, std::span<const Piece> pieces,
              std::int64_t first);

}  // namespace weft::exchange::megatron
