// NumPy's legacy RandomState, word for word, so that Megatron's sample orders and ours agree; and PCG64 for
// mock data.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace weft::data {

/// The Mersenne Twister behind numpy.random.RandomState. Every method draws exactly the words that NumPy's
/// method of that name draws.
class NumpyRandom {
 public:
  explicit NumpyRandom(std::uint32_t seed);                  // RandomState(int)
  explicit NumpyRandom(std::span<const std::uint32_t> key);  // RandomState([ints])

  std::uint32_t next32() {
    if (at_ == words) refill();
    return tempered_[at_++];
  }
  std::uint64_t next64() {  // the first word drawn is the high half
    const std::uint64_t high = next32();
    return (high << 32) | next32();
  }
  double uniform();                                           // random_sample(), in [0, 1)
  std::uint64_t interval(std::uint64_t max);                  // in [0, max]; draws nothing for 0
  std::int64_t randint(std::int64_t low, std::int64_t high);  // in [low, high)
  std::size_t choice(std::span<const double> probabilities);  // an index
  std::int64_t geometric(double p);

  template <class T>
  void shuffle(std::span<T> x) {
    constexpr std::size_t far = std::size_t{1} << 32;
    std::size_t i = x.size();
    for (; i > far; --i) std::swap(x[i - 1], x[interval(i - 1)]);
    // Draws come in blocks ahead of the swaps they decide, so that the memory they touch is already under
    // way.
    std::array<std::uint32_t, 512> draws;
    while (i > 1) {
      const std::size_t count = std::min(draws.size(), i - 1);
      intervals(static_cast<std::uint32_t>(i - 1), {draws.data(), count});
      for (std::size_t k = 0; k < count; ++k) __builtin_prefetch(&x[draws[k]], 1);
      for (std::size_t k = 0; k < count; ++k) std::swap(x[--i], x[draws[k]]);
    }
  }
  /// Draws what shuffle() of so many elements draws, and moves nothing.
  void skip_shuffle(std::size_t size);

 private:
  static constexpr std::size_t words = 624;
  void refill();
  /// out[k] = interval(top - k) for every k; top >= out.size().
  void intervals(std::uint32_t top, std::span<std::uint32_t> out);

  std::array<std::uint32_t, words> state_{};
  std::array<std::uint32_t, words> tempered_{};
  std::size_t at_ = words;
};

/// torch.randperm(out.size()) on the CPU after manual_seed(seed).
void torch_randperm(std::uint32_t seed, std::span<std::int64_t> out);

/// numpy.random.default_rng(seed): its methods of those names draw the same numbers.
class NumpyPcg64 {
 public:
  explicit NumpyPcg64(std::uint32_t seed);
  std::uint64_t next64();
  double uniform() { return static_cast<double>(next64() >> 11) / 9007199254740992.0; }  // random()
  std::int32_t integer(std::int32_t low, std::int32_t high);  // integers(dtype=int32), in [low, high)

  template <class T>
  void shuffle(std::span<T> x) {  // of less than 2^32 elements
    for (std::size_t i = x.size(); i > 1; --i)
      std::swap(x[i - 1], x[interval(static_cast<std::uint32_t>(i - 1))]);
  }

 private:
  std::uint32_t next32();
  std::uint32_t interval(std::uint32_t max);  // in [0, max], as shuffle() draws it

  __extension__ using Wide = unsigned __int128;
  Wide state_ = 0;
  Wide increment_ = 0;
  std::uint32_t high_half_ = 0;
  bool has_high_half_ = false;
};

}  // namespace weft::data
