// Which parameters lie where in the flat buffers of all ranks that share a model.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/exchange/megatron/checkpoint.h"
#include "weft/exchange/megatron/flat.h"

namespace weft::exchange::megatron {

/// An optimizer's buffers: of each group of ranks that hold the same of a model, one for each of its pieces.
using FlatOptimizer = std::map<std::int64_t, std::map<std::int64_t, FlatBuffer>>;

/// The plain names of what an expert rank has in a stage, in the order of its modules.
using NamesOf = std::function<std::vector<std::string>(std::int64_t stage, std::int64_t expert_rank)>;

/// What no file says and the masters must prove.
struct Guess {
  NamesOf names;
  bool on_its_side = false;  // experts
  std::int64_t bucket_size = 0;
};

class FlatLayout {
 public:
  /// Of several optimizers the last has the experts that ranks share.
  FlatLayout(const Checkpoint& checkpoint, const std::vector<FlatOptimizer>& optimizers);

  /// Empty where there are buffers for as many ranks as the run's arguments speak of.
  const std::string& why_not() const { return why_not_; }
  /// Virtual ones, too, in the order in which a text goes through them.
  std::int64_t stages() const { return ways_.pp * pieces_; }
  const Degrees& ways() const { return ways_; }
  /// Whether a stage's buffer holds these, and nothing else.
  bool fits(std::int64_t stage, const std::vector<std::string>& names, std::int64_t bucket_size) const;
  /// None where they do not fit.
  std::optional<Tensors> tensors(State state, const Guess& guess) const;
  /// All three, if the masters are what the model's weights were rounded from. Else why not.
  States states(const Guess& guess) const;

 private:
  struct Row {
    std::vector<FlatParameter> parameters;
    std::vector<Lying> lying;
  };
  /// Of those names that belong to it, in the order of a buffer.
  Row row_of(const std::vector<std::string>& names, bool of_experts, std::int64_t rank) const;
  bool put(Tensors& into, State state, const FlatBuffer& buffer, const Row& row, const Guess& guess) const;
  bool put_dense(Tensors& into, State state, const Guess& guess) const;
  bool put_experts(Tensors& into, State state, const Guess& guess) const;
  std::int64_t size_in(std::int64_t stage, std::int64_t bucket_size) const {
    return stage == 0 ? bucket_size : 0;  // buckets are made where others wait for what they bring
  }

  const Tensors& model_;
  std::string where_, why_not_;
  Degrees ways_;
  bool experts_apart_ = false, tied_ = false;
  std::int64_t pieces_ = 0;
  std::vector<std::vector<const FlatBuffer*>> dense_, experts_;
};

/// The first parameter whose master is not what its weight was rounded from, or that has none; or nothing.
std::string unproven(const Tensors& masters, const Tensors& model);
/// States whose tensors are named, if masters are that; else why not.
States proven(States states, const Checkpoint& checkpoint);

}  // namespace weft::exchange::megatron
