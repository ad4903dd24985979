// TensorBoard event files with Megatron's tags.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "weft/report/sink.h"

namespace weft::report {

/// Which of Megatron's scalars are written; the names follow its switches.
struct TensorBoardOptions {
  std::filesystem::path directory;
  bool learning_rate = true, loss_scale = true;
  bool timers = false, memory = false, perplexity = false, world_size = false;
  std::int64_t interval = 1;  // steps between two writings
};
std::unique_ptr<Sink> tensorboard_sink(const TensorBoardOptions& options);

/// The bytes of an event file, piece by piece; for the sink and its tests.
namespace events {
/// CRC-32C, turned and shifted as record files want it.
std::uint32_t masked_crc(std::span<const char> bytes);
/// A record: length, its checksum, the bytes, their checksum.
std::string record(const std::string& payload);
/// The event that opens a file.
std::string opening(double wall_time);
std::string scalar(double wall_time, std::int64_t step, const std::string& tag, float value);
}  // namespace events

}  // namespace weft::report
