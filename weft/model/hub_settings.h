// The settings of a config.json, asked for by name; what was not asked for is known in the end.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/error.h"
#include "weft/model/config.h"

namespace weft {

// One JSON object, and which of its settings were asked for.
class HubSettings {
 public:
  using Json = nlohmann::json;
  // Of sizes, so that no hostile file makes a list that memory cannot hold.
  static constexpr std::int64_t most_layers = 10'000;
  static constexpr std::int64_t most_heads = 1 << 16;
  static constexpr std::int64_t widest = 1 << 24;
  static constexpr std::int64_t most = (std::int64_t{1} << 31) - 1;

  HubSettings(const Json& object, std::string who) : object_(object), who_(std::move(who)) {}

  const std::string& who() const { return who_; }
  // Null where it is not there, or is null.
  const Json* find(const char* name) {
    asked_.insert(name);
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  // Whether it is there, though it may be null.
  bool says(const char* name) const { return object_.contains(name); }
  [[noreturn]] void refuse(const char* name, std::string_view expected) {
    const Json* value = find(name);
    fail(Kind::data, who_, ": \"", name, "\" is ", value ? value->dump().substr(0, 80) : "missing", ", ",
         expected);
  }
  std::int64_t size(const char* name, std::int64_t greatest = most) {
    const Json* value = find(name);
    if (value == nullptr || !value->is_number_unsigned() || value->get<std::uint64_t>() < 1 ||
        value->get<std::uint64_t>() > std::uint64_t(greatest))
      refuse(name, text("expected a whole number from 1 to ", greatest));
    return value->get<std::int64_t>();
  }
  // Zero is a number too.
  std::int64_t whole(const char* name, std::int64_t otherwise, std::int64_t greatest) {
    const Json* value = find(name);
    if (value == nullptr) return otherwise;
    if (!value->is_number_unsigned() || value->get<std::uint64_t>() > std::uint64_t(greatest))
      refuse(name, text("expected a whole number from 0 to ", greatest));
    return value->get<std::int64_t>();
  }
  bool asked(const char* name) const { return asked_.contains(name); }
  std::int64_t size_or(const char* name, std::int64_t otherwise, std::int64_t greatest = most) {
    return find(name) == nullptr ? otherwise : size(name, greatest);
  }
  double number(const char* name, double otherwise) {
    const Json* value = find(name);
    if (value == nullptr) return otherwise;
    if (!value->is_number() || !std::isfinite(value->get<double>())) refuse(name, "expected a number");
    return value->get<double>();
  }
  double positive(const char* name, double otherwise) {
    const double value = number(name, otherwise);
    if (!(value > 0)) refuse(name, "expected a number above 0");
    return value;
  }
  double fraction(const char* name, double otherwise) {
    const double value = number(name, otherwise);
    if (!(value >= 0 && value < 1)) refuse(name, "expected a probability below 1");
    return value;
  }
  bool yes(const char* name, bool otherwise) {
    const Json* value = find(name);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) refuse(name, "expected true or false");
    return value->get<bool>();
  }
  std::string word(const char* name, const std::string& otherwise) {
    const Json* value = find(name);
    if (value == nullptr) return otherwise;
    if (!value->is_string()) refuse(name, "expected a text");
    return value->get<std::string>();
  }
  // A setting that weft computes in one way only.
  void must_be(const char* name, const Json& only) {
    const Json* value = find(name);
    if (value != nullptr && *value != only) refuse(name, text("weft can only compute ", only.dump()));
  }
  void must_be_absent(const char* name) {
    if (find(name) != nullptr) refuse(name, "which weft cannot compute");
  }
  /// But for those of training, of other tasks and of programs that run models: they change no logit.
  std::vector<std::string> unasked() const;

 private:
  const Json& object_;
  std::string who_;
  std::set<std::string> asked_;
};

/// Fails where it is no activation that weft knows.
Activation hub_activation(const std::string& word, HubSettings& settings, const char* name);
/// Fails with Kind::usage where they have no word for it.
std::string_view hub_activation_word(Activation activation);

}  // namespace weft
