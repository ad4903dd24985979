// The tensors of a Hugging Face model directory, over however many safetensors files they are spread.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/checkpoint/safetensors.h"
#include "weft/exchange/hub_source.h"

namespace weft::exchange {

/// model.safetensors.index.json: which file holds which tensor. Fails with Kind::data on anything that could
/// lead out of the directory.
std::map<std::string, std::string> hub_index_from_json(std::string_view json, const std::string& who);

/// Files are mapped: a tensor's bytes are read when they are touched.
class HubTensors final : public HubSource {
 public:
  /// Fails with Kind::data where index and files contradict each other, or one is missing. With `text`,
  /// tensors go by the names that this gives them, and those that it gives none are others.
  explicit HubTensors(const std::filesystem::path& directory, TextName text = nullptr);

  std::string who() const override { return directory_.string(); }
  std::vector<std::string> names() const override;
  const std::vector<std::string>& others() const override { return others_; }
  const checkpoint::Entry* find(const std::string& name) const override;
  void read(const std::string& name, const Walk& walk, float* to) const override;
  bool same(const std::string& a, const std::string& b) const override;
  std::span<const std::byte> bytes(const std::string& name) const override;

 private:
  struct Placed {
    std::size_t file;
    const checkpoint::Entry* entry;
  };
  void place();
  void add(const std::filesystem::path& file);
  void rename(TextName text);
  std::filesystem::path directory_;
  std::vector<checkpoint::TensorFile> files_;
  std::map<std::string, Placed> placed_;
  std::vector<std::string> others_;
};

}  // namespace weft::exchange
