// How much of a long repetition a sanitized build looks at.
#pragma once

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

/// The sanitizers look for kinds of access, the plain build at every number: where a test repeats one kind of
/// access for many cases, a sanitized build takes every n-th.
constexpr int every(int n) { return sanitized ? n : 1; }

}  // namespace weft::testing
