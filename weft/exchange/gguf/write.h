// A GGUF file from weights under our names, one tensor in memory at a time.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "weft/exchange/gguf/blocks.h"
#include "weft/exchange/gguf/values.h"
#include "weft/exchange/hub_write.h"

namespace weft::exchange::gguf {

struct FileForm {
  NumberType type = NumberType::f32;
  std::string name;   // "general.name"
  Values vocabulary;  // keys of the tokenizer
};

/// Fails with Kind::usage where llama.cpp computes no such model, naming what it has no word for, before
/// anything is written. What is interrupted leaves nothing under the name.
Written write_model(const std::filesystem::path& file, const ModelConfig& model, const ReadWeight& read,
                    const FileForm& form);

/// Which of our tensors stay f32 in a file, whatever type the others have.
std::set<std::string, std::less<>> kept_in_f32(const ModelConfig& model);

}  // namespace weft::exchange::gguf
