#include "weft/data/numpy_random.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/data/golden.h"

using namespace weft::data;

namespace {

std::vector<std::int64_t> shuffled_range(NumpyRandom& random, std::int64_t from, std::int64_t to) {
  std::vector<std::int64_t> x(static_cast<std::size_t>(to - from));
  std::iota(x.begin(), x.end(), from);
  random.shuffle(std::span(x));
  return x;
}

std::vector<double> inverse_ngrams(int n) {
  std::vector<double> p;
  double sum = 0;
  for (int i = 1; i <= n; ++i) sum += 1.0 / i;
  for (int i = 1; i <= n; ++i) p.push_back(1.0 / i / sum);
  return p;
}

}  // namespace

TEST(NumpyRandom, draws_numpys_words_doubles_and_wide_integers) {
  for (const Json& c : golden("numpy_randomstate", "seeds")) {
    const std::uint32_t seed = c["seed"];
    NumpyRandom words(seed);
    for (const std::uint32_t expected : c["first_10_uint32"]) EXPECT_EQ(words.next32(), expected);
    NumpyRandom doubles(seed);
    for (const Json& hex : c["first_6_random_sample_hex"]) EXPECT_EQ(doubles.uniform(), double_of_hex(hex));
    NumpyRandom wide(seed);
    for (const std::uint64_t expected : c["randint_0_2pow63_uint64_size4"])
      EXPECT_EQ(wide.interval((std::uint64_t{1} << 63) - 1), expected);
  }
}

TEST(NumpyRandom, shuffles_as_numpy_does_at_every_size) {
  for (const Json& c : golden("numpy_randomstate", "seeds")) {
    for (const auto& [size, expected] : c["shuffle"].items()) {
      NumpyRandom random(c["seed"].get<std::uint32_t>());
      EXPECT_EQ(shuffled_range(random, 0, std::stoll(size)), expected.get<std::vector<std::int64_t>>());
    }
  }
}

TEST(NumpyRandom, shuffles_a_million_elements_as_numpy_does_and_stops_at_the_same_word) {
  for (const Json& c : golden("numpy_randomstate", "seeds")) {
    for (const auto& [size, expected] : c["shuffle_large"].items()) {
      NumpyRandom random(c["seed"].get<std::uint32_t>());
      NumpyRandom skipping(c["seed"].get<std::uint32_t>());
      EXPECT_EQ(sha256_of(shuffled_range(random, 0, std::stoll(size))), expected["sha256_int64_le"]);
      EXPECT_EQ(random.next32(), expected["next_uint32_after_shuffle"]);
      skipping.skip_shuffle(std::stoull(size));
      EXPECT_EQ(skipping.next32(), expected["next_uint32_after_shuffle"]);
    }
  }
}

TEST(NumpyRandom, goes_on_from_one_shuffle_to_the_next) {
  for (const Json& c : golden("numpy_randomstate", "seeds")) {
    NumpyRandom random(c["seed"].get<std::uint32_t>());
    const Json& expected = c["consecutive_shuffles_12_20_then_range20_27"];
    EXPECT_EQ(Json(shuffled_range(random, 0, 12)), expected[0]);
    EXPECT_EQ(Json(shuffled_range(random, 0, 20)), expected[1]);
    EXPECT_EQ(Json(shuffled_range(random, 20, 27)), expected[2]);
  }
}

TEST(NumpyRandom, answers_the_calls_of_the_masked_datasets_as_numpy_does) {
  for (const Json& c : golden("numpy_legacy_calls", "items")) {
    const std::uint32_t seed = c["seed"];
    NumpyRandom mixed(seed);
    for (const Json& call : c["interleaved_randint_random"]) {
      if (call["call"] == "randint") {
        EXPECT_EQ(mixed.randint(call["low"], call["high"]), call["value"].get<std::int64_t>());
      } else {
        EXPECT_EQ(mixed.uniform(), double_of_hex(call["hex"]));
      }
    }
    NumpyRandom row(seed);
    for (const std::int64_t expected : c["randint_0_1001_size8"]) EXPECT_EQ(row.randint(0, 1001), expected);
    NumpyRandom choosing(seed);
    for (const Json& call : c["choice_ngrams_p_inverse"])
      EXPECT_EQ(choosing.choice(inverse_ngrams(call["n"])) + 1, call["value"].get<std::size_t>());
    NumpyRandom permuting(seed);
    EXPECT_EQ(Json(shuffled_range(permuting, 0, 10)), c["permutation_10"]);
    NumpyRandom plain(seed);
    for (const double expected : c["rand_3"]) EXPECT_EQ(plain.uniform(), expected);
  }
}

TEST(NumpyRandom, draws_geometric_numbers_as_numpy_does) {
  for (const Json& c : golden("numpy_legacy_calls", "items")) {
    const std::uint32_t seed = c["seed"];
    for (const double p : {0.2, 0.5}) {
      NumpyRandom random(seed);
      for (const std::int64_t expected : c[p == 0.2 ? "geometric_0.2" : "geometric_0.5"])
        EXPECT_EQ(random.geometric(p), expected);
    }
  }
}

// The first words of mt19937ar.out, which the generator's authors publish for this key.
TEST(NumpyRandom, takes_a_list_of_integers_as_its_seed) {
  const std::uint32_t key[] = {0x123, 0x234, 0x345, 0x456};
  NumpyRandom random{std::span<const std::uint32_t>(key)};
  for (const std::uint32_t expected : {1067595299U, 955945823U, 477289528U, 4107218783U, 4228976476U})
    EXPECT_EQ(random.next32(), expected);
}

TEST(TorchRandperm, permutes_as_torch_does) {
  for (const Json& c : golden("torch_randperm", "cases")) {
    std::vector<std::int64_t> x(c["n"].get<std::size_t>());
    torch_randperm(c["seed"], x);
    if (c.contains("perm")) {
      EXPECT_EQ(Json(x), c["perm"]);
    } else {
      EXPECT_EQ(sha256_of(x), c["sha256_int64_le"]);
    }
  }
}

TEST(NumpyPcg64, draws_numpys_words_and_integers) {
  for (const Json& c : golden("numpy_pcg64_mock", "seeds")) {
    NumpyPcg64 words(c["seed"].get<std::uint32_t>());
    for (const Json& expected : c["raw_uint64_first6"])
      EXPECT_EQ(words.next64(), std::stoull(expected.get<std::string>()));
    NumpyPcg64 random(c["seed"].get<std::uint32_t>());
    std::vector<std::int32_t> lengths(100000);
    for (auto& length : lengths) length = random.integer(1, 4096);
    EXPECT_EQ(sha256_of(lengths), c["integers_1_4096_int32_size100000"]["sha256_int32_le"]);
  }
}
