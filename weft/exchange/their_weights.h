// Another program's weights as ours: read a box at a time, whatever layout asks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/checkpoint/named.h"
#include "weft/comm/communicator.h"
#include "weft/exchange/recipe.h"

namespace weft::exchange {

class TheirWeights {
 public:
  virtual ~TheirWeights() = default;
  TheirWeights(const TheirWeights&) = delete;
  TheirWeights& operator=(const TheirWeights&) = delete;

  const std::vector<Recipe>& all() const { return recipes_; }
  /// Fails with Kind::usage where the model has no tensor of that name.
  const Recipe& at(const std::string& ours) const;
  /// The elements of ours from `first` on, row by row.
  void read(const Recipe& recipe, std::int64_t first, std::span<float> to) const;
  /// The type that a tensor of ours is stored in: the widest of its parts'.
  Dtype dtype(const Recipe& recipe) const;
  /// What is passed over, to be said once.
  const std::vector<std::string>& notices() const { return notices_; }

 protected:
  /// `who` begins messages: the directory.
  TheirWeights(std::string who, std::vector<Recipe> recipes);
  virtual Dtype dtype_of_part(const Theirs& theirs) const = 0;
  /// Some of a row, from its column on.
  virtual void read_row(const Theirs& theirs, std::int64_t row, std::int64_t column,
                        std::span<float> to) const = 0;

  std::string who_;
  std::vector<Recipe> recipes_;
  std::map<std::string, std::size_t> places_;
  std::vector<std::string> notices_;
};

/// Every rank of `world` calls it. Fills every piece of `mine`, which are weights under our names, rounding
/// to the type they have.
void load_theirs(const TheirWeights& weights, std::span<const checkpoint::Named> mine, Communicator& world);

/// The model's tensors under our names, on a device without memory: bytes are read from the directory when
/// they are copied to the host. What checkpoint::save needs to write a model that is larger than memory.
class TheirDevice;
struct Streamed {
  std::unique_ptr<TheirDevice> device;
  std::vector<checkpoint::Named> tensors;
  Streamed();
  Streamed(Streamed&&) noexcept;
  ~Streamed();
};
/// `as`: the type they are to be stored in.
Streamed stream(const TheirWeights& weights, const std::function<Dtype(const Recipe&)>& as);

/// `count` elements of `bytes`, from element `first` on, each `step` after the last.
struct Walk {
  std::int64_t first = 0, step = 1, count = 0;
};
void widen(std::span<const std::byte> bytes, Dtype dtype, const Walk& walk, float* to);

}  // namespace weft::exchange
