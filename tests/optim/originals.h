// What other programs made of the same gradients: tests/golden/optim/rules/README.md.
#pragma once

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/checkpoint/safetensors.h"

namespace weft::testing {

/// A file of named tensors, read as f32.
class Originals {
 public:
  explicit Originals(const std::string& name)
      : file_(WEFT_SOURCE_DIR "/tests/golden/optim/rules/" + name + ".safetensors") {}
  Shape shape(const std::string& name) const { return file_.at(name).shape; }
  std::vector<float> operator[](const std::string& name) const {
    const auto& entry = file_.at(name);
    std::vector<float> out(std::size_t(entry.shape.elements()));
    std::memcpy(out.data(), file_.bytes(entry).data(), std::size_t(entry.bytes()));
    return out;
  }

 private:
  checkpoint::TensorFile file_;
};

inline nlohmann::json settings_of_original(const std::string& name) {
  std::ifstream in(WEFT_SOURCE_DIR "/tests/golden/optim/rules/" + name + ".json");
  return nlohmann::json::parse(in);
}

}  // namespace weft::testing
