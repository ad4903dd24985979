// What the lanes of a warp compute together, by the last of them to arrive. Not watched: it reads their
// stacks.
#include <gpu.h>

namespace emulated {
namespace {

template <class Act>
void each(const Handed& all, const Act& act) {
  for (int lane = 0; lane < 32; ++lane)
    if (all.mask >> lane & 1U) act(lane);
}

}  // namespace

void exchange(const Handed& all) {
  each(all, [&](int lane) {
    const int from = static_cast<const Sent*>(all.in[lane])->from & 31;
    const bool there = all.mask >> from & 1U;
    if (!there) report("a shuffle reads lane " + std::to_string(from) + ", which its mask leaves out");
    static_cast<Sent*>(all.out[lane])->bits =
        there ? static_cast<const Sent*>(all.in[from])->bits : 0xDEADBEEF;
  });
}

void count_votes(const Handed& all) {
  unsigned votes = 0;
  each(all, [&](int lane) { votes |= unsigned(*static_cast<const bool*>(all.in[lane])) << lane; });
  each(all, [&](int lane) { *static_cast<unsigned*>(all.out[lane]) = votes; });
}

// Register m of lane l is row l / 4, columns 2 (l % 4) and the next, of matrix m, or of its transposed.
void load_matrices(const Handed& all) {
  const auto in = [&](int lane) { return static_cast<const gpu::Loaded*>(all.in[lane]); };
  for (int m = 0; m < 4; ++m) {
    unsigned banks = 0;  // of the 8 groups of 16 bytes that one cycle can serve
    const std::uint16_t* row[8];
    for (int i = 0; i < 8; ++i) {
      row[i] = static_cast<const std::uint16_t*>(in(8 * m + i)->row);
      banks |= 1U << (reinterpret_cast<std::uintptr_t>(row[i]) / 16 % 8);
    }
    meter().bank_conflicts += unsigned(8 - std::popcount(banks));
    for (int lane = 0; lane < 32; ++lane) {
      const int i = lane / 4, j = lane % 4 * 2;
      const bool turned = in(lane)->transposed;
      const std::uint32_t first = turned ? row[j][i] : row[i][j];
      const std::uint32_t second = turned ? row[j + 1][i] : row[i][j + 1];
      static_cast<std::uint32_t*>(all.out[lane])[m] = first | second << 16;
    }
  }
}

// With g = lane / 4, t = lane % 4, and half h of a register: a[i] is row g + 8 (i % 2), column 2t + h + 8 (i
// / 2); b[i] is row 2t + h + 8i, column g; d[i] is row g + 8 (i / 2), column 2t + i % 2.
template <class Half>
void multiply_tiles(const Handed& all) {
  float a[16][16], b[16][8];
  ++meter().multiplies;
  const auto half = [](std::uint32_t pair, int h) {
    return h ? gpu::high<Half>(pair) : gpu::low<Half>(pair);
  };
  for (int lane = 0; lane < 32; ++lane) {
    const auto& mine = *static_cast<const gpu::Fragments*>(all.in[lane]);
    const int g = lane / 4, t = lane % 4;
    for (int h = 0; h < 2; ++h) {
      for (int i = 0; i < 4; ++i) a[g + 8 * (i % 2)][2 * t + h + 8 * (i / 2)] = half(mine.a[i], h);
      for (int i = 0; i < 2; ++i) b[2 * t + h + 8 * i][g] = half(mine.b[i], h);
    }
  }
  float sums[16][8];
  const auto each_sum = [&](const auto& act) {
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < 4; ++i)
        act(static_cast<float*>(all.out[lane])[i], sums[lane / 4 + 8 * (i / 2)][lane % 4 * 2 + i % 2]);
  };
  each_sum([](const float& d, float& sum) { sum = d; });
  for (int row = 0; row < 16; ++row)
    for (int k = 0; k < 16; ++k)
      for (int column = 0; column < 8; ++column) sums[row][column] += a[row][k] * b[k][column];
  each_sum([](float& d, const float& sum) { d = sum; });
}

template void multiply_tiles<weft::bf16>(const Handed&);
template void multiply_tiles<weft::f16>(const Handed&);

}  // namespace emulated
