// DeepSpeed's JSON configuration: what a file says of our fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/fields.h"

namespace weft::cli::dialect {

/// What a file set: the field, what it holds since then, and the key, by its path: "zero_optimization.stage".
struct KeySaid {
  std::string_view key, field;
  std::vector<std::string> words;
  bool never = false;  // the field is to hold anything but the words: "fp16.enabled": false
};

/// What a file says beyond fields.
struct DeepSpeedSaid {
  std::string file;
  std::vector<KeySaid> keys;
  std::optional<std::int64_t> accumulation;  // microbatches in a step of a rank
  std::optional<std::int64_t> shard_ranks;   // that share what ZeRO cuts up
  std::vector<std::string> notices;          // keys without effect here, with the reason
};

/// Fails for what is no such configuration, unknown keys (with the nearest), values of another type, what
/// weft cannot do (all of it at once) and keys that contradict each other; every message names the file.
DeepSpeedSaid read_deepspeed(Fields&, std::string_view json, const std::string& file);
DeepSpeedSaid read_deepspeed_file(Fields&, const std::string& file);

}  // namespace weft::cli::dialect
