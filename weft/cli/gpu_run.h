// Runs on a GPU: what it cannot do, asked at the door, and whose memory ranks share.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/backend/gpus.h"
#include "weft/cli/environment.h"
#include "weft/model/config.h"
#include "weft/plan/fit.h"
#include "weft/train/config.h"

namespace weft::cli {

/// Fails with Kind::usage, by the setting's name, where the device is a GPU and cannot compute the model.
void must_carry(std::string_view device, const ModelConfig& model);
/// And cannot do what else a training asks.
void must_carry(const TrainConfig& config);
/// The same where it is a GPU and none is here, or the program has no kernels for one.
void must_be_here(std::string_view device);
/// Both, for a model that is only read.
void must_read(std::string_view device, const ModelConfig& model);

/// Why nothing goes by warpgroups, though it may; empty where something does, or where no GPU is here to ask.
std::string why_no_warpgroups(std::string_view device, const ModelConfig& model);

/// Why scales of blocks make no product faster here; empty where they do, where the model has none, or where
/// no GPU is here to ask.
std::string why_blocks_are_widened(std::string_view device, const ModelConfig& model);

/// Whom a device that only counts counts for: the GPU that the first rank here computes on, another one where
/// there is none here, and none for a processor.
std::optional<GpuHere> counted_gpu(std::string_view device);
/// Who says what its ranks have to say, as far as it is known before they meet.
SpokenBy spoken_by(const TrainConfig& config, const Launched& launched);

/// Ranks that share a memory, and what is left of that.
struct Room {
  RanksHere ranks;
  FreeMemory free;
};
/// The machine's, or that of each GPU on which ranks of this process compute: none where there is no GPU.
std::vector<Room> rooms_here(const TrainConfig& config, const Launched& launched);

}  // namespace weft::cli
