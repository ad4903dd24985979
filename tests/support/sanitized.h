// How much of a long repetition a sanitized build looks at.
#pragma once

#include <cstddef>
#include <vector>

namespace weft::testing {

// Preprocessors of g++ and clang each have their own word for it.
#if defined(__has_feature)
inline constexpr bool addresses_watched = __has_feature(address_sanitizer);
inline constexpr bool threads_watched = __has_feature(thread_sanitizer);
#else
inline constexpr bool addresses_watched =
#ifdef __SANITIZE_ADDRESS__
    true;
#else
    false;
#endif
inline constexpr bool threads_watched =
#ifdef __SANITIZE_THREAD__
    true;
#else
    false;
#endif
#endif
inline constexpr bool sanitized = addresses_watched || threads_watched;

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
