// torch_dist: .metadata says in which files the chunks of every tensor and every object lie, each a stream of
// torch.save.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/file.h"
#include "weft/exchange/torch/archive.h"

namespace weft::exchange::megatron {

using Numbers = std::vector<std::int64_t>;

/// A chunk of a tensor, and where it lies in it.
struct Box {
  Numbers from, size;
};
struct Boxes {
  Numbers whole;
  std::vector<Box> chunks;
};

class Items {
 public:
  explicit Items(std::filesystem::path directory);

  const std::string& who() const { return who_; }
  /// Keys of what lies in chunks, and of what does not.
  const std::map<std::string, const torch::Map*>& tensors() const { return tensors_; }
  bool has_object(const std::string& key) const { return places_.contains({key, {}}); }
  std::vector<std::string> objects() const;
  /// Fails with Kind::data where they are none.
  Boxes boxes_of(const std::string& tensor) const;
  /// Opened whenever it is asked for, and open for as long as this lives. Fails with Kind::data where the
  /// index or the file has it not.
  const torch::Archive& open(const std::string& key, const Numbers& at = {});
  /// A tensor's chunk: one block of memory, as large as its box.
  struct Opened {
    const torch::Archive& archive;
    const torch::StoredTensor& tensor;
  };
  Opened open_chunk(const std::string& key, const Box& box);
  /// "DIRECTORY/FILE: KEY"
  std::string name_of(const std::string& key, const Numbers& at = {}) const;

 private:
  struct Place {
    std::string file;
    std::int64_t offset = 0, length = 0;
  };
  void find_places(const torch::Map& storage);
  const Place& place_of(const std::string& key, const Numbers& at) const;
  std::span<const std::byte> bytes_of(const Place& place);

  std::filesystem::path directory_;
  std::string who_;
  torch::Value index_;
  std::map<std::string, const torch::Map*> tensors_;
  std::map<std::pair<std::string, Numbers>, Place> places_;
  std::map<std::string, MappedFile> files_;
  std::vector<std::unique_ptr<torch::Archive>> archives_;
};

}  // namespace weft::exchange::megatron
