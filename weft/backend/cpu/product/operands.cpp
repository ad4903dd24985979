// Copies for the caches, and lines asked for before they are needed. What a copy costs, and an unforeseen
// line, is what parts a product from the rate of its tiles.
#include "weft/backend/cpu/product/operands.h"

#include <algorithm>

#include "weft/backend/cpu/product/share_out.h"

namespace weft::product {
namespace {

/// Rows a multiple of 4 KiB apart meet in the same places of the caches: of the first operand they are
/// copied, if enough panels follow, and of the second not asked for.
constexpr std::int64_t unlucky_row = 1024, worth_copying = 1024;

Matrix at(Matrix m, std::int64_t row, std::int64_t column) {
  m.from = static_cast<const char*>(m.from) + (row * m.row + column) * size_of(m.type);
  return m;
}

/// A second operand as it lies.
struct Second {
  Matrix b;
  bool turned;

  Second from(std::int64_t k, std::int64_t column) const {
    return {turned ? at(b, column, k) : at(b, k, column), turned};
  }
};
Second second(const Problem& p) { return {p.b, p.b_turned}; }

void copy_panel(const Loops& loops, float* to, const Second& from, std::int64_t k, std::int64_t columns) {
  (from.turned ? loops.panel_from_columns : loops.panel_from_rows)(to, from.b, k, columns);
}

}  // namespace

Form Problem::form() const {
  const bool unlucky = a.row % unlucky_row == 0 && n >= worth_copying;
  const bool may_turn = b_turned && slabs == 1 && !(accumulate && has_bias);
  return {.m = m,
          .n = n,
          .k = k,
          .a_lies = a.type == fast::Type::f32 && !a_turned && !unlucky,
          .b_lies = b.type == fast::Type::f32 && b_turned,
          .may_turn = may_turn,
          .may_be_few = may_turn && !a_turned,
          .direct = out.type == fast::Type::f32,
          .bias = has_bias,
          .slabs = slabs};
}

Operands::Operands(const Problem& problem, const Loops& loops, const Plan& plan, float* workspace)
    : p_(problem), loops_(loops), plan_(plan), panels_(workspace), rows_(workspace + plan.shared_panels) {}

void Operands::take_group(std::int64_t k0) {
  k0_ = k0;
  depth_ = std::min(plan_.group, p_.k - k0);
  if (plan_.shared_panels == 0) return;
  const std::int64_t parts = divide(depth_, plan_.part);
  share_out(divide(p_.n, panel) * parts, plan_.threads, [&](std::int64_t i, int) {
    const std::int64_t j = i / parts * panel, k = i % parts * plan_.part;
    copy_panel(loops_, panels_ + j * depth_ + k * panel, second(p_).from(k0_ + k, j),
               std::min(plan_.part, depth_ - k), columns(i / parts));
  });
}

void Operands::take_stretch(std::int64_t i0, std::int64_t rows) {
  i0_ = i0;
  if (plan_.shared_rows == 0) return;
  constexpr std::int64_t some = 16 * six;
  share_out(divide(rows, some), plan_.threads, [&](std::int64_t i, int) {
    copy_rows(rows_ + i * some * depth_, i0_ + i * some, std::min(some, rows - i * some));
  });
}

void Operands::copy_rows(float* to, std::int64_t first, std::int64_t count) const {
  if (p_.a_turned)
    loops_.sixes(to, at(p_.a, k0_, first), count, depth_);
  else
    loops_.widen(to, at(p_.a, first, k0_), count, depth_);
}

OperandRows Operands::copied(const float* from) const {
  return p_.a_turned ? OperandRows{from, 1, six * depth_} : OperandRows{from, depth_, six * depth_};
}

OperandRows Operands::where_they_lie(std::int64_t first) const {
  return {static_cast<const float*>(at(p_.a, first, k0_).from), p_.a.row, six * p_.a.row};
}

bool Operands::rows_lie() const { return plan_.shared_rows == 0 && plan_.own_rows == 0; }

Block Operands::block(std::int64_t row, std::int64_t count) const {
  return {rows_lie() ? where_they_lie(i0_ + row) : copied(rows_ + row * depth_), i0_ + row, count};
}

Block Operands::block(std::int64_t first, std::int64_t count, float* own) const {
  if (rows_lie()) return {where_they_lie(first), first, count};
  copy_rows(own, first, count);
  return {copied(own), first, count};
}

std::int64_t Operands::columns(std::int64_t j) const { return std::min(panel, p_.n - j * panel); }

const float* Operands::shared_panel(std::int64_t j) const { return panels_ + j * panel * depth_; }

void Operands::take_panel(Block& block, std::int64_t j) const {
  block.column = j * panel;
  block.columns = columns(j);
  block.b = shared_panel(j);
  block.copy = nullptr;
}

void Operands::take_panel(Block& block, std::int64_t j, float* own, bool is_there) const {
  block.column = j * panel;
  block.columns = columns(j);
  block.b = own;
  block.copy = nullptr;
  if (is_there) return;
  // Whole panels of f32 by rows take no copying but the first tiles' storing of what they have read.
  if (!p_.b_turned && p_.b.type == fast::Type::f32 && block.columns == panel && block.count >= six)
    block.copy = own;
  else
    copy_panel(loops_, own, second(p_).from(k0_, block.column), depth_, block.columns);
}

void Operands::point(Stripe& stripe, const Block& block, std::int64_t k, std::int64_t count) const {
  stripe.k = count;
  stripe.a = block.rows.k(k);
  stripe.next_a = k + count < depth_ ? block.rows.k(k + count) : nullptr;
  stripe.fresh = block.fresh;
  stripe.ahead = ahead(block.next, k + block.next.later, count);
  stripe.b = block.b + k * panel;
  if (!block.copy) return;
  stripe.b = static_cast<const float*>(at(p_.b, k0_ + k, block.column).from);
  stripe.b_row = p_.b.row;
  stripe.copy = block.copy + k * panel;
}

Ahead Operands::ahead(const Next& next, std::int64_t k, std::int64_t count) const {
  if (next.rows != none)
    return six_ahead(at(p_.a, next.rows, k0_ + k).from, p_.a.row, p_.m - next.rows, count);
  if (next.panel == none) return {};
  if (plan_.shared_panels == 0) return ahead_where_it_lies(next.panel, k, count);
  return {.from = shared_panel(next.panel) + k * panel,
          .lines = count * panel * std::int64_t{sizeof(float)} / line_bytes,
          .line = line_bytes,
          .strides = 1,
          .stride = 0};
}

Ahead Operands::ahead_where_it_lies(std::int64_t j, std::int64_t k, std::int64_t count) const {
  if (!p_.b_turned && p_.b.row % unlucky_row == 0) return {};
  const std::int64_t size = size_of(p_.b.type);
  return {.from = second(p_).from(k0_ + k, j * panel).b.from,
          .lines = divide((p_.b_turned ? count : columns(j)) * size, line_bytes),
          .line = line_bytes,
          .strides = p_.b_turned ? columns(j) : count,
          .stride = p_.b.row * size};
}

void pack(float* to, Matrix b, bool turned, std::int64_t k, std::int64_t n, const Loops& loops, int threads) {
  share_out(divide(n, panel), threads, [&](std::int64_t i, int) {
    const Second from = Second{b, turned}.from(0, i * panel);
    copy_panel(loops, to + i * panel * k, from, k, std::min(panel, n - i * panel));
  });
}

}  // namespace weft::product
