// Checkpoints that megatron-core wrote, and the numbers that it gave for them.
#pragma once

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/exchange/hub.h"
#include "weft/checkpoint/safetensors.h"

namespace weft::testing {

inline std::filesystem::path megatron_golden(const std::string& name) { return hub_model("megatron") / name; }

template <class T>
std::vector<T> numbers_in(const checkpoint::TensorFile& file, const char* name) {
  const auto bytes = file.bytes(file.at(name));
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

}  // namespace weft::testing
