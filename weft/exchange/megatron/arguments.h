// The arguments that Megatron-LM was started with, as its checkpoints hold them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/exchange/megatron/family.h"
#include "weft/exchange/torch/value.h"
#include "weft/model/config.h"

namespace weft::exchange::megatron {

class Arguments {
 public:
  /// `who` begins messages: the file.
  Arguments(torch::Map args, std::string who) : args_(std::move(args)), who_(std::move(who)) {}

  const std::string& who() const { return who_; }
  /// What is missing or None is `otherwise`; of another kind, Kind::data.
  bool flag(std::string_view name, bool otherwise = false) const;
  std::int64_t whole(std::string_view name, std::int64_t otherwise = 0) const;
  double real(std::string_view name, double otherwise = 0) const;
  /// A text, or the last word of an enum's member or of a type: "bfloat16".
  std::string word(std::string_view name, std::string_view otherwise = "") const;
  /// Null where it is missing or None.
  const torch::Value* find(std::string_view name) const;

 private:
  torch::Map args_;
  std::string who_;
};

/// The model of that family that they describe, complete; a sequence is as long as the run's. Fails with
/// Kind::data, naming the argument, where weft does not compute it.
ModelConfig model_of(const Arguments& args, Family family = Family::gpt);

}  // namespace weft::exchange::megatron
