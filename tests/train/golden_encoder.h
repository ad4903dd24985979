// What originals of tests/golden hold, read for a replica of ours.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include "tests/support/source_dir.h"
#include "tests/support/tiny.h"
#include "weft/checkpoint/safetensors.h"
#include "weft/train/replica.h"

namespace weft::testing {

template <class T>
std::vector<T> read(const checkpoint::TensorFile& file, const std::string& name) {
  const auto bytes = file.bytes(file.at(name));
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

/// One of the originals: where its files lie, and what it calls our parameters.
struct GoldenEncoder {
  using Spelling = std::pair<const char*, const char*>;  // a piece of our name, and of theirs
  std::string folder;
  std::span<const Spelling> spelling;

  std::string file(const std::string& name) const {
    return std::string(WEFT_SOURCE_DIR) + "/tests/golden/" + folder + "/" + name;
  }
  nlohmann::json run() const { return nlohmann::json::parse(std::ifstream(file("run.json"))); }
  std::string their_name(std::string name) const {
    for (const auto& [ours, theirs] : spelling)
      if (const auto at = name.find(ours); at != std::string::npos)
        name.replace(at, std::strlen(ours), theirs);
    return name;
  }
  void set_weights(Weights& weights) const {
    const checkpoint::TensorFile original(file("weights.safetensors"));
    EXPECT_EQ(set_weights_here(weights, original), original.header().entries.size());
  }
  /// Of those that this rank holds, whole ones; how many there are.
  std::size_t set_weights_here(Weights& weights, const checkpoint::TensorFile& original) const {
    std::size_t found = 0;
    weights.each_master([&](const Held& held) {
      const std::vector<float> values = read<float>(original, their_name(held.name));
      EXPECT_EQ(std::size_t(held.pieces.front().where.global.elements()), values.size()) << held.name;
      const std::int64_t at = held.memory.offset() + held.pieces.front().at, size = sizeof(float);
      held.memory.device()
          .copy_from_host(*held.memory.storage(), at * size, values.data(), std::ssize(values) * size)
          .wait();
      ++found;
    });
    weights.publish();
    return found;
  }
  /// Of those that a file holds, which must all be ours.
  void expect_weights(const Weights& weights, const std::string& name, double tolerance) const {
    const checkpoint::TensorFile original(file(name));
    const auto& entries = original.header().entries;
    std::size_t compared = 0;
    weights.each_master([&](const Held& held) {
      const std::string theirs = their_name(held.name);
      if (std::ranges::find(entries, theirs, &checkpoint::Entry::name) == entries.end()) return;
      ++compared;
      const std::vector<float> expected = read<float>(original, theirs);
      const auto ours = numbers(held.memory.slice(0, held.pieces.front().at, std::ssize(expected)));
      for (std::size_t i = 0; i < expected.size(); ++i)
        ASSERT_NEAR(ours[i], expected[i], tolerance) << held.name << " " << i;
    });
    EXPECT_EQ(compared, entries.size());
  }
  /// Of a stage that has been backward. `is_noise` knows elements that are zero but for rounding.
  template <class IsNoise>
  void expect_gradients(const Stage& stage, const IsNoise& is_noise) const {
    expect_gradients(stage, is_noise, checkpoint::TensorFile(file("probe_grads.safetensors")));
  }
  /// Of those that a file holds, which must all be ours.
  template <class IsNoise>
  void expect_gradients(const Stage& stage, const IsNoise& is_noise,
                        const checkpoint::TensorFile& original) const {
    std::size_t compared = 0;
    stage.each_parameter([&](const Parameter& p) {
      const auto& entries = original.header().entries;
      if (std::ranges::find(entries, their_name(p.name), &checkpoint::Entry::name) == entries.end()) return;
      ++compared;
      const auto expected = read<float>(original, their_name(p.name));
      const auto grad = numbers(p.grad.sum());
      double greatest = 0;
      for (const float value : expected) greatest = std::max(greatest, std::abs(double(value)));
      for (std::size_t i = 0; i < expected.size(); ++i)
        ASSERT_NEAR(grad[i], expected[i], is_noise(p.name, i) ? 1e-6 : 1e-5 * greatest) << p.name << " " << i;
    });
    EXPECT_EQ(compared, original.header().entries.size());
  }
};

/// Two samples of such a file, from the sample `first` on.
class GoldenPair {
 public:
  GoldenPair(Device& device, const checkpoint::TensorFile& file, std::int64_t first)
      : device_(device), file_(file), first_(first) {}

  std::vector<std::int32_t> rows(const std::string& name, std::int64_t length) const {
    const auto all = read<std::int32_t>(file_, name);
    const auto begin = all.begin() + std::ptrdiff_t(first_ * length);
    return {begin, begin + std::ptrdiff_t(2 * length)};
  }
  Sequences sequences(const std::string& tokens, const std::string& mask, std::int64_t length) const {
    std::vector<std::int32_t> places, positions, there;
    for (std::int64_t i = 0; i < length; ++i) {
      places.push_back(std::int32_t(i));
      positions.insert(positions.end(), 2, std::int32_t(i));
    }
    for (const std::int32_t real : rows(mask, length)) there.push_back(real == 1 ? 0 : -1);
    return {.tokens = turned<std::int32_t>(tokens, length),
            .places = from_host(device_, {length}, places),
            .positions = from_host(device_, {length, 2}, positions),
            .types = {},
            .segments = from_host(device_, {2, length}, there)};
  }
  template <class T>
  Tensor turned(const std::string& name, std::int64_t length) const {
    const auto from = rows(name, length);
    std::vector<T> out;
    for (std::int64_t i = 0; i < length; ++i)
      for (std::int64_t row = 0; row < 2; ++row) out.push_back(T(from[std::size_t(row * length + i)]));
    return from_host(device_, {length, 2}, out);
  }
  Tensor samples() const { return from_host(device_, {2}, std::vector<std::int64_t>{first_, first_ + 1}); }

 private:
  Device& device_;
  const checkpoint::TensorFile& file_;
  std::int64_t first_;
};

}  // namespace weft::testing
