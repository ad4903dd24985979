// XXH3's 128 bits of anything: whether two files or tensors are equal, without holding both.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace weft {

struct Hash {
  std::uint64_t high = 0, low = 0;

  friend auto operator<=>(const Hash&, const Hash&) = default;
  /// 32 hexadecimal digits, as xxhsum -H2 prints them.
  [[nodiscard]] std::string hex() const;
};

[[nodiscard]] Hash hash(std::span<const std::byte> bytes);
[[nodiscard]] Hash hash(std::string_view text);

/// The hash of what is added piece by piece: the pieces' borders leave no trace.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;

  void add(std::span<const std::byte> bytes);
  void add(std::string_view text);
  /// Of all that was added so far; more may be added.
  [[nodiscard]] Hash hash() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft
