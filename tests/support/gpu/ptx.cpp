#include "tests/support/gpu/ptx.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <stdexcept>
#include <utility>

#include "weft/base/half.h"

namespace emulated::ptx {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw std::runtime_error("ptx: " + what); }

// ---- reading the source

/// Behind the bracket that closes the one at open.
std::size_t closed(const std::string& text, std::size_t open) {
  const char opens = text[open], closes = opens == '{' ? '}' : ')';
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (quoted) continue;
    if (text[i] == opens) ++depth;
    if (text[i] == closes && --depth == 0) return i + 1;
  }
  refuse("a bracket is not closed");
}

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \n\t"), last = text.find_last_not_of(" \n\t");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

/// "string" "literals" one after another; at is left behind them.
std::string literals(const std::string& text, std::size_t& at) {
  std::string out;
  for (;;) {
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at]))) ++at;
    if (at >= text.size() || text[at] != '"') return out;
    const std::size_t end = text.find('"', at + 1);
    out += text.substr(at + 1, end - at - 1);
    at = end + 1;
  }
}

/// What stands between the brackets of asm( ).
Statement statement_of(const std::string& text) {
  Statement out;
  std::size_t at = 0;
  out.code = literals(text, at);
  int part = 0;  // 1: outputs, 2: inputs, 3: what else is written to
  while (at < text.size()) {
    if (text[at] == ':') ++part;
    if (text[at] != '"') {
      ++at;
      continue;
    }
    const std::string constraint = literals(text, at);
    if (part > 2) continue;
    at = text.find('(', at);
    const std::size_t end = closed(text, at);
    out.operands.push_back({constraint, trimmed(text.substr(at + 1, end - at - 2))});
    at = end;
  }
  return out;
}

// ---- instructions

struct Instruction {
  std::string name;
  std::vector<std::string> operands;
};

std::vector<Instruction> instructions_of(std::string code) {
  std::vector<Instruction> out;
  code = trimmed(code);
  if (code.starts_with("{.reg")) code = code.substr(1, code.size() - 2);
  for (std::size_t at = 0; at < code.size();) {
    const std::size_t end = std::min(code.find(';', at), code.size());
    const std::string one = trimmed(code.substr(at, end - at));
    at = end + 1;
    if (one.empty() || one.starts_with(".reg")) continue;
    const std::size_t space = std::min(one.find(' '), one.size());
    Instruction& made = out.emplace_back(Instruction{one.substr(0, space), {}});
    std::string word;
    for (const char c : one.substr(space) + ",")
      if (c == ',') {
        if (!trimmed(word).empty()) made.operands.push_back(trimmed(word));
        word.clear();
      } else if (std::strchr("{}[]", c) == nullptr) {
        word += c;
      }
  }
  return out;
}

/// One instruction on a warp, its operands by place.
struct Step {
  const Statement& statement;
  const Instruction& what;
  Warp& warp;

  std::string expression(std::size_t i) const {
    const std::string& word = what.operands.at(i);
    return word[0] == '%' ? statement.operands.at(std::size_t(std::stoi(word.substr(1)))).expression : word;
  }
  std::uint64_t get(std::size_t lane, std::size_t i) const {
    const std::string name = expression(i);
    if (std::isdigit(static_cast<unsigned char>(name[0]))) return std::stoull(name);
    const auto& values = warp.lanes[lane].values;
    const auto found = values.find(name);
    if (found == values.end()) refuse(what.name + " reads " + name + ", which has no value");
    return found->second;
  }
  void set(std::size_t lane, std::size_t i, std::uint64_t bits) const {
    const std::string& word = what.operands.at(i);
    if (word[0] == '%') {
      const std::string& constraint =
          statement.operands.at(std::size_t(std::stoi(word.substr(1)))).constraint;
      if (constraint[0] != '=' && constraint[0] != '+')
        refuse(what.name + " writes an input, " + expression(i));
    }
    warp.lanes[lane].values[expression(i)] = bits;
  }
  float number(std::size_t lane, std::size_t i) const {
    return std::bit_cast<float>(std::uint32_t(get(lane, i)));
  }
};

template <class Half>
std::uint32_t bits_of(float x) {
  return Half(x).bits;
}
template <class Half>
float half_of(std::uint64_t pair, std::size_t which) {
  return float(Half::from_bits(std::uint16_t(pair >> (16 * which))));
}

