// A checkpoint of Megatron-LM: one iteration's directory, of either of its two formats, as tensors under
// plain names and the arguments of the run that wrote it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/file.h"
#include "weft/exchange/megatron/arguments.h"
#include "weft/exchange/megatron/tensors.h"
#include "weft/exchange/torch/archive.h"

namespace weft::exchange::megatron {

enum class Format : std::uint8_t {
  sharded,  // torch_dist: an index, and chunks in files of those who wrote them
  ranks     // torch: a file for each rank of a model
};

/// What a person means by a directory: one iteration, or the root of some, of which the newest counts.
struct Iteration {
  std::filesystem::path directory;
  Format format = Format::sharded;
};
/// None where the directory holds nothing of Megatron's. Fails with Kind::data where it names an iteration
/// that is not there, or holds a format that weft does not read.
std::optional<Iteration> find_iteration(const std::filesystem::path& directory);

class Items;

/// What an optimizer keeps of each parameter, under its plain name.
struct States {
  explicit States(const std::string& who) : masters(who), first_moments(who), second_moments(who) {}

  Tensors masters, first_moments, second_moments;
  std::string why_not;  // they cannot be had
};

class Checkpoint {
 public:
  /// Fails with Kind::data on anything that is no such checkpoint. Tensors' bytes are read when they are
  /// touched.
  explicit Checkpoint(const Iteration& iteration);
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  const Iteration& iteration() const { return iteration_; }
  const Arguments& arguments() const { return *arguments_; }
  /// Steps that were trained.
  std::int64_t step() const { return step_; }
  /// Of the model, one for each layer and expert: decoder.layers.3.mlp.experts.5.linear_fc1.weight.
  const Tensors& model() const { return model_; }
  /// Masters in f32 under the same names, where the file has them apart from the model's.
  const Tensors& masters() const { return states_.masters; }
  /// Adam's two moments under the same names.
  const Tensors& first_moments() const { return states_.first_moments; }
  const Tensors& second_moments() const { return states_.second_moments; }
  /// Updates that these have seen.
  std::int64_t updates() const { return updates_; }

  /// Whether masters and moments are there, but not yet known to be what they are taken for. Some lie in rows
  /// of which no file says whose they are; and megatron-core 0.16.1 itself writes wrong ones where it makes
  /// whole tensors of several rows.
  bool has_states_to_settle() const { return settle_ != nullptr; }
  /// Finds out, and has them then; reads every master. What is returned says why they cannot be had; it is
  /// empty where they can.
  std::string settle();

 private:
  friend class Sharded;
  friend class OfRanks;
  void take_common(const torch::Archive& common, const std::string& who);

  Iteration iteration_;
  std::shared_ptr<Items> items_;
  std::vector<std::unique_ptr<MappedFile>> files_;
  std::vector<std::unique_ptr<torch::Archive>> archives_;
  std::optional<Arguments> arguments_;
  std::int64_t step_ = 0, updates_ = 0;
  Tensors model_;
  States states_;
  std::function<States(const Checkpoint&)> settle_;
};

}  // namespace weft::exchange::megatron
