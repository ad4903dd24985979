// A block at a time, so that partial sums stay in the first cache.
#include "weft/comm/tree_sum.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <vector>

namespace weft {
namespace {

constexpr std::int64_t block = 512;
constexpr int deepest = 16;  // levels: 65536 ranks

/// What a type is added in.
template <class T>
struct Wide {
  using Type = T;
};
template <>
struct Wide<bf16> {
  using Type = float;
};
template <>
struct Wide<f16> {
  using Type = float;
};

template <class T>
class Tree {
 public:
  using Sum = typename Wide<T>::Type;
  Tree(Reduce how, std::span<const void* const> parts) : how_(how), parts_(parts) {}

  /// The reduction of all parts at [from, from + count), in f32 or the type itself.
  const Sum* at(std::int64_t from, std::int64_t count) {
    from_ = from;
    count_ = count;
    reduce(0, parts_.size(), 0);
    return levels_[0].data();
  }

 private:
  void reduce(std::size_t first, std::size_t last, std::size_t level) {
    Sum* out = levels_[level].data();
    if (last - first == 1) {
      const T* part = static_cast<const T*>(parts_[first]) + from_;
      for (std::int64_t i = 0; i < count_; ++i) out[i] = static_cast<Sum>(part[i]);
      return;
    }
    const std::size_t middle = first + (last - first + 1) / 2;
    reduce(first, middle, level);
    reduce(middle, last, level + 1);
    const Sum* other = levels_[level + 1].data();
    if (how_ == Reduce::sum)
      for (std::int64_t i = 0; i < count_; ++i) out[i] += other[i];
    else
      for (std::int64_t i = 0; i < count_; ++i) out[i] = greater(out[i], other[i]);
  }
  // A NaN must not get lost on the way.
  static Sum greater(Sum a, Sum b) { return b > a || b != b ? b : a; }

  Reduce how_;
  std::span<const void* const> parts_;
  std::int64_t from_ = 0, count_ = 0;
  std::array<std::array<Sum, block>, deepest + 1> levels_;
};

template <class T>
void reduce_as(const Reduction& what, std::span<void* const> outs, std::span<const void* const> parts) {
  Tree<T> tree(what.how, parts);
  std::array<T, block> rounded;  // once, whoever gets it
  for (std::int64_t from = 0; from < what.count; from += block) {
    const std::int64_t count = std::min(block, what.count - from);
    const auto* sum = tree.at(from, count);
    for (std::int64_t i = 0; i < count; ++i) rounded[std::size_t(i)] = static_cast<T>(sum[i]);
    for (void* out : outs) std::copy_n(rounded.data(), count, static_cast<T*>(out) + from);
  }
}

}  // namespace

void reduce_parts(const Reduction& what, std::span<void* const> outs, std::span<const void* const> parts) {
  switch (what.dtype) {
    case Dtype::f64:
      return reduce_as<double>(what, outs, parts);
    case Dtype::i64:
      return reduce_as<std::int64_t>(what, outs, parts);
    case Dtype::i32:
      return reduce_as<std::int32_t>(what, outs, parts);
    case Dtype::u8:
      return reduce_as<std::uint8_t>(what, outs, parts);
    default:
      visit_float(what.dtype, [&]<class T>() { reduce_as<T>(what, outs, parts); });
  }
}

}  // namespace weft
