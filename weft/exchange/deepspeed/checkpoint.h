// A step of DeepSpeed's as tensors under Hugging Face's names, and what its run would go on with.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "weft/exchange/deepspeed/find.h"
#include "weft/exchange/deepspeed/model_states.h"
#include "weft/exchange/deepspeed/tensors.h"

namespace weft::exchange::deepspeed {

/// What Adam was told for one group of parameters.
struct AdamGroup {
  double rate = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, decay = 0;
  bool greatest = false;   // amsgrad
  std::int64_t steps = 0;  // where the group counts them, and not each tensor
};

class Checkpoint {
 public:
  /// Fails with Kind::data on anything that is no such checkpoint. Tensors' bytes are read when they are
  /// touched.
  explicit Checkpoint(const Step& step);

  const Step& step() const { return step_; }
  const ModelStates& model() const { return model_; }
  /// Masters, and what a model has beside them. Where there are no optimizer's files, what was multiplied.
  Tensors& weights() { return weights_; }
  /// Adam's two moments under the same names; empty where there are none.
  Tensors& first_moments() { return first_moments_; }
  Tensors& second_moments() { return second_moments_; }
  /// Updates that these have seen.
  std::int64_t updates() const { return updates_; }
  const std::vector<AdamGroup>& groups() const { return groups_; }

  /// How the readers of both forms fill it.
  struct Filling;

 private:
  void take_module(const Opened& file);
  Step step_;
  std::list<Opened> files_;
  ModelStates model_;
  Tensors weights_, first_moments_, second_moments_;
  std::int64_t updates_ = 0;
  std::vector<AdamGroup> groups_;
};

struct Checkpoint::Filling {
  const Step& step;
  const ModelStates& model;
  std::list<Opened>& files;
  Tensors &weights, &first_moments, &second_moments;
  std::int64_t& updates;
  std::vector<AdamGroup>& groups;
};

/// From the files of ranks, of which each holds its part of all tensors.
void read_ranks(const Files& files, const Checkpoint::Filling& into);
/// From a folder for each tensor.
void read_universal(const Checkpoint::Filling& into);

/// "param_groups"; empty where there are none.
std::vector<AdamGroup> adam_groups(const Opened& file, const torch::Map& in);

}  // namespace weft::exchange::deepspeed
