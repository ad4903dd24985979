// What a family measures, in numbers: sums and what divides them, one for each of its losses.
#pragma once

#include <array>
#include <cstddef>

namespace weft {

/// Something for each loss of a family, by number: it asks the heap for nothing, as a step must not.
template <class T>
class ByLoss {
 public:
  static constexpr std::size_t most = 12;
  ByLoss() = default;
  explicit ByLoss(std::size_t count) : size_(count) {}

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return all_[i]; }
  const T& operator[](std::size_t i) const { return all_[i]; }
  const T* begin() const { return all_.data(); }
  const T* end() const { return all_.data() + size_; }

 private:
  std::array<T, most> all_{};
  std::size_t size_ = 0;
};

/// The sum of a loss's terms, and how many there are.
struct LossSum {
  double sum = 0, count = 0;
  double mean() const { return count > 0 ? sum / count : 0; }
};

/// Of batches that nobody trains on.
using Evaluation = ByLoss<LossSum>;

}  // namespace weft
