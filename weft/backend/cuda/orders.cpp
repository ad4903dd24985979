#include "weft/backend/cuda/orders.h"

#include <cstring>
#include <functional>

namespace weft::cuda {
namespace {

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

}  // namespace

std::size_t Orders::put(const void* bytes, std::size_t count) {
  const std::size_t at = bytes_.size();
  bytes_.resize(at + aligned(count));
  std::memcpy(bytes_.data() + at, bytes, count);
  return at;
}

void Orders::add(const gpu::Launch& launch) {
  if (launch.count > most_arguments)
    fail(Kind::internal, "cuda: a kernel of ", launch.count, " arguments, and ", most_arguments,
         " can be kept");
  Order order{launch.kernel, nullptr, launch.shape, bytes_.size(), 0, launch.sizes, launch.count};
  for (int i = 0; i < launch.count; ++i) put(launch.arguments[i], launch.sizes[i]);
  order.bytes = bytes_.size() - order.at;
  all_.push_back(order);
}

void Orders::add_call(Order order, const void* bytes) {
  order.at = put(bytes, order.bytes);
  all_.push_back(order);
}

void Orders::clear() {
  all_.clear();
  bytes_.clear();
}

// Nobody writes through them: it is CUDA's word for them that is not const.
void Orders::point(const Order& order, void** arguments) const {
  std::size_t at = order.at;
  for (int i = 0; i < order.count; at += aligned(order.sizes[i++]))
    arguments[i] = const_cast<std::byte*>(bytes_.data() + at);
}

void Orders::play(std::size_t i, cudaStream_t stream) const {
  if (all_[i].call) return all_[i].call(bytes_.data() + all_[i].at, stream);
  with_launch(i, [stream](const gpu::Launch& launch) { ask(stream, launch); });
}

std::size_t Orders::hash_of_kinds() const {
  std::size_t out = all_.size();
  for (const Order& order : all_)
    for (const void* part : {order.what, order.kind})
      out = (out ^ std::hash<const void*>()(part)) * 0x9E3779B97F4A7C15U;
  return out;
}

bool Orders::same_kinds(const Orders& other) const {
  if (size() != other.size()) return false;
  for (std::size_t i = 0; i < size(); ++i)
    if (!all_[i].same_kind(other.all_[i])) return false;
  return true;
}

bool Orders::same(std::size_t i, const Orders& other) const {
  const Order &mine = all_[i], &its = other.all_[i];
  return mine.shape == its.shape && mine.bytes == its.bytes &&
         std::memcmp(bytes_.data() + mine.at, other.bytes_.data() + its.at, mine.bytes) == 0;
}

}  // namespace weft::cuda
