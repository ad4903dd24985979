// Tensors of a DeepSpeed checkpoint: runs of numbers in flat buffers of however many files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "weft/exchange/hub_source.h"
#include "weft/exchange/torch/archive.h"

namespace weft::exchange::deepspeed {

/// Elements that lie next to each other in one storage, as a part of a tensor.
struct Piece {
  std::int64_t begin = 0, count = 0;  // of the tensor
  const torch::Archive* archive = nullptr;
  const torch::StoredTensor* stored = nullptr;  // bytes are read, and their sum checked, when asked for
  std::int64_t first = 0;                       // of the storage
};

/// Buffers of several files, one behind the other.
class Tape {
 public:
  /// `who` begins messages: the checkpoint's directory and what this is of it.
  explicit Tape(std::string who) : who_(std::move(who)) {}
  /// Fails with Kind::data unless its numbers are floats that lie next to each other.
  void add(const torch::Archive& archive, const torch::StoredTensor& stored);
  std::int64_t length() const { return length_; }
  Dtype dtype() const { return dtype_; }
  /// Adds elements from `from` on to the end of a tensor. Fails with Kind::data where there are not as many.
  void cut(const std::string& name, std::int64_t from, std::int64_t count, std::vector<Piece>& into) const;

 private:
  std::string who_;
  std::vector<Piece> buffers_;
  std::int64_t length_ = 0;
  Dtype dtype_ = Dtype::f32;
};

class Tensors final : public HubSource {
 public:
  explicit Tensors(std::string who) : who_(std::move(who)) {}

  /// The pieces fill it in order. Fails with Kind::data where there is one of that name.
  void add(const std::string& name, const Shape& shape, Dtype dtype, std::vector<Piece> pieces);
  /// One that goes by a second name, where there is one of the first and none of the second.
  void also(const std::string& second, const std::string& first);
  /// From now on tensors go by the names that this gives them, and those that it gives none are others.
  void rename(TextName text);
  bool empty() const { return all_.empty(); }

  std::string who() const override { return who_; }
  std::vector<std::string> names() const override;
  const std::vector<std::string>& others() const override { return others_; }
  const checkpoint::Entry* find(const std::string& name) const override;
  void read(const std::string& name, const Walk& walk, float* to) const override;
  bool same(const std::string& a, const std::string& b) const override;
  std::span<const std::byte> bytes(const std::string& name) const override;

 private:
  struct Held {
    checkpoint::Entry entry;
    std::vector<Piece> pieces;
  };
  std::string who_;
  std::map<std::string, Held> all_;
  std::vector<std::string> others_;
};

}  // namespace weft::exchange::deepspeed
