// The weights of a checkpoint for a model that was built: to go on training, to generate, to export.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "weft/checkpoint/named.h"
#include "weft/comm/communicator.h"
#include "weft/optim/optimizer.h"
#include "weft/optim/weights.h"

namespace weft {

/// The step's directory that a person means: `directory` itself, or the newest complete step under it. Fails
/// with Kind::data where there is none; notices say what was passed over.
std::filesystem::path checkpoint_step(const std::filesystem::path& directory,
                                      std::vector<std::string>& notices);

/// This rank's part of every master, under its parameter's name.
std::vector<checkpoint::Named> named_weights(const Weights& weights);

/// The same of a model with experts, by the names of one without: each expert is the MLP that stood there.
/// What such a model has not got, routers and shared experts, is left out.
std::vector<checkpoint::Named> named_before_experts(const Weights& weights);

/// This rank's part of every optimizer state, under names like "layers.0.mlp.up.weight.m".
/// What every rank has of its own is left out where another layout saved it.
enum class OfRanks : std::uint8_t { taken, left_out };
std::vector<checkpoint::Named> named_states(const Optimizer& optimizer, OfRanks of_ranks = OfRanks::taken);

/// Masters, or what ranks agree on where those differ, and states, each box left to one of the ranks that
/// hold it: about as many bytes to each data-parallel rank.
enum class ToSave : std::uint8_t { all, of_all_ranks, weights };
std::vector<checkpoint::Named> named_to_save(const Weights& weights, const Optimizer& optimizer,
                                             ToSave what = ToSave::all);

/// Every rank of `world` calls it. Fills the weights from a step's directory, whatever layout and precision
/// it was saved under, and publishes them; returns the facts of the run.
std::string load_weights(const std::filesystem::path& step, Weights& weights, Communicator& world);

}  // namespace weft
