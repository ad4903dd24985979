// Tensors as lines of neighbouring elements: what the loops walk along.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

#include "weft/backend/cpu/fast/loops.h"
#include "weft/tensor/tensor.h"

namespace weft::fast {

/// Results of at least this many bytes are written past the caches.
inline constexpr std::int64_t past_the_caches = std::int64_t{8} << 20;

Type type_of(Dtype dtype);
/// True where all that are not empty hold floats.
bool all_floats(std::initializer_list<const Tensor*> tensors);
/// True where neighbours in the last dimension of all that are not empty are neighbours in memory.
bool in_lines(std::initializer_list<const Tensor*> tensors);
/// What most kernels ask: floats, in lines.
bool ready(std::initializer_list<const Tensor*> tensors);

/// The last dimension of one tensor, for every index of the leading ones in order. An empty tensor gives null
/// lines.
class Lines {
 public:
  explicit Lines(const Tensor& tensor);
  /// A result: written past the caches where that pays, unless it stands where one of these is read.
  Lines(const Tensor& result, std::initializer_list<const Tensor*> read);
  std::int64_t count() const { return count_; }
  std::int64_t width() const { return width_; }
  std::int64_t elements() const { return count_ * width_; }

  std::byte* at(std::int64_t line) const { return first_ ? first_ + offset(line) * size_ : nullptr; }
  In in(std::int64_t line) const { return {at(line), type_}; }
  Out out(std::int64_t line) const { return {at(line), type_, past_}; }
  /// A line and those after it, where lines are even.
  InRows ins(std::int64_t line) const { return {in(line), step()}; }
  OutRows outs(std::int64_t line) const { return {out(line), step()}; }
  bool past() const { return past_; }
  Type type() const { return type_; }
  /// True where all lines are step() bytes apart.
  bool even() const { return even_; }
  std::int64_t step() const { return step_ * size_; }

 private:
  std::int64_t offset(std::int64_t line) const;
  std::byte* first_ = nullptr;
  std::int64_t size_ = 0, count_ = 0, width_ = 0, step_ = 0;
  bool even_ = true;  // all lines are step_ apart
  bool past_ = false;
  Type type_ = Type::f32;
  Shape shape_;
  Strides strides_;
};

/// Seen as one dimension of lines of this many elements where a tensor fills its memory, so that few long
/// lines and many short ones cut alike.
inline constexpr std::int64_t stretch = 8192;

/// A result and what it is made of, of one shape, walked together: in stretches where all fill their memory,
/// else line by line.
class Together {
 public:
  Together(std::initializer_list<const Tensor*> result_and_operands);
  std::int64_t pieces() const { return pieces_; }
  std::int64_t elements() const { return elements_; }
  std::int64_t count(std::int64_t piece) const;
  /// Elements before a piece.
  std::int64_t before(std::int64_t piece) const { return piece * width_; }

  In in(int tensor, std::int64_t piece) const { return {at(tensor, piece), type(tensor)}; }
  Out out(std::int64_t piece) const { return {at(0, piece), type(0), past_}; }
  bool past() const { return past_; }
  std::byte* at(int tensor, std::int64_t piece) const;

 private:
  Type type(int tensor) const { return lines_[std::size_t(tensor)].in(0).type; }
  std::array<Lines, 3> lines_;
  std::array<std::int64_t, 3> sizes_{};
  bool flat_ = true, past_ = false;
  std::int64_t elements_ = 0, pieces_ = 0, width_ = 0;
};

}  // namespace weft::fast
