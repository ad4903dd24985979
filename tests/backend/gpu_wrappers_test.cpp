// The inline PTX that kernels are compiled to, read from its source and interpreted by the manual's words,
// against the twin that every other test runs.
#include <cuda_runtime.h>
#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <regex>
#include <stdexcept>
#include <vector>

#include "tests/backend/gpu_wrappers.h"
#include "tests/support/gpu/emulated.h"
#include "tests/support/gpu/ptx.h"
#include "tests/support/source_dir.h"
#include "weft/base/half.h"

namespace weft::testing {
namespace {

namespace ptx = emulated::ptx;
using Words = std::vector<std::uint32_t>;
using Floats = std::vector<float>;

std::string text_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

const std::string& source() {
  static const std::string text = text_of(WEFT_SOURCE_DIR "/weft/backend/cuda/native/gpu.h");
  return text;
}

/// The which-th asm statement of a wrapper: where there are two, that of bf16 or of transposed matrices
/// first.
ptx::Statement statement(const std::string& wrapper, std::size_t which = 0) {
  return ptx::statements_of(source(), wrapper).at(which);
}

/// An array of the emulated GPU that begins as given.
template <class T>
class OnGpu {
 public:
  explicit OnGpu(const std::vector<T>& from) : count_(from.size()) {
    cudaMallocAsync(&at_, bytes(), nullptr);
    cudaMemcpyAsync(at_, from.data(), bytes(), cudaMemcpyHostToDevice, nullptr);
  }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;
  ~OnGpu() { cudaFreeAsync(at_, nullptr); }
  T* data() const { return static_cast<T*>(at_); }
  std::vector<T> read() const {
    std::vector<T> out(count_);
    cudaMemcpyAsync(out.data(), at_, bytes(), cudaMemcpyDeviceToHost, nullptr);
    EXPECT_THAT(emulated::take_reports(), ::testing::IsEmpty());
    return out;
  }

