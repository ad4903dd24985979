// Operands that come from memory, and are asked for before they are read. Processors look ahead by
// themselves, but along one page of 4 KiB at a time, and a loop that walks straight on keeps them at one. So
// it asks for what comes after in an order of its own: of the next four pages a line each, in turn. That
// reads and copies a third faster than walking straight on (bench/results). For sources of loops/ only.
#pragma once

#include "weft/backend/cpu/fast/order.h"

namespace weft::fast::WEFT_ISA {

inline constexpr std::int64_t line_size = 64, page_size = 4096, pages_at_once = 4;
inline constexpr std::int64_t block_size = pages_at_once * page_size;

/// For each line of a block of pages another: neighbours get lines of different pages.
[[gnu::always_inline]] inline const void* line_in_turn(std::uintptr_t at, std::uintptr_t page) {
  constexpr auto block = std::uintptr_t(block_size);
  const std::uintptr_t within = at / pages_at_once % page_size / line_size * line_size;
  return reinterpret_cast<const void*>(at / block * block + page % pages_at_once * page_size + within);
}
[[gnu::always_inline]] inline std::uintptr_t next_block(const void* from) {
  return reinterpret_cast<std::uintptr_t>(from) + std::uintptr_t(block_size);
}
/// For loops that read line after line.
[[gnu::always_inline]] inline void ask_ahead(const void* from) {
  const std::uintptr_t at = next_block(from);
  __builtin_prefetch(line_in_turn(at, at / line_size));
}
/// For loops that read four lines at a time, or a multiple.
[[gnu::always_inline]] inline void ask_ahead(const void* from, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; i += pages_at_once * line_size) {
    const std::uintptr_t at = next_block(static_cast<const char*>(from) + i);
    for (std::uintptr_t page = 0; page < pages_at_once; ++page) __builtin_prefetch(line_in_turn(at, page));
  }
}

/// Where sixteen elements begin that a loop reads at once; of those that share their lines, the first only.
[[gnu::always_inline]] inline const void* line_of(In x, Plain at) {
  return static_cast<const float*>(x.from) + at.at;
}
[[gnu::always_inline]] inline const void* line_of(In x, Evens at) {
  return static_cast<const bf16*>(x.from) + at.at;
}
[[gnu::always_inline]] inline const void* line_of(In x, Whole at) {
  return static_cast<const char*>(x.from) + at.at * size_of(x.type);
}
template <class At>
[[gnu::always_inline]] inline void ask_ahead(In x, At at) {
  if constexpr (requires { line_of(x, at); }) ask_ahead(line_of(x, at));
}
/// For loops of each_of_four(): in a round they read as many lines as an element has bytes, which are asked
/// for when the first of the running sums is at work.
template <class At>
[[gnu::always_inline]] inline void ask_ahead(In x, At at, int sum) {
  if constexpr (requires { line_of(x, at); }) {
    if (sum != 0) return;
    const std::uintptr_t first = next_block(line_of(x, at));
    for (std::uintptr_t i = 0; i < std::uintptr_t(size_of(x.type)); ++i)
      __builtin_prefetch(line_in_turn(first, (first / line_size) ^ i));
  }
}
/// For loops that read several rows side by side anyway: the same place of rows that come later.
template <class At>
[[gnu::always_inline]] inline void ask_later(In x, At at, std::int64_t bytes) {
  if constexpr (requires { line_of(x, at); })
    __builtin_prefetch(static_cast<const char*>(line_of(x, at)) + bytes);
}

/// An operand that is read once, from its start to its end.
struct Coming {
  In in;
};
template <class At>
[[gnu::always_inline]] inline F load(Coming x, At at) {
  ask_ahead(x.in, at);
  return load(x.in, at);
}

}  // namespace weft::fast::WEFT_ISA
