// Products of warpgroups: the inline PTX that kernels are compiled to, interpreted by the manual's words,
// against the twin that every other test runs; and mistakes with them, each of which the emulated GPU must
// find.
#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "tests/backend/gpu_trial.h"
#include "tests/backend/warpgroup_trial.h"
#include "tests/support/gpu/ptx.h"
#include "tests/support/source_dir.h"
#include "weft/base/half.h"

namespace weft::testing {
namespace {

namespace ptx = emulated::ptx;
using ::testing::Each;
using ::testing::HasSubstr;

/// Small floats that differ, their signs too, and whose products and sums round nowhere.
std::uint16_t small_half(int i, bool is_bf16) {
  const float x = float(i * 7 % 23 - 11) / 4;
  return is_bf16 ? bf16(x).bits : f16(x).bits;
}

/// What a trial is made of, as memory of the GPU.
struct Operands {
  std::vector<float> matrices, halves, d;  // the first two are bits

  explicit Operands(const ProductTrial& trial)
      : matrices(matrices_there * matrix_halves / 2),
        halves(128 * 4),
        d(std::size_t(128 * sums_of(trial.which))) {
    std::vector<std::uint16_t> bits;
    for (int i = 0; i < matrices_there * matrix_halves; ++i)
      bits.push_back(small_half(i + i / 64 + i / 4096, trial.bf16));
    std::memcpy(matrices.data(), bits.data(), 2 * bits.size());
    bits.clear();
    for (int i = 0; i < 2 * 128 * 4; ++i) bits.push_back(small_half(3 * i + 1, trial.bf16));
    std::memcpy(halves.data(), bits.data(), 2 * bits.size());
    for (std::size_t i = 0; i < d.size(); ++i) d[i] = float(i % 19) - 9;
  }