// d = {a above, b below}
template <class Half>
void pack(const Step& s) {
  for (std::size_t l = 0; l < 32; ++l)
    s.set(l, 0, bits_of<Half>(s.number(l, 1)) << 16 | bits_of<Half>(s.number(l, 2)));
}
// {low, high} = d
void split(const Step& s) {
  for (std::size_t l = 0; l < 32; ++l) {
    s.set(l, 0, s.get(l, 2) & 0xFFFF);
    s.set(l, 1, s.get(l, 2) >> 16 & 0xFFFF);
  }
}
void widen(const Step& s) {
  for (std::size_t l = 0; l < 32; ++l)
    s.set(l, 0, std::bit_cast<std::uint32_t>(half_of<weft::f16>(s.get(l, 1), 0)));
}

/// Of all codes but NaN's the nearest, of two as near the even one; the largest where x is larger still.
template <class F8>
std::uint32_t nearest_code(float x) {
  if (std::isnan(x)) return 0x7F;
  std::uint32_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::uint32_t code = 0; code < 128; ++code) {
    const auto number = double(float(F8::from_bits(std::uint8_t(code))));
    if (!std::isfinite(number)) continue;
    const double away = std::abs(std::min(std::abs(double(x)), 1e6) - number);
    if (away < least || (away == least && code % 2 == 0)) best = code;
    least = std::min(least, away);
  }
  return best | (std::signbit(x) ? 0x80U : 0U);
}
// d = {a, b}, the first above
template <class F8>
void pack_eights(const Step& s) {
  for (std::size_t l = 0; l < 32; ++l)
    s.set(l, 0, nearest_code<F8>(s.number(l, 1)) << 8 | nearest_code<F8>(s.number(l, 2)));
}

// Row r of matrix m is at the address of lane 8 m + r. Lane l gets of each the two neighbours at row l / 4,
// columns 2 (l % 4) and the next; transposed, at those rows and that column.
void load_matrices(const Step& s, bool transposed) {
  const auto element = [&](std::size_t m, std::size_t row, std::size_t column) {
    const std::uint64_t at = s.get(8 * m + row, 4);
    if (at % 16 != 0) refuse("a row of a matrix is not aligned to 16 bytes");
    if (at + 16 > s.warp.shared.size()) refuse("a row of a matrix lies outside of shared memory");
    std::uint16_t out = 0;
    std::memcpy(&out, s.warp.shared.data() + at + 2 * column, 2);
    return std::uint32_t(out);
  };
  for (std::size_t m = 0; m < 4; ++m)
    for (std::size_t l = 0; l < 32; ++l) {
      const std::size_t i = l / 4, j = l % 4 * 2;
      const std::uint32_t first = transposed ? element(m, j, i) : element(m, i, j);
      const std::uint32_t second = transposed ? element(m, j + 1, i) : element(m, i, j + 1);
      s.set(l, m, first | second << 16);
    }
}

// m16n8k16, with g = lane / 4 and t = lane % 4. Element i of a lane's a (8 halves in 4 registers): row g
// where i is 0, 1, 4 or 5, else g + 8; column 2 t + i % 2, plus 8 from i = 4 on. Of b (4 halves): row 2 t + i
// % 2, plus 8 from i = 2 on; column g. Of c and d: row g, plus 8 from i = 2 on; column 2 t + i % 2.
template <class Half>
void multiply(const Step& s) {
  float a[16][16] = {}, b[16][8] = {};
  for (std::size_t l = 0; l < 32; ++l) {
    const std::size_t g = l / 4, t = l % 4;
    for (std::size_t i = 0; i < 8; ++i) {
      const std::size_t row = i % 4 < 2 ? g : g + 8, column = 2 * t + i % 2 + (i < 4 ? 0 : 8);
      a[row][column] = half_of<Half>(s.get(l, 4 + i / 2), i % 2);
    }
    for (std::size_t i = 0; i < 4; ++i)
      b[2 * t + i % 2 + (i < 2 ? 0 : 8)][g] = half_of<Half>(s.get(l, 8 + i / 2), i % 2);
  }
  float sums[32][4];
  for (std::size_t l = 0; l < 32; ++l)
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t row = l / 4 + (i < 2 ? 0 : 8), column = l % 4 * 2 + i % 2;
      sums[l][i] = s.number(l, 10 + i);
      for (std::size_t k = 0; k < 16; ++k) sums[l][i] += a[row][k] * b[k][column];
    }
  for (std::size_t l = 0; l < 32; ++l)
    for (std::size_t i = 0; i < 4; ++i) s.set(l, i, std::bit_cast<std::uint32_t>(sums[l][i]));
}

