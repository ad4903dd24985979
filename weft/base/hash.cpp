#include "weft/base/hash.h"

#include <xxhash.h>

#include <array>
#include <cstdio>
#include <new>

namespace weft {
namespace {

Hash from(const XXH128_hash_t& found) { return {.high = found.high64, .low = found.low64}; }

}  // namespace

struct Hasher::State {
  State() : xxh(XXH3_createState()) {
    if (xxh == nullptr) throw std::bad_alloc();
    XXH3_128bits_reset(xxh);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { XXH3_freeState(xxh); }

  XXH3_state_t* xxh;
};

std::string Hash::hex() const {
  std::array<char, 33> out{};
  std::snprintf(out.data(), out.size(), "%016llx%016llx", static_cast<unsigned long long>(high),
                static_cast<unsigned long long>(low));
  return out.data();
}

Hash hash(std::span<const std::byte> bytes) { return from(XXH3_128bits(bytes.data(), bytes.size())); }
Hash hash(std::string_view text) { return hash(std::as_bytes(std::span(text))); }

Hasher::Hasher() : state_(std::make_unique<State>()) {}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

void Hasher::add(std::span<const std::byte> bytes) {
  if (!bytes.empty()) XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
}
void Hasher::add(std::string_view text) { add(std::as_bytes(std::span(text))); }
Hash Hasher::hash() const { return from(XXH3_128bits_digest(state_->xxh)); }

}  // namespace weft
