// A Hugging Face model's weights as ours: read a box at a time, whatever layout asks.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>

#include "weft/checkpoint/named.h"
#include "weft/comm/communicator.h"
#include "weft/exchange/hub_tensors.h"
#include "weft/exchange/recipe.h"

namespace weft::exchange {

class HubWeights {
 public:
  /// Fails with Kind::data, naming the tensor, unless every tensor of the directory belongs to the model and
  /// the model has all of its.
  HubWeights(const std::filesystem::path& directory, const HubConfig& config);

  const std::vector<Recipe>& all() const { return recipes_; }
  /// Fails with Kind::usage where the model has no tensor of that name.
  const Recipe& at(const std::string& ours) const;
  /// The elements of ours from `first` on, row by row.
  void read(const Recipe& recipe, std::int64_t first, std::span<float> to) const;
  /// The type that a tensor of ours is stored in: the widest of its parts'.
  Dtype dtype(const Recipe& recipe) const;
  /// What is passed over, to be said once.
  const std::vector<std::string>& notices() const { return notices_; }

 private:
  void account_for(const HubConfig& config);
  void check_part(const Recipe& recipe, Theirs& theirs, const ModelConfig& model);
  bool check_packed(const Theirs& theirs);
  void check_coded(const Theirs& theirs) const;
  bool is_coded(const Theirs& theirs) const;
  void read_coded(const Theirs& theirs, std::int64_t row, std::int64_t column, std::span<float> to) const;
  std::vector<std::string> stored_as(const Theirs& theirs) const;
  void read_row(const Theirs& theirs, std::int64_t row, std::int64_t column, std::span<float> to) const;
  void check_tied(const std::string& theirs, const std::string& ours) const;
  HubTensors tensors_;
  std::optional<CodeBlocks> blocks_;
  std::vector<Recipe> recipes_;
  std::map<std::string, std::size_t> places_;
  std::vector<std::string> notices_;
  std::set<std::string> packed_;  // of theirs, those that stand in four bits, under two names
};

/// Every rank of `world` calls it. Fills every piece of `mine`, which are weights under our names, rounding
/// to the type they have.
void load_hub(const HubWeights& weights, std::span<const checkpoint::Named> mine, Communicator& world);

/// The same for the model that a run has built: its settings must be those of the directory's config.json.
/// Returns what should be said once.
std::vector<std::string> load_hugging_face(const std::filesystem::path& directory, const ModelConfig& run,
                                           std::span<const checkpoint::Named> mine, Communicator& world);

/// The model's tensors under our names, on a device without memory: bytes are read from the directory when
/// they are copied to the host. What checkpoint::save needs to write a model that is larger than memory.
class HubDevice;
struct Streamed {
  std::unique_ptr<HubDevice> device;
  std::vector<checkpoint::Named> tensors;
  Streamed();
  Streamed(Streamed&&) noexcept;
  ~Streamed();
};
/// `as`: the type they are to be stored in.
Streamed stream(const HubWeights& weights, const std::function<Dtype(const Recipe&)>& as);

}  // namespace weft::exchange
