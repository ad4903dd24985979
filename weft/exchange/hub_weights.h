// A Hugging Face model's weights as ours.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "weft/exchange/hub_config.h"
#include "weft/exchange/hub_tensors.h"
#include "weft/exchange/their_weights.h"

namespace weft::exchange {

class HubWeights final : public TheirWeights {
 public:
  /// Fails with Kind::data, naming the tensor, unless every tensor of the directory belongs to the model and
  /// the model has all of its.
  HubWeights(const std::filesystem::path& directory, const HubConfig& config);
  /// The same of other files. With an `ending`, what is read stands beside weights under that name, and what
  /// no tensor is there for has none: an average that an optimizer keeps.
  HubWeights(std::shared_ptr<const HubSource> tensors, const HubConfig& config, std::string ending = {});

 private:
  Dtype dtype_of_part(const Theirs& theirs) const override;
  void read_row(const Theirs& theirs, std::int64_t row, std::int64_t column,
                std::span<float> to) const override;
  void account_for(const HubConfig& config);
  void check_part(const Recipe& recipe, Theirs& theirs, const ModelConfig& model);
  bool check_packed(const Theirs& theirs);
  void check_coded(const Theirs& theirs) const;
  bool is_coded(const Theirs& theirs) const;
  void read_coded(const Theirs& theirs, std::int64_t row, std::int64_t column, std::span<float> to) const;
  std::vector<std::string> stored_as(const Theirs& theirs) const;
  void check_tied(const std::string& theirs, const std::string& ours) const;
  std::shared_ptr<const HubSource> tensors_;
  std::string ending_;
  std::optional<CodeBlocks> blocks_;
  std::set<std::string> packed_;  // of theirs, those that stand in four bits, under two names
};

}  // namespace weft::exchange