void begin_copy(const Step& s) {
  for (std::size_t l = 0; l < 32; ++l) {
    const Copy copy{s.get(l, 0), s.get(l, 1), s.get(l, 3)};
    if (s.get(l, 2) != 16) refuse("a copy past the first cache takes 16 bytes");
    if (copy.to % 16 != 0 || copy.from % 16 != 0) refuse("a copy is not aligned to 16 bytes");
    if (copy.wanted > 16 || copy.to + 16 > s.warp.shared.size()) refuse("a copy is too long");
    if (copy.from + copy.wanted > s.warp.global.size()) refuse("a copy reads beyond the memory");
    s.warp.lanes[l].copies.back().push_back(copy);
  }
}
void close_group(const Step& s) {
  for (Lane& lane : s.warp.lanes) lane.copies.emplace_back();
}
// Until at most so many of the last groups are under way.
void wait_group(const Step& s) {
  for (std::size_t l = 0; l < 32; ++l) {
    auto& groups = s.warp.lanes[l].copies;
    while (groups.size() - 1 > s.get(l, 0)) {
      for (const Copy& copy : groups.front()) {
        std::memset(s.warp.shared.data() + copy.to, 0, 16);
        if (copy.wanted > 0)
          std::memcpy(s.warp.shared.data() + copy.to, s.warp.global.data() + copy.from, copy.wanted);
      }
      groups.erase(groups.begin());
    }
  }
}

// ---- products of a warpgroup, of which this is one warp

// d = {a, b}, the first below
void join_words(const Step& s) {
  for (std::size_t l = 0; l < 32; ++l) s.set(l, 0, s.get(l, 2) << 32 | s.get(l, 1));
}
template <class Compare>
void compare(const Step& s, const Compare& holds) {
  for (std::size_t l = 0; l < 32; ++l)
    s.set(l, 0, holds(std::uint32_t(s.get(l, 1)), std::uint32_t(s.get(l, 2))));
}
bool is_less(std::uint32_t a, std::uint32_t b) { return std::bit_cast<float>(a) < std::bit_cast<float>(b); }
void trap(const Step& s) {
  if (s.what.operands.at(0) != "trap") refuse("nothing is known to depend on a predicate but a trap");
  for (std::size_t l = 0; l < 32; ++l)
    if (s.warp.lanes[l].values.at(s.what.name.substr(1)) != 0) refuse("a GPU would stop");
}

/// A half in shared memory, of a matrix that a descriptor names. "Matrix-descriptor format": addresses and
/// distances in 16 bytes, 14 bits each. Of a matrix whose rows lie along what is summed over, groups of eight
/// rows of 128 bytes lie a stride apart; of one whose columns do, columns of 64 are a leading distance apart
/// and groups of eight rows a stride. Bits 4 to 6 of an address are then exclusive with 7 to 9.
std::uint16_t half_at(const Warp& warp, std::uint64_t name, bool along, std::size_t summed,
                      std::size_t other) {
  const auto distance = [&](int bit) { return (name >> bit & 0x3FFF) * 16; };
  if (name >> 61 != 2) refuse("a matrix is not swizzled by 128 bytes");
  std::size_t at = distance(0);
  if (along)
    at += other / 8 * distance(32) + other % 8 * 128 + summed * 2;
  else
    at += other / 64 * distance(16) + other % 64 * 2 + summed / 8 * distance(32) + summed % 8 * 128;
  at ^= (at / 128 & 7) * 16;
  if (at + 2 > warp.shared.size()) refuse("a matrix lies outside of shared memory");
  std::uint16_t out = 0;
  std::memcpy(&out, warp.shared.data() + at, 2);
  return out;
}

