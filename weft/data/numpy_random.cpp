// The Mersenne Twister and PCG64 as NumPy drives them. Formulas: docs of MT19937 and PCG; the order of draws:
// NumPy's.
#include "weft/data/numpy_random.h"

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "weft/base/error.h"

namespace weft::data {
namespace {

constexpr std::size_t state_words = 624;
constexpr std::size_t lag = 397;

std::uint32_t twisted(std::uint32_t here, std::uint32_t next, std::uint32_t far) {
  const std::uint32_t y = (here & 0x80000000U) | (next & 0x7fffffffU);
  return far ^ (y >> 1) ^ ((0U - (y & 1U)) & 0x9908b0dfU);
}

std::uint32_t tempered(std::uint32_t y) {
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680U;
  y ^= (y << 15) & 0xefc60000U;
  return y ^ (y >> 18);
}

void seed_state(std::array<std::uint32_t, state_words>& state, std::uint32_t seed) {
  state[0] = seed;
  for (std::uint32_t i = 1; i < state_words; ++i)
    state[i] = 1812433253U * (state[i - 1] ^ (state[i - 1] >> 30)) + i;
}

// The smallest 2^k - 1 that is at least x.
std::uint64_t mask_for(std::uint64_t x) { return x == 0 ? 0 : ~std::uint64_t{0} >> std::countl_zero(x); }

}  // namespace

NumpyRandom::NumpyRandom(std::uint32_t seed) { seed_state(state_, seed); }

NumpyRandom::NumpyRandom(std::span<const std::uint32_t> key) {
  if (key.empty()) fail(Kind::usage, "random seed: an empty list of integers, expected at least one");
  seed_state(state_, 19650218U);
  const auto mixed = [&](std::size_t i, std::uint32_t factor) {
    return state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * factor);
  };
  std::size_t i = 1;
  const auto step = [&] {
    if (++i < state_words) return;
    state_[0] = state_[state_words - 1];
    i = 1;
  };
  for (std::size_t k = 0, j = 0; k < std::max(state_words, key.size()); ++k) {
    state_[i] = mixed(i, 1664525U) + key[j] + static_cast<std::uint32_t>(j);
    step();
    j = j + 1 == key.size() ? 0 : j + 1;
  }
  for (std::size_t k = 1; k < state_words; ++k) {
    state_[i] = mixed(i, 1566083941U) - static_cast<std::uint32_t>(i);
    step();
  }
  state_[0] = 0x80000000U;
}

void NumpyRandom::refill() {
  auto& s = state_;
  for (std::size_t i = 0; i < state_words - lag; ++i) s[i] = twisted(s[i], s[i + 1], s[i + lag]);
  for (std::size_t i = state_words - lag; i < state_words - 1; ++i)
    s[i] = twisted(s[i], s[i + 1], s[i + lag - state_words]);
  s[state_words - 1] = twisted(s[state_words - 1], s[0], s[lag - 1]);
  for (std::size_t i = 0; i < state_words; ++i) tempered_[i] = tempered(s[i]);
  at_ = 0;
}

double NumpyRandom::uniform() {
  const std::uint32_t a = next32() >> 5;
  const std::uint32_t b = next32() >> 6;
  return (a * 67108864.0 + b) / 9007199254740992.0;
}

std::uint64_t NumpyRandom::interval(std::uint64_t max) {
  if (max == 0) return 0;
  const std::uint64_t mask = mask_for(max);
  const bool narrow = max <= std::numeric_limits<std::uint32_t>::max();
  for (;;) {
    const std::uint64_t v = (narrow ? next32() : next64()) & mask;
    if (v <= max) return v;
  }
}

void NumpyRandom::intervals(std::uint32_t top, std::span<std::uint32_t> out) {
  std::size_t k = 0;
  while (k < out.size()) {
    const std::uint32_t first = top - static_cast<std::uint32_t>(k);
    const auto mask = static_cast<std::uint32_t>(mask_for(first));
    // One mask serves until i falls to a half of it; within that stretch the loop has no branch to
    // mispredict.
    const std::size_t stop = k + std::min<std::size_t>(out.size() - k, first - (mask >> 1));
    while (k < stop) {
      if (at_ == state_words) refill();
      for (; at_ < state_words && k < stop; ++at_) {
        const std::uint32_t v = tempered_[at_] & mask;
        out[k] = v;
        k += v <= top - static_cast<std::uint32_t>(k);
      }
    }
  }
}

void NumpyRandom::skip_shuffle(std::size_t size) {
  constexpr std::size_t far = std::size_t{1} << 32;
  for (; size > far; --size) interval(size - 1);
  std::array<std::uint32_t, 512> draws;
  while (size > 1) {
    const std::size_t count = std::min(draws.size(), size - 1);
    intervals(static_cast<std::uint32_t>(size - 1), {draws.data(), count});
    size -= count;
  }
}

std::int64_t NumpyRandom::randint(std::int64_t low, std::int64_t high) {
  if (low >= high) fail(Kind::internal, "randint: no integer in [", low, ", ", high, ")");
  const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) - 1;
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + interval(range));
}

