// One .pt file, and what may be asked of the values in it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/file.h"
#include "weft/exchange/torch/archive.h"
#include "weft/tensor/shape.h"

namespace weft::exchange::deepspeed {

struct Opened {
  explicit Opened(const std::filesystem::path& path);
  MappedFile file;
  std::string who;  // begins messages
  torch::Archive archive;
  /// Its dict; fails with Kind::data where it holds something else.
  const torch::Map& top() const;
  /// A dict in a dict; fails with Kind::data where it is missing or something else.
  const torch::Map& dict(const torch::Map& in, std::string_view key) const;
  /// Null where it is missing or None; fails with Kind::data where it is something else.
  const torch::Map* dict_or_none(const torch::Map& in, std::string_view key) const;
  const std::vector<torch::Value>* list_or_none(const torch::Map& in, std::string_view key) const;
  /// A number, or a tensor of one; none where it is missing or something else.
  std::optional<double> number(const torch::Map& in, std::string_view key) const;
  std::optional<double> number(const torch::Value& value) const;
  /// A whole number from 0 on; 0 where it is missing or something else.
  std::int64_t count(const torch::Map& in, std::string_view key) const;
  std::int64_t count(const torch::Value& value) const;
};

/// Fails with Kind::data where sizes are no whole numbers, or no tensor of weft has them.
Shape shape_of(const torch::Value& sizes, const std::string& who);
Shape shape_of(const torch::StoredTensor& stored, const std::string& who);

}  // namespace weft::exchange::deepspeed
