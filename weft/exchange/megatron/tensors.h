// Tensors of another program, each put together from chunks in however many files.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "weft/exchange/torch/archive.h"
#include "weft/tensor/dtype.h"
#include "weft/tensor/shape.h"

namespace weft::exchange::megatron {

/// A part of a tensor, which stands as a matrix: rows lie along all dimensions but the last, and a vector is
/// a column.
struct Chunk {
  std::int64_t row = 0, column = 0, rows = 0, columns = 0;  // of the whole
  const torch::Archive* archive = nullptr;                  // that holds it, as a part of this tensor:
  const torch::StoredTensor* stored = nullptr;  // bytes are read, and their sum checked, when asked for
  Dtype dtype = Dtype::f32;
  std::int64_t first = 0, row_step = 0, column_step = 1;  // where its elements are in that tensor's storage
};

struct TheirTensor {
  Shape shape;
  Dtype dtype = Dtype::f32;
  std::vector<Chunk> chunks;

  std::int64_t columns() const { return shape.rank() < 2 ? 1 : shape[shape.rank() - 1]; }
  std::int64_t rows() const { return shape.elements() / columns(); }
};

class Tensors {
 public:
  /// `who` begins messages: the directory.
  explicit Tensors(std::string who) : who_(std::move(who)) {}
  /// Fails with Kind::data where other chunks of it had another shape or type.
  void add(const std::string& name, const Shape& shape, const Chunk& chunk);
  /// Fails with Kind::data where chunks of a tensor overlap, leave it or leave holes.
  void check_whole() const;
  /// Null where there is none.
  const TheirTensor* find(const std::string& name) const;
  const std::map<std::string, TheirTensor>& all() const { return all_; }
  void drop(const std::string& name) { all_.erase(name); }
  /// Nothing of the other name may be there.
  void rename(const std::string& from, const std::string& to);

 private:
  std::string who_;
  std::map<std::string, TheirTensor> all_;
};

/// Some of a row, from its column on.
void read(const TheirTensor& tensor, std::int64_t row, std::int64_t column, std::span<float> to);
/// Whether both hold the same numbers.
bool same(const TheirTensor& a, const TheirTensor& b);

}  // namespace weft::exchange::megatron