std::size_t NumpyRandom::choice(std::span<const double> probabilities) {
  std::vector<double> cdf(probabilities.size());
  std::partial_sum(probabilities.begin(), probabilities.end(), cdf.begin());
  const double total = cdf.back();
  for (double& c : cdf) c /= total;
  const double u = uniform();
  return static_cast<std::size_t>(std::upper_bound(cdf.begin(), cdf.end(), u) - cdf.begin());
}

std::int64_t NumpyRandom::geometric(double p) {
  if (p < 0.333333333333333333333333) {
    return static_cast<std::int64_t>(std::ceil(std::log1p(-uniform()) / std::log(1.0 - p)));
  }
  std::int64_t tries = 1;
  double sum = p;
  double product = p;
  const double u = uniform();
  while (u > sum) {
    product *= 1.0 - p;
    sum += product;
    ++tries;
  }
  return tries;
}

void torch_randperm(std::uint32_t seed, std::span<std::int64_t> out) {
  const std::uint64_t n = out.size();
  const bool wide = n >= std::numeric_limits<std::uint32_t>::max() / 20;  // one word would favor low places
  NumpyRandom random(seed);
  std::iota(out.begin(), out.end(), std::int64_t{0});
  for (std::uint64_t i = 0; i + 1 < n; ++i) {
    const std::uint64_t draw = wide ? random.next64() : random.next32();
    std::swap(out[i], out[i + draw % (n - i)]);
  }
}

namespace {

// SeedSequence: mixes a seed into a pool of four words, then squeezes as many words as wanted out of it.
class SeedSequence {
 public:
  explicit SeedSequence(std::uint32_t entropy) {
    std::uint32_t constant = 0x43b0d7e5U;
    const auto hash = [&](std::uint32_t v) {
      v ^= constant;
      constant *= 0x931e8875U;
      v *= constant;
      return v ^ (v >> 16);
    };
    for (std::size_t i = 0; i < pool_.size(); ++i) pool_[i] = hash(i == 0 ? entropy : 0U);
    for (std::size_t from = 0; from < pool_.size(); ++from) {
      for (std::size_t to = 0; to < pool_.size(); ++to) {
        if (from == to) continue;
        const std::uint32_t mix = 0xca01f9ddU * pool_[to] - 0x4973f715U * hash(pool_[from]);
        pool_[to] = mix ^ (mix >> 16);
      }
    }
  }

  std::uint64_t next64() {
    const std::uint64_t low = next32();
    return low | (static_cast<std::uint64_t>(next32()) << 32);
  }

 private:
  std::uint32_t next32() {
    std::uint32_t v = pool_[count_++ % pool_.size()] ^ constant_;
    constant_ *= 0x58f38dedU;
    v *= constant_;
    return v ^ (v >> 16);
  }

  std::array<std::uint32_t, 4> pool_{};
  std::uint32_t constant_ = 0x8b51f9ddU;
  std::size_t count_ = 0;
};

__extension__ using Wide = unsigned __int128;

constexpr Wide wide(std::uint64_t high, std::uint64_t low) { return (static_cast<Wide>(high) << 64) | low; }

}  // namespace

NumpyPcg64::NumpyPcg64(std::uint32_t seed) {
  SeedSequence seeds(seed);
  std::array<std::uint64_t, 4> w;
  for (auto& word : w) word = seeds.next64();
  increment_ = (wide(w[2], w[3]) << 1) | 1;
  state_ = increment_ + wide(w[0], w[1]);
  next64();
}

std::uint64_t NumpyPcg64::next64() {
  state_ = state_ * wide(2549297995355413924ULL, 4865540595714422341ULL) + increment_;
  const auto folded = static_cast<std::uint64_t>(state_ >> 64) ^ static_cast<std::uint64_t>(state_);
  return std::rotr(folded, static_cast<int>(state_ >> 122));
}

std::uint32_t NumpyPcg64::next32() {
  if (std::exchange(has_high_half_, false)) return high_half_;
  const std::uint64_t both = next64();
  high_half_ = static_cast<std::uint32_t>(both >> 32);
  has_high_half_ = true;
  return static_cast<std::uint32_t>(both);
}

std::uint32_t NumpyPcg64::interval(std::uint32_t max) {
  const auto mask = static_cast<std::uint32_t>(mask_for(max));
  for (;;)
    if (const std::uint32_t v = next32() & mask; v <= max) return v;
}

// Lemire's rejection, in 32 bits.
std::int32_t NumpyPcg64::integer(std::int32_t low, std::int32_t high) {
  if (low >= high) fail(Kind::internal, "integer: none in [", low, ", ", high, ")");
  const auto count = static_cast<std::uint32_t>(static_cast<std::int64_t>(high) - low);
  std::uint64_t m = static_cast<std::uint64_t>(next32()) * count;
  if (static_cast<std::uint32_t>(m) < count) {
    const std::uint32_t threshold = (0U - count) % count;
    while (static_cast<std::uint32_t>(m) < threshold) m = static_cast<std::uint64_t>(next32()) * count;
  }
  return static_cast<std::int32_t>(low + static_cast<std::int64_t>(m >> 32));
}

}  // namespace weft::data
