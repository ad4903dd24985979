// What other programs made of the same gradients: tests/golden/optim/rules/README.md.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/compare.h"
#include "tests/support/source_dir.h"
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
  bool has(const std::string& name) const {
    return std::ranges::count(file_.header().entries, name, &checkpoint::Entry::name) > 0;
  }
  /// A tensor of one element, of f32, f64 or i64.
  double number(const std::string& name) const {
    const auto& entry = file_.at(name);
    const auto* at = file_.bytes(entry).data();
    if (entry.dtype == Dtype::f32) return double(read<float>(at));
    return entry.dtype == Dtype::f64 ? read<double>(at) : double(read<std::int64_t>(at));
  }

 private:
  template <class T>
  static T read(const std::byte* at) {
    T out;
    std::memcpy(&out, at, sizeof out);
    return out;
  }
  checkpoint::TensorFile file_;
};

/// Of worker 0.
inline std::vector<float> gradient(const Originals& set, const std::string& name, int step) {
  const std::vector<float> all = set["grad/" + name];
  const Shape shape = set.shape("grad/" + name);
  const std::int64_t one = shape.elements() / shape[0] / shape[1];
  const auto from = all.begin() + (step - 1) * shape[1] * one;
  return {from, from + one};
}

/// Elements may differ by a part of the greatest.
inline std::string far_from(const std::vector<double>& ours, const std::vector<float>& theirs, double part) {
  double most = 0;
  for (const float x : theirs) most = std::max(most, std::abs(double(x)));
  return difference(ours, std::vector<double>(theirs.begin(), theirs.end()), {0, part * most});
}

inline nlohmann::json settings_of_original(const std::string& name) {
  std::ifstream in(WEFT_SOURCE_DIR "/tests/golden/optim/rules/" + name + ".json");
  return nlohmann::json::parse(in);
}

}  // namespace weft::testing
