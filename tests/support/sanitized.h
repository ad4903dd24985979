// How much of a long repetition a sanitized build looks at.
#pragma once

#include <cstddef>
#include <vector>

namespace weft::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif
#else
inline constexpr bool sanitized = false;
#endif

/// Whether it is threads that are looked at: large memory costs most then, and shows least.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool threads_watched = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool threads_watched = true;
#else
inline constexpr bool threads_watched = false;
#endif
#else
inline constexpr bool threads_watched = false;
#endif

/// The sanitizers look for kinds of access, the plain build at every number: where a test repeats one kind of
/// access for many cases, a sanitized build takes every n-th.
constexpr int every(int n) { return sanitized ? n : 1; }

/// All cases, or every n-th where a sanitizer looks.
template <class Case>
std::vector<Case> some_of(const std::vector<Case>& all, int n) {
  std::vector<Case> out;
  for (std::size_t i = 0; i < all.size(); i += std::size_t(every(n))) out.push_back(all[i]);
  return out;
}

/// So many steps, or two where a sanitizer looks: what memory a step takes up for the first time, the second
/// has already.
constexpr int rounds(int n) { return sanitized && n > 2 ? 2 : n; }

}  // namespace weft::testing
