// Products of warpgroups: what a warp asked for is looked at twice, when it is asked and when it is waited
// for, and computed then; in between its sums are no numbers. So a kernel that reads sums early, writes them,
// fills a tile again or shows it too late computes nonsense, or is found.
#include "tests/support/gpu/products.h"

#include <warpgroup.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "tests/support/gpu/machine.h"

namespace emulated {
namespace {

Machine& m = machine();

Warp& my_warp() { return m.warps[m.lane->id / 32]; }
unsigned row_of_warp() { return m.lane->id / 32 % 4 * 16; }

// ---- matrices in shared memory

/// As a descriptor names it: bits 0 to 13 where it begins, 16 to 29 and 32 to 45 two distances, all in 16
/// bytes; 62 and 63 how pieces lie, 1: at piece ^ row % 8 of rows of 128 bytes.
struct Named {
  std::uint32_t first, leading, stride, form;
  explicit Named(std::uint64_t bits)
      : first(std::uint32_t(bits & 0x3FFF) << 4),
        leading(std::uint32_t(bits >> 16 & 0x3FFF) << 4),
        stride(std::uint32_t(bits >> 32 & 0x3FFF) << 4),
        form(std::uint32_t(bits >> 62)) {}
  /// Eight of one column lie in 128 bytes, swizzled by where they lie.
  static std::uint32_t swizzled(std::uint32_t byte) { return byte ^ (byte >> 7 & 7) << 4; }
  /// Of a matrix whose columns are summed over; and of one whose rows are.
  std::uint32_t by_rows(std::uint32_t row, std::uint32_t column) const {
    return swizzled(first + row / 8 * stride + row % 8 * 128 + column * 2);
  }
  std::uint32_t by_columns(std::uint32_t row, std::uint32_t column) const {
    return swizzled(first + row / 8 * stride + row % 8 * 128 + column / 64 * leading + column % 64 * 2);
  }
};

/// Calls act(row, column, byte) for pieces of eight halves of an operand: 16 rows of the left one, or the
/// right one, of which `eights` are. Its rows are of the result, or by depth its columns.
template <class Act>
void pieces_of_left(const Product& p, const Act& act) {
  const Named named(p.left);
  for (std::uint32_t row = 0; row < 16; ++row)
    for (std::uint32_t column = 0; column < 16; column += 8)
      act(row, column,
          p.lie.left_by_depth ? named.by_columns(row, row_of_warp() + column)
                              : named.by_rows(row_of_warp() + row, column));
}
template <class Act>
void pieces_of_right(const Product& p, const Act& act) {
  const Named named(p.right);
  const auto many = std::uint32_t(8 * p.eights);
  const bool by_depth = p.lie.right_by_depth;
  for (std::uint32_t row = 0; row < (by_depth ? 16 : many); ++row)
    for (std::uint32_t column = 0; column < (by_depth ? many : 16); column += 8)
      act(row, column, by_depth ? named.by_columns(row, column) : named.by_rows(row, column));
}

std::string begun(const std::string& what) {
  return "a product of thread " + std::to_string(m.lane->id) + what;
}

/// Whether who wrote a grain has shown it, before a barrier that this warp has passed.
bool is_shown(const Stamp& written, std::uint16_t had_shown) {
  const Held& writer = m.held[written.thread];
  const bool mine = written.thread / 32 == m.lane->id / 32;
  return writer.shown.size() > had_shown && (mine || writer.shown[had_shown] < m.barriers);
}

void look_whether_shown(const std::byte* at) {
  const std::size_t first = m.shared.grain_of(at);
  const Stamp* before = nullptr;  // most have one past
  for (std::size_t i = first; i < first + 16 / grain; ++i) {
    const Stamp& written = m.shared.cell(i).written;
    if (before && before->thread == written.thread && m.shown[i] == m.shown[i - 1]) continue;
    before = &written;
    if (!is_shown(written, m.shown[i]))
      return report(begun(" reads what thread ") + std::to_string(written.thread) +
                    " has written and not shown to products");
  }
}

/// The bytes that a product reads, when it is asked for and when it is waited for.
void look_at(const Product& p, bool waited_for) {
  const auto look = [&](std::uint32_t, std::uint32_t, std::uint32_t byte) {
    const std::byte* at = m.shared.base + byte;
    if (!touch(at, 16, Touch::read)) return;
    if (!waited_for) return look_whether_shown(at);
    if (m.shared.cell(m.shared.grain_of(at)).written.moment > p.asked)
      report(begun(" was under way while its operand was written"));
  };
  if (!p.lie.in_registers) pieces_of_left(p, look);
  pieces_of_right(p, look);
}

void look_at_name(std::uint64_t bits) {
  const Named named(bits);
  if (named.form != 1 || (bits >> 48 & 0x3FFF) != 0)
    report(begun(" names a matrix in a form that is not known"));
  if (named.first / 128 % 8 != 0) report(begun(" names a matrix that is not aligned to 1024 bytes"));
}

// ---- sums

/// Calls act(lane, number of the lane, number of the sums) for those that lanes hold.
template <class Act>
void each_sum(const Sums& sums, const Act& act) {
  const auto eights = std::size_t(sums.eights);
  for (std::size_t lane = 0; lane < 32; ++lane)
    for (std::size_t i = 0; i < 4 * eights; ++i) {
      const std::size_t row = lane / 4 + i % 4 / 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      act(lane, i, row * 8 * eights + column);
    }
}

std::size_t sums_of(Warp& warp, const Handed& all) {
  const auto of = [&](int lane) { return static_cast<const Asked*>(all.in[lane]); };
  for (std::size_t i = 0; i < warp.sums.size(); ++i)
    if (warp.sums[i].under_way > 0 && warp.sums[i].at[0] == of(0)->sums) return i;
  Sums& made = warp.sums.emplace_back();
  made.eights = of(0)->eights;
  made.numbers.resize(16 * 8 * std::size_t(made.eights));
  for (int lane = 0; lane < 32; ++lane) made.at[std::size_t(lane)] = of(lane)->sums;
  each_sum(made, [&](std::size_t lane, std::size_t i, std::size_t number) {
    made.numbers[number] = std::exchange(made.at[lane][0][i], std::numeric_limits<float>::quiet_NaN());
  });
  return warp.sums.size() - 1;
}

void hand_back(const Sums& sums) {
  bool are_written = false;
  each_sum(sums, [&](std::size_t lane, std::size_t i, std::size_t number) {
    float& at = sums.at[lane][0][i];
    are_written = are_written || !std::isnan(at);
    at = sums.numbers[number];
  });
  if (are_written) report(begun(" was under way while its sums were written"));
}

// ---- arithmetic

float half(bool is_bf16, std::uint16_t bits) {
  return is_bf16 ? float(weft::bf16::from_bits(bits)) : float(weft::f16::from_bits(bits));
}

/// 16 rows of 16.
using Left = std::array<std::array<float, 16>, 16>;

Left left_of(const Product& p) {
  Left out;
  // Of a lane: rows lane / 4 and 8 further on, columns 2 (lane % 4) and the next, and 8 further on.
  for (std::uint32_t lane = 0; lane < 32 && p.lie.in_registers; ++lane)
    for (std::uint32_t i = 0; i < 4; ++i)
      for (std::uint32_t h = 0; h < 2; ++h)
        out[lane / 4 + i % 2 * 8][lane % 4 * 2 + h + i / 2 * 8] =
            half(p.is_bf16, std::uint16_t(p.halves[lane][i] >> 16 * h));
  if (!p.lie.in_registers)
    pieces_of_left(p, [&](std::uint32_t row, std::uint32_t column, std::uint32_t byte) {
      std::uint16_t bits[8];
      std::memcpy(bits, m.shared.base + byte, 16);
      for (std::uint32_t i = 0; i < 8; ++i)
        (p.lie.left_by_depth ? out[column + i][row] : out[row][column + i]) = half(p.is_bf16, bits[i]);
    });
  return out;
}

const Right& right_of(const Product& p) {
  std::vector<std::uint16_t> bits(std::size_t(16 * 8 * p.eights));
  std::uint16_t* next = bits.data();
  pieces_of_right(p, [&](std::uint32_t, std::uint32_t, std::uint32_t byte) {
    std::memcpy(next, m.shared.base + byte, 16);
    next += 8;
  });
  for (const Right& known : m.rights)
    if (known.is_bf16 == p.is_bf16 && known.by_depth == p.lie.right_by_depth && known.bits == bits)
      return known;
  Right& out = m.rights[m.next_right];
  m.next_right = (m.next_right + 1) % unsigned(m.rights.size());
  out.is_bf16 = p.is_bf16;
  out.by_depth = p.lie.right_by_depth;
  out.bits = std::move(bits);
  const std::uint16_t* from = out.bits.data();
  pieces_of_right(p, [&](std::uint32_t row, std::uint32_t column, std::uint32_t) {
    for (std::uint32_t i = 0; i < 8; ++i)
      (out.by_depth ? out.numbers[row][column + i] : out.numbers[column + i][row]) = half(p.is_bf16, *from++);
  });
  return out;
}

/// What is kept of a sum in registers, while it grows.
constexpr std::size_t at_once = 16;

template <std::size_t columns>
void add_columns(float* to, const std::array<float, 16>& left, const Right& right, std::size_t first) {
  float sums[columns];
  std::copy_n(to, columns, sums);
  for (std::size_t k = 0; k < 16; ++k)
    for (std::size_t i = 0; i < columns; ++i) sums[i] += left[k] * right.numbers[k][first + i];
  std::copy_n(sums, columns, to);
}

void compute(const Product& p, Sums& sums) {
  ++meter().products;
  const Left left = left_of(p);
  const Right& right = right_of(p);
  const auto columns = std::size_t(8 * p.eights);
  if (!p.adds) std::ranges::fill(sums.numbers, 0.0F);
  for (std::size_t row = 0; row < 16; ++row) {
    float* const to = sums.numbers.data() + row * columns;
    std::size_t i = 0;
    for (; i + at_once <= columns; i += at_once) add_columns<at_once>(to + i, left[row], right, i);
    if (i < columns) add_columns<8>(to + i, left[row], right, i);
  }
}

// ---- by the last lane of a warp to come

/// The four warps say the same, one after another.
void say(Warp& warp, std::uint64_t what) { warp.said = (warp.said ^ what) * 0x9E3779B97F4A7C15U + 1; }

void ask_together(const Handed& all) {
  const auto of = [&](int lane) { return static_cast<const Asked*>(all.in[lane]); };
  Warp& warp = my_warp();
  m.has_products = true;
  Product p{of(0)->is_bf16, of(0)->adds, of(0)->lie, of(0)->eights, of(0)->left,
            of(0)->right,   {},          0,          m.moment};
  for (int lane = 0; lane < 32; ++lane) {
    if (of(lane)->left != p.left || of(lane)->right != p.right)
      report(begun(" names other matrices than its neighbour's"));
    if (p.lie.in_registers) std::copy_n(of(lane)->halves, 4, p.halves[std::size_t(lane)].begin());
  }
  if (!warp.begun) report(begun(" is asked for, and no begin_products() came before it"));
  if (!p.lie.in_registers) look_at_name(p.left);
  look_at_name(p.right);
  look_at(p, false);
  p.sums = sums_of(warp, all);
  ++warp.sums[p.sums].under_way;
  for (const std::uint64_t what : {p.left, p.right, std::uint64_t(p.eights)}) say(warp, what);
  warp.groups.back().push_back(p);
}

void begin_together(const Handed&) {
  m.has_products = true;
  my_warp().begun = true;
}

void commit_together(const Handed&) {
  Warp& warp = my_warp();
  warp.groups.emplace_back();
  say(warp, 1);
}

void wait_together(const Handed& all) {
  Warp& warp = my_warp();
  warp.begun = false;  // whoever waits does so to touch registers
  const auto left = std::size_t(*static_cast<const int*>(all.in[0]));
  while (warp.groups.size() - 1 > left) {
    for (const Product& p : warp.groups.front()) {
      if (m.moment != p.asked) look_at(p, true);  // or else what could be seen now was seen then
      Sums& sums = warp.sums[p.sums];
      compute(p, sums);
      if (--sums.under_way == 0) hand_back(sums);
    }
    warp.groups.erase(warp.groups.begin());
  }
  if (left == 0 && warp.groups.back().empty()) warp.sums.clear();
}

}  // namespace

std::uint32_t place_of(const void* at) {
  return std::uint32_t(static_cast<const std::byte*>(at) - m.shared.base);
}

void ask_product(const Asked& asked) { meet(~0U, {asked.what, asked.line}, &asked, nullptr, ask_together); }
void begin_products(int line) { meet(~0U, {"begin_products", line}, nullptr, nullptr, begin_together); }
void commit_products(int line) { meet(~0U, {"commit_products", line}, nullptr, nullptr, commit_together); }
void wait_products(int groups_left, int line) {
  meet(~0U, {"wait_products", line}, &groups_left, nullptr, wait_together);
}
void show_products() {
  ++m.lane->shows;
  now_held().shown.push_back(m.barriers);
}

void compare_warpgroups() {
  for (unsigned warp = 0; warp < m.size.x / 32; ++warp)
    if (m.warps[warp].said != m.warps[warp / 4 * 4].said)
      return report("warps of a warpgroup ask for other products than their first one");
}

void look_for_products_under_way() {
  compare_warpgroups();
  for (unsigned warp = 0; warp < m.size.x / 32; ++warp)
    if (m.warps[warp].groups.size() > 1 || !m.warps[warp].groups[0].empty())
      return report("products are under way when the block ends");
}

}  // namespace emulated
