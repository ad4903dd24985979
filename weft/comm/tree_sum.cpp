// A block at a time, so that partial sums stay in the first cache.
#include "weft/comm/tree_sum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>

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

template <class T, class Sum>
void widen(Sum* out, const T* part, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<Sum>(part[i]);
}
template <class T, class Sum>
void round_to(T* out, const Sum* sums, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(sums[i]);
}

// A word holds two bf16, and a float is one of them in the word's upper half: no lane changes its width. In
// between, the first of each two lie before the second ones.

void widen(float* out, const bf16* part, std::int64_t count) {
  const std::int64_t words = count / 2;
  for (std::int64_t i = 0; i < words; ++i) {
    std::uint32_t word;
    std::memcpy(&word, part + 2 * i, sizeof word);
    out[i] = std::bit_cast<float>(word << 16);
    out[words + i] = std::bit_cast<float>(word & 0xffff0000U);
  }
  if (count % 2 != 0) out[count - 1] = part[count - 1];
}

/// As bf16's constructor rounds, but the result is left in the upper half.
std::uint32_t rounded_above(float x) {
  const auto all = std::bit_cast<std::uint32_t>(x);
  const bool is_nan = (all & 0x7fffffffU) > 0x7f800000U;
  return is_nan ? all | 0x400000U : all + 0x7fffU + (all >> 16 & 1U);
}

void round_to(bf16* out, const float* sums, std::int64_t count) {
  const std::int64_t words = count / 2;
  for (std::int64_t i = 0; i < words; ++i) {
    const std::uint32_t word = rounded_above(sums[i]) >> 16 | (rounded_above(sums[words + i]) & 0xffff0000U);
    std::memcpy(out + 2 * i, &word, sizeof word);
  }
  if (count % 2 != 0) out[count - 1] = bf16(sums[count - 1]);
}

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
      widen(out, part_at(first), count_);
    } else {
      const std::size_t middle = first + (last - first + 1) / 2;
      if constexpr (std::is_same_v<T, Sum>) {
        if (last - first == 2) return join(out, part_at(first), part_at(first + 1));
      }
      reduce(first, middle, level);
      reduce(middle, last, level + 1);
      join(out, out, levels_[level + 1].data());
    }
  }

  const T* part_at(std::size_t i) const { return static_cast<const T*>(parts_[i]) + from_; }

  void join(Sum* out, const Sum* a, const Sum* b) const {
    if (how_ == Reduce::sum)
      for (std::int64_t i = 0; i < count_; ++i) out[i] = static_cast<Sum>(a[i] + b[i]);
    else
      for (std::int64_t i = 0; i < count_; ++i) out[i] = greater(a[i], b[i]);
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
  for (std::int64_t from = 0; from < what.count; from += block) {
    const std::int64_t count = std::min(block, what.count - from);
    const auto* sum = tree.at(from, count);
    const auto give = [&](const T* result) {
      for (void* out : outs) std::copy_n(result, count, static_cast<T*>(out) + from);
    };
    if constexpr (std::is_same_v<T, typename Tree<T>::Sum>) {
      give(sum);
    } else {
      std::array<T, block> rounded;  // once, whoever gets it
      round_to(rounded.data(), sum, count);
      give(rounded.data());
    }
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
