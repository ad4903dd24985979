// Joins parameters to names and boxes.
#include "weft/train/resume_weights.h"

#include "weft/checkpoint/find.h"
#include "weft/checkpoint/load.h"
#include "weft/checkpoint/step.h"

namespace weft {

std::filesystem::path checkpoint_step(const std::filesystem::path& directory,
                                      std::vector<std::string>& notices) {
  std::error_code error;
  const bool is_step = std::filesystem::exists(directory / checkpoint::complete_name, error);
  return is_step ? directory : checkpoint::latest(directory, notices).path;
}

std::vector<checkpoint::Named> named_weights(const Weights& weights) {
  std::vector<checkpoint::Named> out;
  weights.each_master([&](const Held& held) { out.push_back({held.name, held.memory, held.pieces}); });
  return out;
}

std::string load_weights(const std::filesystem::path& step, Weights& weights, Communicator& world) {
  std::string facts = checkpoint::load(step, named_weights(weights), world, checkpoint::Types::may_differ);
  weights.publish();
  return facts;
}

}  // namespace weft