 private:
  std::size_t bytes() const { return count_ * sizeof(T); }
  void* at_ = nullptr;
  std::size_t count_;
};

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

/// Small floats that differ, their signs too, and whose products and sums round nowhere.
template <class Half>
std::uint32_t small_pair(int i) {
  const auto half = [](int j) { return std::uint32_t(Half(float(j * 7 % 23 - 11) / 4).bits); };
  return half(2 * i) | half(2 * i + 1) << 16;
}

TEST(GpuWrappers, widen_halves_of_f16_as_their_ptx_does) {
  Words pairs;
  for (int i = 0; i < 32; ++i) pairs.push_back(small_pair<f16>(i));
  ptx::Warp low, high;
  for (std::size_t l = 0; l < 32; ++l) low.lanes[l].values["pair"] = high.lanes[l].values["pair"] = pairs[l];
  run(statement("low"), low);
  run(statement("high"), high);
  const OnGpu<std::uint32_t> in(pairs);
  const OnGpu<float> out(Floats(64));
  widen_pairs({}, out.data(), in.data());
  const Floats twin = out.read();
  for (std::size_t l = 0; l < 32; ++l) {
    EXPECT_EQ(low.lanes[l].values.at("out"), bits(twin[2 * l])) << l;
    EXPECT_EQ(high.lanes[l].values.at("out"), bits(twin[2 * l + 1])) << l;
  }
}

/// Each lane has two numbers beside each other.
ptx::Warp warp_with_pairs(const Floats& x) {
  ptx::Warp warp;
  for (std::size_t l = 0; l < 32; ++l) {
    warp.lanes[l].values["low"] = bits(x[2 * l]);
    warp.lanes[l].values["high"] = bits(x[2 * l + 1]);
  }
  return warp;
}

TEST(GpuWrappers, round_pairs_as_their_ptx_does) {
  for (const bool is_bf16 : {true, false}) {
    Floats x;
    for (int i = 0; i < 64; ++i) x.push_back(1.0F / float(i * i - 40) * (i % 3 == 0 ? 1e-6F : 1));
    ptx::Warp warp = warp_with_pairs(x);
    run(statement("pack", is_bf16 ? 0 : 1), warp);
    const OnGpu<float> in(x);
    const OnGpu<std::uint32_t> out(Words(32));
    shorten_pairs({.bf16 = is_bf16}, out.data(), in.data());
    const Words twin = out.read();
    for (std::size_t l = 0; l < 32; ++l) EXPECT_EQ(warp.lanes[l].values.at("out"), twin[l]) << is_bf16 << l;
  }
}

// What lies between codes, what is too large or too small, infinities; the last two become some NaN.
TEST(GpuWrappers, pack_eights_as_their_ptx_does) {
  const float infinity = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  Floats x{0.0F, -0.0F, 448, 449, -1e9F, 57344, 65000, 1e-9F, infinity, -infinity, 17, 19, -21, 0x1p-10F};
  for (int i = int(x.size()); i < 62; ++i)
    x.push_back(float(i % 2 * 2 - 1) * std::ldexp(1 + float(i) / 64, i % 29 - 18));
  x.insert(x.end(), {nan, -nan});
  for (const bool e5m2 : {false, true}) {
    ptx::Warp warp = warp_with_pairs(x);
    run(statement("pack_eights", e5m2 ? 1 : 0), warp);
    const OnGpu<float> in(x);
    const OnGpu<std::uint32_t> out(Words(32));
    pack_eights(e5m2, out.data(), in.data());
    const Words twin = out.read();
    for (std::size_t l = 0; l < 31; ++l) EXPECT_EQ(warp.lanes[l].values.at("out"), twin[l]) << e5m2 << l;
    for (const std::uint64_t pair : {warp.lanes[31].values.at("out"), std::uint64_t(twin[31])})
      for (const int shift : {0, 8}) {
        const auto code = std::uint8_t(pair >> shift);
        EXPECT_TRUE(std::isnan(e5m2 ? float(f8e5m2::from_bits(code)) : float(f8e4m3::from_bits(code))));
      }
  }
}

TEST(GpuWrappers, load_matrices_as_their_ptx_does) {
  for (const bool transposed : {true, false}) {
    std::vector<std::uint16_t> matrix(16 * 32);
    for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = std::uint16_t(i * 37);
    ptx::Warp warp;
    warp.shared.resize(matrix.size() * 2);
    std::memcpy(warp.shared.data(), matrix.data(), warp.shared.size());
    for (int l = 0; l < 32; ++l)
      warp.lanes[std::size_t(l)].values["place(row)"] = std::uint64_t(row_of(l) * 2);
    run(statement("load_matrices", transposed ? 0 : 1), warp);
    const OnGpu<std::uint16_t> in(matrix);
    const OnGpu<std::uint32_t> out(Words(128));
    load_rows({.transposed = transposed}, out.data(), in.data());
    const Words twin = out.read();
    for (std::size_t i = 0; i < 128; ++i)
      EXPECT_EQ(warp.lanes[i / 4].values.at("out[" + std::to_string(i % 4) + "]"), twin[i])
          << transposed << i;
  }
}

template <class Half>
void expect_one_product() {
  constexpr bool is_bf16 = std::is_same_v<Half, bf16>;
  Words a, b;
  Floats d;
  for (int i = 0; i < 128; ++i) {
    a.push_back(small_pair<Half>(i));
    d.push_back(float(i % 19 - 9));
    if (i < 64) b.push_back(small_pair<Half>(300 + i));
  }
  ptx::Warp warp;
  for (std::size_t l = 0; l < 32; ++l) {
    auto& values = warp.lanes[l].values;
    for (std::size_t i = 0; i < 4; ++i) {
      values["a[" + std::to_string(i) + "]"] = a[4 * l + i];
      values["d[" + std::to_string(i) + "]"] = bits(d[4 * l + i]);
    }
    values["b0"] = b[2 * l];
    values["b1"] = b[2 * l + 1];
  }
  run(statement("multiply", is_bf16 ? 0 : 1), warp);
  const OnGpu<std::uint32_t> left(a), right(b);
  const OnGpu<float> out(d);
  multiply_fragments({.bf16 = is_bf16}, out.data(), left.data(), right.data());
  const Floats twin = out.read();
  for (std::size_t i = 0; i < 128; ++i)
    EXPECT_EQ(warp.lanes[i / 4].values.at("d[" + std::to_string(i % 4) + "]"), bits(twin[i])) << i;
}

TEST(GpuWrappers, multiply_as_their_ptx_does) {
  expect_one_product<bf16>();
  expect_one_product<f16>();
}

/// Asks for copy_rows' copies of a warp, as its kernel does.
void begin_copies(ptx::Warp& warp) {
  for (std::uint64_t half = 0; half < 2; ++half) {
    for (std::uint64_t l = 0; l < 32; ++l) {
      auto& values = warp.lanes[l].values;
      values["place(to)"] = values["from"] = 512 * half + 16 * l;
      values["wanted ? 16 : 0"] = l % 3 != 0 ? 16 : 0;
    }
    run(statement("copy_async"), warp);
    run(statement("commit_copies"), warp);
  }
}

TEST(GpuWrappers, copy_as_their_ptx_does) {
  Floats x(256);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i) + 1;
  ptx::Warp warp;
  warp.global.resize(1024);
  warp.shared.resize(1024, 0xFF);
  std::memcpy(warp.global.data(), x.data(), 1024);
  begin_copies(warp);
  Floats found(256);
  for (const std::uint64_t left : {1, 0}) {
    for (auto& lane : warp.lanes) lane.values["groups_left"] = left;
    run(statement("wait_copies"), warp);
    const std::size_t first = left == 1 ? 0 : 512;
    std::memcpy(found.data() + first / 4, warp.shared.data() + first, 512);
  }
  const OnGpu<float> in(x), out(Floats(256));
  copy_rows({}, out.data(), in.data());
  EXPECT_EQ(found, out.read());
  EXPECT_EQ(found[0], 0);
  EXPECT_EQ(found[4], 5);
}

TEST(GpuWrappers, are_read_by_somebody_who_knows_what_they_say) {
  ptx::Warp warp;
  const auto what = [&](const std::string& code) {
    try {
      run({code, {{"r", "x"}}}, warp);
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(what("tcgen05.fence;"), "ptx: no instruction tcgen05.fence is known");
  EXPECT_EQ(what("cvt.f32.f16 %0, 1;"), "ptx: cvt.f32.f16 writes an input, x");
  EXPECT_EQ(what("cp.async.wait_group %0;"), "ptx: cp.async.wait_group reads x, which has no value");
  EXPECT_THROW(ptx::statements_of(source(), "nothing_like_it"), std::runtime_error);
}

// What the runtime answers is told by the call alone: whoever does not look launches nothing, and goes on.
TEST(GpuWrappers, look_at_what_every_call_of_the_runtime_answers) {
  const std::regex call(R"((\w+\()?cuda(Func|Launch)\w*\()");
  for (const std::string& text : {source(), text_of(WEFT_SOURCE_DIR "/weft/backend/cuda/launch.h")}) {
    int calls = 0;
    for (std::sregex_iterator it(text.begin(), text.end(), call), end; it != end; ++it, ++calls)
      EXPECT_EQ((*it)[1].str(), "check_launch(") << it->str();
    EXPECT_EQ(calls, 1);
  }
}

// Sums round, so that their order is seen.
TEST(GpuWrappers, reduce_a_warp_as_its_exchanges_do) {
  Floats x;
  for (int i = 0; i < 32; ++i) x.push_back(float(i * 11 % 32 - 9) / 3 + (i == 21 ? 1e6F : 0));
  const OnGpu<float> in(x);
  const OnGpu<float> out(Floats(128));
  reduce_warp(out.data(), in.data());
  const Floats both = out.read();
  double sum = 0;
  for (const float each : x) sum += each;
  for (std::size_t l = 0; l < 32; ++l) {
    EXPECT_NEAR(both[l], sum, 1);
    EXPECT_EQ(bits(both[l]), bits(both[32 + l])) << l;
    EXPECT_EQ(both[64 + l], x[21]) << l;
    EXPECT_EQ(both[96 + l], both[64 + l]) << l;
  }
}

}  // namespace
}  // namespace weft::testing
