// A checkpoint that Megatron-LM reads, as torch_dist has it: weights alone, which any ranks of its can take.
#pragma once

#include <filesystem>
#include <string_view>

#include "weft/exchange/hub_write.h"

namespace weft::exchange::megatron {

struct ReleaseForm {
  Dtype dtype = Dtype::f32;
  std::int64_t file_bytes = 5'000'000'000;  // files are not larger, but for a single part of a tensor
};

/// Choices of experts hang on its last bits: Megatron keeps it in f32 whatever the others are.
bool is_always_f32(std::string_view name);

/// Where tokenizers' files go: beside the weights.
std::filesystem::path release_directory(const std::filesystem::path& directory);

/// What Megatron calls a release: the model where a run may begin. The tracker that names it comes last, so
/// that a directory without one is unfinished. Fails with Kind::usage where Megatron's arguments cannot say
/// what the model computes.
Written write_release(const std::filesystem::path& directory, const ModelConfig& model,
                      const ReadWeight& read, const ReleaseForm& form);

}  // namespace weft::exchange::megatron