/// wgmma.mma_async m64nNk16: the sums, a as a name or in four registers, b, whether it adds, signs, and which
/// of the two lie transposed.
template <class Half, std::size_t n>
void multiply_group(const Step& s) {
  const std::size_t sums = n / 2, size = s.what.operands.size();
  const bool named = size == sums + 7;
  if (!named && size != sums + 9) refuse(s.what.name + " has " + std::to_string(size) + " operands");
  if (!s.warp.begun) refuse(s.what.name + " comes before wgmma.fence");
  const std::size_t b_at = sums + (named ? 1 : 4);
  if (s.get(0, b_at + 2) != 1 || s.get(0, b_at + 3) != 1) refuse("a sign is turned");
  std::vector<float> left(16 * 16), right(16 * n);
  const bool b_lies_along = s.get(0, size - 1) == 0;
  for (std::size_t k = 0; k < 16; ++k) {
    for (std::size_t j = 0; j < n; ++j)
      right[k * n + j] = float(Half::from_bits(half_at(s.warp, s.get(0, b_at), b_lies_along, k, j)));
    for (std::size_t i = 0; i < 16; ++i) {
      const std::size_t lane = i % 8 * 4 + k % 8 / 2, pair = i / 8 + k / 8 * 2;
      left[i * 16 + k] = named
                             ? float(Half::from_bits(half_at(s.warp, s.get(0, sums), s.get(0, size - 2) == 0,
                                                             k, s.warp.of_group * 16 + i)))
                             : half_of<Half>(s.get(lane, sums + pair), k % 2);
    }
  }
  for (std::size_t l = 0; l < 32; ++l)
    for (std::size_t e = 0; e < sums; ++e) {
      const std::size_t i = l / 4 + e / 2 % 2 * 8, j = e / 4 * 8 + l % 4 * 2 + e % 2;
      float sum = s.get(l, b_at + 1) != 0 ? s.number(l, e) : 0;
      for (std::size_t k = 0; k < 16; ++k) sum += left[i * 16 + k] * right[k * n + j];
      s.set(l, e, std::bit_cast<std::uint32_t>(sum));
    }
  s.warp.under_way = true;
}
void begin_group(const Step& s) { s.warp.begun = true; }
void close_products(const Step& s) { s.warp.groups += std::exchange(s.warp.under_way, false) ? 1 : 0; }
void wait_products(const Step& s) {
  s.warp.groups = std::min(s.warp.groups, s.get(0, 0));
  s.warp.begun = false;
}

using Act = void (*)(const Step&);
const std::map<std::string, Act>& known() {
  static const std::map<std::string, Act> all{
      {"mov.b32", split},
      {"cvt.f32.f16", widen},
      {"cvt.rn.bf16x2.f32", pack<weft::bf16>},
      {"cvt.rn.f16x2.f32", pack<weft::f16>},
      {"cvt.rn.satfinite.e4m3x2.f32", pack_eights<weft::f8e4m3>},
      {"cvt.rn.satfinite.e5m2x2.f32", pack_eights<weft::f8e5m2>},
      {"cp.async.cg.shared.global", begin_copy},
      {"cp.async.commit_group", close_group},
      {"cp.async.wait_group", wait_group},
      {"ldmatrix.sync.aligned.m8n8.x4.shared.b16", [](const Step& s) { load_matrices(s, false); }},
      {"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", [](const Step& s) { load_matrices(s, true); }},
      {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", multiply<weft::bf16>},
      {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", multiply<weft::f16>},
      {"mov.b64", join_words},
      {"setp.ne.b32", [](const Step& s) { compare(s, std::not_equal_to<>()); }},
      {"setp.eq.b32", [](const Step& s) { compare(s, std::equal_to<>()); }},
      {"setp.lt.f32", [](const Step& s) { compare(s, is_less); }},
      {"@p", trap},
      {"fence.proxy.async.shared::cta", [](const Step& s) { s.warp.shown = true; }},
      {"wgmma.fence.sync.aligned", begin_group},
      {"wgmma.commit_group.sync.aligned", close_products},
      {"wgmma.wait_group.sync.aligned", wait_products},
      {"wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16", multiply_group<weft::bf16, 64>},
      {"wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16", multiply_group<weft::f16, 64>},
      {"wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16", multiply_group<weft::bf16, 32>},
      {"wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16", multiply_group<weft::f16, 32>},
      {"wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", multiply_group<weft::bf16, 256>},
      {"wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16", multiply_group<weft::f16, 256>},
  };
  return all;
}

}  // namespace

std::vector<Statement> statements_of(const std::string& source, const std::string& function) {
  const std::size_t name = source.find(" " + function + "(");
  if (name == std::string::npos) refuse("there is no function " + function);
  const std::size_t open = source.find('{', name), end = closed(source, open);
  std::vector<Statement> out;
  for (std::size_t at = source.find("asm", open); at < end; at = source.find("asm", at)) {
    at = source.find('(', at);
    const std::size_t behind = closed(source, at);
    out.push_back(statement_of(source.substr(at + 1, behind - at - 2)));
    at = behind;
  }
  return out;
}

void run(const Statement& statement, Warp& warp) {
  for (const Instruction& one : instructions_of(statement.code)) {
    const auto found = known().find(one.name);
    if (found == known().end()) refuse("no instruction " + one.name + " is known");
    found->second({statement, one, warp});
  }
}

}  // namespace emulated::ptx
