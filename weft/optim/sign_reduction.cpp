// Bits of all tensors stand together, a rank's parts one after the other: four words whatever the model.
#include "weft/optim/sign_reduction.h"

#include <algorithm>
#include <numeric>

#include "weft/ops/adam.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/reduce.h"
#include "weft/tensor/exact_sum.h"

namespace weft {
namespace {

constexpr std::int64_t ones = -exact_lowest_exponent / exact_digit_bits;  // the digit that counts them

/// size f32 [1] = the norm of x over that of as many ones: the root of the mean of its squares.
void find_size(const Tensor& size, const Tensor& digits, const Tensor& x) {
  ops::fill(digits, 0);
  ops::sum_squares_into(digits.slice(1, 0, 1).view({exact_digits}), x);
  ops::fill(digits.slice(1, 1, 1).slice(2, ones, 1), double(x.elements()));
  ops::norm_ratios_into(size, digits, {.of_zero = 0});
}

Tensor row(const Tensor& table, int rank) { return table.at(0, rank); }

}  // namespace

SignReduction::SignReduction(Device& device, Communicator& circle, std::span<const std::int64_t> elements)
    : circle_(circle), one_row_(std::size_t(circle.size()), 1) {
  const std::int64_t ranks = circle.size(), unit = ranks * (8 * ranks / std::gcd(ranks, std::int64_t{8}));
  std::int64_t bytes = 0, longest = 0;
  for (const std::int64_t n : elements) {
    const std::int64_t padded = (n + unit - 1) / unit * unit;
    parts_.push_back({padded / ranks, bytes});
    bytes += padded / ranks / 8;
    longest = std::max(longest, padded);
    worker_errors_.push_back(ops::zeros(device, {padded}, Dtype::f32, Use::optimizer));
    server_errors_.push_back(ops::zeros(device, {padded / ranks}, Dtype::f32, Use::optimizer));
  }
  const auto tensors = std::int64_t(parts_.size());
  mine_ = ops::zeros(device, {ranks, bytes}, Dtype::u8, Use::communication);
  theirs_ = ops::zeros(device, {ranks, bytes}, Dtype::u8, Use::communication);
  own_bits_ = ops::zeros(device, {bytes}, Dtype::u8, Use::communication);
  own_sizes_ = ops::zeros(device, {tensors}, Dtype::f32, Use::communication);
  sizes_ = ops::zeros(device, {ranks, tensors}, Dtype::f32, Use::communication);
  digits_ = ops::zeros(device, {1, 2, exact_digits}, Dtype::f64, Use::communication);
  scratch_ = ops::zeros(device, {longest}, Dtype::f32, Use::optimizer);
}

void SignReduction::forget_errors() {
  for (const auto* errors : {&worker_errors_, &server_errors_})
    for (const Tensor& error : *errors) ops::fill(error, 0);
}

Tensor SignReduction::signs_of(const Tensor& bits, int rank, std::size_t tensor) const {
  return row(bits, rank).slice(0, parts_[tensor].at, parts_[tensor].elements / 8);
}

Tensor SignReduction::own_size(std::size_t tensor) const {
  return own_sizes_.slice(0, std::int64_t(tensor), 1);
}
Tensor SignReduction::size_from(int rank, std::size_t tensor) const {
  return row(sizes_, rank).slice(0, std::int64_t(tensor), 1);
}

void SignReduction::reduce(std::span<const Tensor> x) {
  send_to_adders(x);
  add_and_tell();
  for (std::size_t i = 0; i < x.size(); ++i) take(x[i], i);
}

// c = x + error,  s = |c| / sqrt(n),  error = c - s sign(c); rank j gets the j-th part of the signs.
void SignReduction::send_to_adders(std::span<const Tensor> x) {
  const int ranks = circle_.size();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Tensor& error = worker_errors_[i];
    ops::add_scaled_into(error.slice(0, 0, x[i].elements()), x[i]);
    const Tensor size = own_size(i);
    find_size(size, digits_, error);
    const std::int64_t part = parts_[i].elements;
    for (int j = 0; j < ranks; ++j)
      ops::take_signs_into(signs_of(mine_, j, i), error.slice(0, j * part, part), size);
  }
  circle_.all_to_all(theirs_, mine_, one_row_, one_row_).wait();
  circle_.all_gather(sizes_.view({sizes_.elements()}), own_sizes_).wait();
  bytes_sent_ += (ranks - 1) * (own_bits_.bytes() + own_sizes_.bytes());
}

// y = mean of signs times sizes + error, sent on in the same way.
void SignReduction::add_and_tell() {
  const int ranks = circle_.size();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Tensor& error = server_errors_[i];
    for (int r = 0; r < ranks; ++r)
      ops::add_signs_into(error, signs_of(theirs_, r, i), size_from(r, i), float(ranks));
    const Tensor size = own_size(i);
    find_size(size, digits_, error);
    ops::take_signs_into(own_bits_.slice(0, parts_[i].at, parts_[i].elements / 8), error, size);
  }
  circle_.all_gather(theirs_.view({theirs_.elements()}), own_bits_).wait();
  circle_.all_gather(sizes_.view({sizes_.elements()}), own_sizes_).wait();
  bytes_sent_ += (ranks - 1) * (own_bits_.bytes() + own_sizes_.bytes());
}

void SignReduction::take(const Tensor& x, std::size_t tensor) const {
  const std::int64_t part = parts_[tensor].elements;
  const Tensor whole = scratch_.slice(0, 0, part * circle_.size());
  ops::fill(whole, 0);
  for (int r = 0; r < circle_.size(); ++r)
    ops::add_signs_into(whole.slice(0, r * part, part), signs_of(theirs_, r, tensor), size_from(r, tensor));
  ops::copy_into(x, whole.slice(0, 0, x.elements()));
}

}  // namespace weft
