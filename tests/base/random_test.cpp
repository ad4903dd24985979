// The generator against its published vectors, the addresses against each other, the normals against the C
// library.
#include "weft/base/random.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bit>
#include <cmath>
#include <set>
#include <vector>

using namespace weft;

TEST(Philox, gives_the_published_vectors_of_random123) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Draw, lays_an_address_out_as_documented) {
  const Address at{.seed = 0x1111222233334444,
                   .purpose = Purpose::dropout_hidden,
                   .step = 0x5555666677778888,
                   .sample = 0x99990000aaaabbbb,
                   .layer = 7};
  const auto a = philox4x32({0x77778888, 0x55556666, 0xaaaabbbb, 0x99990000}, {0x33334444, 0x11112222});
  const auto b = philox4x32(a, {7, 2});
  const std::uint64_t element = 0x123456789abcdef6;
  const std::uint64_t block = element / 4;
  const auto words = philox4x32(
      {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), b[2], b[3]}, {b[0], b[1]});
  EXPECT_EQ(Draw(at).word(element), words[element % 4]);
  EXPECT_EQ(Draw(at).key(), (PhiloxKey{b[0], b[1]}));
  EXPECT_EQ(Draw(at).upper(), (std::array<std::uint32_t, 2>{b[2], b[3]}));
}

// A saved run depends on these bits: a failure here means that old runs can no longer be resumed exactly.
TEST(Draw, keeps_its_bits_for_ever) {
  const Draw draw(Address{.seed = 1234, .purpose = Purpose::init, .layer = 3});
  EXPECT_EQ(draw.word(0), 1702595452u);
  EXPECT_EQ(draw.word(1ull << 40), 3505982391u);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(draw.normal(0)), 3204974472u);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(draw.normal(1)), 3214953230u);
}

TEST(Draw, changes_with_every_part_of_the_address) {
  const Address home{.seed = 1, .purpose = Purpose::init, .step = 2, .sample = 3, .layer = 4};
  std::vector<Address> others(7, home);
  others[0].seed = 1 + (1ull << 32);
  others[1].seed = 2;
  others[2].purpose = Purpose::data;
  others[3].step = 2 + (1ull << 32);
  others[4].sample = 3 + (1ull << 32);
  others[5].layer = 5;
  others[6].sample = 2;
  others[6].step = 3;
  std::set<PhiloxCounter> seen = {Draw(home).block(0)};
  for (const Address& other : others) seen.insert(Draw(other).block(0));
  EXPECT_EQ(seen.size(), 8u);
}

TEST(Draw, gives_a_thousand_steps_samples_and_layers_different_numbers) {
  std::set<PhiloxCounter> seen;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    seen.insert(Draw({.step = i}).block(0));
    seen.insert(Draw({.sample = i + 1}).block(0));
    seen.insert(Draw({.layer = i + 1}).block(0));
    seen.insert(Draw({}).block(i + 1));
  }
  EXPECT_EQ(seen.size(), 4000u);
}

TEST(Draw, fills_a_span_with_what_single_elements_are) {
  EXPECT_TRUE(rc::check("fill == one by one", [] {
    const Draw draw({.seed = *rc::gen::arbitrary<std::uint64_t>()});
    const auto first = *rc::gen::inRange<std::uint64_t>(0, 5'000'000'000'000);
    std::vector<float> normal(*rc::gen::inRange<std::size_t>(0, 700)), uniform(normal.size());
    fill_normal(draw, first, normal);
    fill_uniform(draw, first, uniform);
    for (std::size_t i = 0; i < normal.size(); ++i) {
      RC_ASSERT(normal[i] == draw.normal(first + i));
      RC_ASSERT(uniform[i] == draw.uniform(first + i));
    }
  }));
}

TEST(Uniform, lies_in_zero_to_one_without_one) {
  static_assert(unit_float(0) == 0 && unit_float(0xffffffffu) == 1 - 0x1p-24f &&
                unit_float(0x80000000u) == 0.5f);
  std::vector<float> x(1 << 20);
  fill_uniform(Draw({.seed = 5}), 0, x);
  double sum = 0, squares = 0;
  for (const float v : x) {
    ASSERT_TRUE(v >= 0 && v < 1);
    sum += v;
    squares += double(v) * v;
  }
  const double n = double(x.size());
  // Five deviations of the mean of n uniforms: 5 sqrt(1/12 / n) = 0.0014.
  EXPECT_NEAR(sum / n, 0.5, 0.0014);
  EXPECT_NEAR(squares / n, 1.0 / 3, 0.0015);
}

TEST(Normal, is_box_muller_to_the_last_bits_of_a_float) {
  const Draw draw({.seed = 9, .purpose = Purpose::test});
  const double pi = 3.14159265358979323846;
  for (std::uint64_t e = 0; e < 200'000; e += 2) {
    const double u = (draw.word(e) + 0.5) * 0x1p-32, t = draw.word(e + 1) * 0x1p-32;
    const double r = std::sqrt(-2 * std::log(u));
    // One rounding to float (2^-24 relative), and 1e-14 from the polynomials, which counts near a zero of the
    // sine.
    ASSERT_NEAR(draw.normal(e), r * std::cos(2 * pi * t), 6e-8 * std::fabs(r * std::cos(2 * pi * t)) + 1e-14)
        << e;
    ASSERT_NEAR(draw.normal(e + 1), r * std::sin(2 * pi * t),
                6e-8 * std::fabs(r * std::sin(2 * pi * t)) + 1e-14)
        << e;
  }
}

TEST(Normal, has_the_moments_of_a_normal) {
  std::vector<float> x(1 << 20);
  fill_normal(Draw({.seed = 11}), 1, x);
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0, pairs = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double v = x[i];
    m1 += v;
    m2 += v * v;
    m3 += v * v * v;
    m4 += v * v * v * v;
    if (i > 0) pairs += v * x[i - 1];
  }
  const double n = double(x.size());
  // Five deviations each: sqrt(1, 2, 15, 96, 1) / sqrt(n) times 5.
  EXPECT_NEAR(m1 / n, 0, 0.005);
  EXPECT_NEAR(m2 / n, 1, 0.007);
  EXPECT_NEAR(m3 / n, 0, 0.019);
  EXPECT_NEAR(m4 / n, 3, 0.048);
  EXPECT_NEAR(pairs / n, 0, 0.005);
}

TEST(Share, splits_the_words_at_a_probability) {
  static_assert(share(0) == 0 && share(0.5) == 0x80000000u && share(-1) == 0 && share(2) == 0xffffffffu);
  const Draw draw({.seed = 3});
  int below = 0;
  for (std::uint64_t e = 0; e < 100'000; ++e) below += draw.word(e) < share(0.1) ? 1 : 0;
  EXPECT_NEAR(below, 10'000, 475);  // five deviations
}