  /// Of bf16, by where it lies in the memory.
  float element(int matrix, int row, int column) const {
    std::uint16_t bits = 0;
    const int place = row * 64 + (column / 8 ^ row % 8) * 8 + column % 8;
    std::memcpy(&bits, reinterpret_cast<const char*>(matrices.data()) + 2 * (matrix * matrix_halves + place),
                2);
    return float(bf16::from_bits(bits));
  }
};

/// A thread's sums.
int row_of(int thread, int i) { return thread / 32 * 16 + thread % 32 / 4 + i % 4 / 2 * 8; }
int column_of(int thread, int i) { return i / 4 * 8 + thread % 4 * 2 + i % 2; }

std::vector<float> by_twin(const ProductTrial& trial, const Operands& operands) {
  const Array matrices(operands.matrices), halves(operands.halves), d(operands.d);
  multiply_matrices(trial, d.data(), reinterpret_cast<const std::uint16_t*>(matrices.data()),
                    reinterpret_cast<const std::uint32_t*>(halves.data()));
  cudaDeviceSynchronize();
  return d.read();
}

/// The asm statement of a wrapper: of those that multiply, bf16's come first.
ptx::Statement statement(const std::string& wrapper, std::size_t which = 0, std::size_t overload = 0) {
  std::ifstream file(WEFT_SOURCE_DIR "/weft/backend/cuda/native/warpgroup.h");
  std::string source{std::istreambuf_iterator<char>(file), {}};
  source = source.substr(source.find("namespace gpu {"));
  for (; overload > 0; --overload) source = source.substr(source.find(" " + wrapper + "(") + 1);
  return ptx::statements_of(source, wrapper).at(which);
}

std::string sum_name(const ProductTrial& trial, std::size_t i) {
  const std::string first = trial.which == Products::of_columns ? "first + " : "";
  return "d[" + first + std::to_string(i / 4) + "][" + std::to_string(i % 4) + "]";
}

/// Bytes from the first 16 that are summed over to the next.
std::uint64_t sixteen(bool by_depth) { return by_depth ? 2048 : 32; }

/// A warp's registers before the product: matrices lie at 0 and 8,192, and their descriptors are as the
/// manual has them.
ptx::Warp warp_of(const ProductTrial& trial, const Operands& operands, std::size_t of_group) {
  const bool columns = trial.which == Products::of_columns;
  ptx::Warp warp;
  warp.of_group = of_group;
  warp.shared.resize(operands.matrices.size() * 4);
  std::memcpy(warp.shared.data(), operands.matrices.data(), warp.shared.size());
  const auto each = std::size_t(sums_of(trial.which));
  for (std::size_t l = 0; l < 32; ++l) {
    auto& values = warp.lanes[l].values;
    values["a.low"] = sixteen(trial.left_by_depth) / 16 | 1 << 16;
    values["b.low"] =
        (8192 + sixteen(columns || trial.right_by_depth)) / 16 | (trial.right_by_depth ? 512 : 1) << 16;
    values["int(left_by_depth)"] = trial.left_by_depth;
    values["int(right_by_depth)"] = trial.right_by_depth;
    values["matrix_form"] = 1U << 30 | 1024 / 16;
    values["int(adds)"] = trial.adds ? 1 : 0;
    const std::size_t thread = 32 * of_group + l;
    for (std::size_t i = 0; i < each; ++i)
      values[sum_name(trial, i)] = std::bit_cast<std::uint32_t>(operands.d[thread * each + i]);
    for (std::size_t i = 0; i < 4; ++i)
      values["a[" + std::to_string(i) + "]"] = std::bit_cast<std::uint32_t>(operands.halves[4 * thread + i]);
  }
  return warp;
}

ptx::Statement product(const ProductTrial& trial) {
  const std::size_t which = trial.bf16 ? 0 : 1;
  switch (trial.which) {
    case Products::of_panels:
      return statement(trial.bf16 ? "multiply_bf16_panels" : "multiply_f16_panels");
    case Products::of_columns:
      return statement("multiply_columns", which);
    case Products::of_32_rows:
      return statement("multiply_rows", which, 1);
    case Products::of_64_rows:
      break;
  }
  return statement("multiply_rows", which);
}

std::vector<float> by_ptx(const ProductTrial& trial, const Operands& operands) {
  std::vector<float> out;
  for (std::size_t of_group = 0; of_group < 4; ++of_group) {
    ptx::Warp warp = warp_of(trial, operands, of_group);
    run(statement("show_products"), warp);
    run(statement("begin_products"), warp);
    run(product(trial), warp);
    run(statement("commit_products"), warp);
    EXPECT_EQ(warp.groups, 1U);
    for (auto& lane : warp.lanes) lane.values["groups_left"] = 0;
    run(statement("wait_products"), warp);
    EXPECT_EQ(warp.groups, 0U);
    EXPECT_TRUE(warp.shown && !warp.begun);
    for (const auto& lane : warp.lanes)
      for (std::size_t i = 0; i < std::size_t(sums_of(trial.which)); ++i)
        out.push_back(std::bit_cast<float>(std::uint32_t(lane.values.at(sum_name(trial, i)))));
  }
  return out;
}

TEST(GpuWarpgroups, multiply_as_their_ptx_does) {
  for (const Products which : {Products::of_64_rows, Products::of_32_rows, Products::of_columns})
    for (const bool is_bf16 : {true, false})
      for (const bool adds : {true, false}) {
        if (which == Products::of_columns && !adds) continue;
        const ProductTrial trial{which, is_bf16, adds};
        const Operands operands(trial);
        EXPECT_EQ(by_twin(trial, operands), by_ptx(trial, operands)) << int(which) << is_bf16 << adds;
        EXPECT_THAT(emulated::take_reports(), ::testing::IsEmpty());
      }
}

TEST(GpuWarpgroups, multiply_panels_as_their_ptx_does) {
  for (const bool left : {false, true})
    for (const bool right : {false, true})
      for (const bool is_bf16 : {true, false}) {
        ProductTrial trial{Products::of_panels, is_bf16};
        trial.left_by_depth = left;
        trial.right_by_depth = right;
        const Operands operands(trial);
        EXPECT_EQ(by_twin(trial, operands), by_ptx(trial, operands)) << left << right << is_bf16;
        EXPECT_THAT(emulated::take_reports(), ::testing::IsEmpty());
      }
}

// Rows 16 to 31 of columns by columns: both forms by plain loops over where elements lie in the memory.
TEST(GpuWarpgroups, multiply_what_lies_at_its_piece_of_each_row) {
  const ProductTrial trial{.which = Products::of_64_rows, .adds = false};
  const Operands operands(trial);
  const std::vector<float> found = by_twin(trial, operands);
  for (int thread = 0; thread < 128; ++thread)
    for (int i = 0; i < 32; ++i) {
      const int row = row_of(thread, i), column = column_of(thread, i);
      float sum = 0;
      for (int k = 16; k < 32; ++k) sum += operands.element(0, row, k) * operands.element(1, column, k);
      EXPECT_EQ(found[std::size_t(thread * 32 + i)], sum) << thread << " " << i;
    }
}

// What is summed over lies along rows of one operand and down columns of the other.
TEST(GpuWarpgroups, multiply_panels_that_lie_by_depth) {
  ProductTrial trial{.which = Products::of_panels};
  for (const bool left : {false, true}) {
    trial.left_by_depth = left;
    trial.right_by_depth = !left;
    const Operands operands(trial);
    const std::vector<float> found = by_twin(trial, operands);
    for (int thread = 0; thread < 128; ++thread)
      for (int i = 0; i < 128; ++i) {
        const int row = row_of(thread, i), column = column_of(thread, i);
        float sum = operands.d[std::size_t(thread * 128 + i)];
        for (int k = 16; k < 32; ++k)
          sum += left ? operands.element(0, k, row) * operands.element(1 + column / 64, column % 64, k)
                      : operands.element(0, row, k) * operands.element(1 + column / 64, k, column % 64);
        EXPECT_EQ(found[std::size_t(thread * 128 + i)], sum) << thread << " " << i;
      }
  }
}

std::vector<std::string> found_of(Misuse misuse) {
  const ProductTrial trial{.which = Products::of_columns, .misuse = misuse};
  return found_by([&] { by_twin(trial, Operands(trial)); });
}

TEST(GpuWarpgroups, find_their_misuse_under_every_order) {
  EXPECT_THAT(found_of(Misuse::none), Each(std::string()));
  EXPECT_THAT(found_of(Misuse::not_begun), Each(HasSubstr("no begin_products() came before it")));
  EXPECT_THAT(found_of(Misuse::not_shown), Each(HasSubstr("has written and not shown to products")));
  EXPECT_THAT(found_of(Misuse::shown_behind_the_barrier), Each(HasSubstr("and not shown to products")));
  EXPECT_THAT(found_of(Misuse::written_early), Each(HasSubstr("under way while its sums were written")));
  EXPECT_THAT(found_of(Misuse::refilled), Each(HasSubstr("under way while its operand was written")));
  EXPECT_THAT(found_of(Misuse::unaligned), Each(HasSubstr("that is not aligned to 1024 bytes")));
  EXPECT_THAT(found_of(Misuse::apart), Each(HasSubstr("ask for other products than their first one")));
  EXPECT_THAT(found_of(Misuse::left_under_way), Each(HasSubstr("under way when the block ends")));
}

// Nobody is told of a read from a register: what is read is no number.
TEST(GpuWarpgroups, have_no_sums_before_they_are_waited_for) {
  const ProductTrial trial{.which = Products::of_columns, .misuse = Misuse::read_early};
  for (const float sum : by_twin(trial, Operands(trial))) EXPECT_TRUE(std::isnan(sum));
  EXPECT_THAT(emulated::take_reports(), ::testing::IsEmpty());
}

TEST(GpuWarpgroups, are_read_by_somebody_who_knows_what_they_say) {
  const auto what = [&](const std::string& wrapper, ptx::Warp& warp) {
    try {
      run(statement(wrapper), warp);
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const ProductTrial trial;
  ptx::Warp warp = warp_of(trial, Operands(trial), 0);
  EXPECT_THAT(what("multiply_rows", warp), HasSubstr("comes before wgmma.fence"));
  run(statement("begin_products"), warp);
  warp.lanes[0].values["matrix_form"] = 1024 / 16;
  EXPECT_EQ(what("multiply_rows", warp), "ptx: a matrix is not swizzled by 128 bytes");
  for (auto& lane : warp.lanes) lane.values["x"] = std::bit_cast<std::uint32_t>(0.5F);
  EXPECT_EQ(what("before_what_follows", warp), "");
  for (auto& lane : warp.lanes) lane.values["x"] = std::bit_cast<std::uint32_t>(-0.5F);
  EXPECT_EQ(what("before_what_follows", warp), "ptx: a GPU would stop");
}

}  // namespace
}  // namespace weft::testing
