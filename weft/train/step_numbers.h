// What a step has to tell, as sums on the device, until the host reads all of it at once.
#pragma once

#include <array>
#include <span>

#include "weft/mesh/mesh.h"
#include "weft/model/kind.h"
#include "weft/optim/norms.h"
#include "weft/tensor/exact_sum.h"
#include "weft/train/losses.h"

namespace weft {

/// Losses are sums in which no order of microbatches shows. Made anew for every step; asks the heap for
/// nothing.
class StepNumbers {
 public:
  StepNumbers(Device& device, const ProcessMesh& mesh, std::size_t losses);
  /// A loss's terms, each times so much.
  void add(std::size_t loss, const Tensor& terms, float share);
  /// Tokens, or samples, that count on this rank.
  void count_tokens(double here);
  void count_samples(double here);
  /// The same of what a mask on the device says.
  void count_samples(const Tensor& mask);
  /// Losses and counts of all ranks that read other samples or hold other layers: whoever measured nothing
  /// has zeros.
  void everywhere();
  /// For optim/norms.h: what becomes a norm, and a number of zeros.
  Tensor squares() const { return sums_.slice(0, losses_, norm_parts); }
  Tensor zeros() const { return single(first_zeros, norm_parts); }

  /// Here the host waits; what follows is of what stood there then.
  void read();
  double loss(std::size_t i) const { return exact_value(row(i)); }
  double tokens() const { return row(last())[0]; }
  double samples() const { return row(last())[1]; }
  std::span<const double> read_squares() const {
    return std::span(host_).subspan(std::size_t(losses_) * exact_digits, norm_parts * exact_digits);
  }
  std::span<const double> read_zeros() const { return row(last()).subspan(first_zeros, norm_parts); }

 private:
  static constexpr int first_zeros = 2;
  std::size_t last() const { return std::size_t(losses_ + norm_parts); }
  std::span<const double, exact_digits> row(std::size_t i) const {
    return std::span(host_).subspan(i * exact_digits).first<exact_digits>();
  }
  Tensor single(std::int64_t from, std::int64_t count) const {
    return sums_.slice(0, losses_ + norm_parts, 1).view({exact_digits}).slice(0, from, count);
  }

  const ProcessMesh& mesh_;
  std::int64_t losses_;
  Tensor sums_;  // f64 [losses, parts of the norm, and one with tokens, samples and zeros; exact_digits]
  std::array<double, (ByLoss<double>::most + norm_parts + 1) * exact_digits> host_{};
};

}  // namespace weft
