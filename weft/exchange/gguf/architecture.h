// What llama.cpp calls models, their tensors and their settings, beside what Hugging Face calls them. One
// table serves both ways: what a file says is read back before it is written, and must be the model.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/exchange/gguf/values.h"
#include "weft/model/config.h"

namespace weft::exchange::gguf {

using Json = nlohmann::ordered_json;

/// How a tensor's rows stand in a file.
enum class Order : std::uint8_t {
  same,
  turned,   // theirs is stored [in, out], and a file has [out, in]
  queries,  // of each head the two halves in turn: rows 0, d/2, 1, d/2 + 1, …
  keys      // the same of key heads
};

/// In a layer's names "*" is an expert's number: in a file all experts' tensors of a kind are one.
struct TensorName {
  std::string_view theirs, ours;
  Order order = Order::same;
  int plus = 0;  // a file's numbers are so much more: gains that they store around zero
};

/// A setting that both say in one number. Keys begin with the architecture's name, which is left out here.
struct Setting {
  std::string_view key, theirs;
  bool whole = true;
  /// Where a file says nothing: what stands under another key; empty: it must say it.
  std::string_view otherwise = {};
};

/// What a file that is read, or is to be written, holds.
struct Contents {
  std::string who;
  const Values* values = nullptr;
  /// Sizes of a tensor, the innermost first; null where there is none.
  std::function<const std::vector<std::int64_t>*(const std::string&)> sizes;

  bool has(const std::string& tensor) const { return sizes(tensor) != nullptr; }
};

/// A file's keys by name. What is there is of the kind that is asked for, or refused.
class Keys {
 public:
  Keys(const Contents& contents, std::string architecture)
      : contents_(contents), architecture_(std::move(architecture)) {}

  const Contents& contents() const { return contents_; }
  /// "llama.block_count"
  std::string key(std::string_view name) const { return architecture_ + "." + std::string(name); }
  std::optional<std::int64_t> whole(std::string_view name) const;
  std::optional<double> real(std::string_view name) const;
  std::optional<std::string> word(std::string_view name) const;
  /// None also where it is one number.
  std::optional<std::vector<std::int64_t>> list(std::string_view name) const;
  std::int64_t must_be_whole(std::string_view name) const;
  /// Fails with Kind::data where it is there and something else.
  void must_be(std::string_view name, std::int64_t only) const;
  [[noreturn]] void refuse(std::string_view name, std::string_view expected) const;

 private:
  const Value* find(std::string_view name) const { return contents_.values->find(key(name)); }
  const Contents& contents_;
  std::string architecture_;
};

/// What is written under an architecture's name.
class KeysToWrite {
 public:
  KeysToWrite(Values& values, std::string architecture)
      : values_(values), architecture_(std::move(architecture)) {}
  void add(std::string_view name, Value value) {
    (void)values_.add(architecture_ + "." + std::string(name), std::move(value));
  }

 private:
  Values& values_;
  std::string architecture_;
};

struct Architecture {
  std::string_view name;
  std::span<const std::string_view>
      types;                // "model_type" of those that it can be; the first is the usual one
  std::string_view layers;  // what the names of theirs begin with in a layer
  std::vector<std::span<const TensorName>> names;
  std::vector<std::span<const Setting>> settings;
  /// What is no plain setting, from config.json and back to it.
  void (*write)(const Json& theirs, KeysToWrite& keys);
  void (*read)(const Keys& keys, Json& theirs);
  bool stretches_by_tensor = false;  // llama3 scaling stands in rope_freqs.weight
};

/// Fails with Kind::usage where weft has none for such a model.
const Architecture& architecture_of_type(std::string_view type);
/// Fails with Kind::data where weft does not read it.
const Architecture& architecture_named(const std::string& name, const std::string& who);

/// Keys of the model, from its config.json.
void write_settings(const Architecture& architecture, const Json& theirs, Values& to);
/// A config.json, from a file's keys and tensors.
Json read_settings(const Architecture& architecture, const Contents& contents);

/// Angles in settings and keys, which all rotary architectures have in common.
void write_rotary(const Json& theirs, KeysToWrite& keys);
void read_rotary(const Keys& keys, Json& theirs);

inline constexpr const char* frequencies_name = "rope_freqs.weight";
/// By how much each pair of channels turns slower, as llama3 scaling has it.
std::vector<float> stretched_by(const RotaryConfig& rotary, std::int64_t channels);
/// That of a config.json of llama3 scaling; none: it has no such scaling.
std::optional<RotaryConfig> llama3_of(const Json& theirs);
/// Says that scaling in a config.json, where a file's tensor has such factors. Fails with Kind::data where it
/// is no scaling that weft knows.
void read_stretched(const Keys& keys, std::span<const float> factors, Json& theirs);

}  // namespace weft::exchange::gguf
