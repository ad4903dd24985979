// Circles that count the bytes their rank sends.
#pragma once

#include <array>
#include <cstdint>

#include "weft/comm/passing.h"

namespace weft {

/// What a word is for.
enum class Traffic : std::uint8_t { sums, gathered, traded, handed_on };
constexpr int kinds_of_traffic = 4;

/// Bytes that leave a rank, where each word takes the least of them that it can. Of N ranks and n bytes: a
/// sum that all get 2n(N-1)/N; a sum that is scattered, or what is gathered, n(N-1)/N, n being the whole; of
/// what is traded, the rows of others; and what is sent, or broadcast by this rank, once.
struct Sent {
  std::array<std::int64_t, kinds_of_traffic> bytes{};
  std::int64_t of(Traffic what) const { return bytes[std::size_t(what)]; }
  std::int64_t total() const;
  bool operator==(const Sent&) const = default;
};

/// Speaks through another, and adds what leaves to its account. Texts that hosts tell one another are not
/// counted.
class CountedCommunicator final : public ChargedCommunicator<CountedCommunicator, Sent> {
 public:
  using ChargedCommunicator::ChargedCommunicator;

  Pending all_reduce(const Tensor& x, Reduce how) override;
  Pending all_gather(const Tensor& full, const Tensor& shard) override;
  Pending reduce_scatter(const Tensor& shard, const Tensor& full) override;
  Pending all_to_all(const Tensor& out, const Tensor& in, std::span<const std::int64_t> in_rows,
                     std::span<const std::int64_t> out_rows) override;
  Pending broadcast(const Tensor& x, int root) override;
  Pending send(const Tensor& x, int to, int tag) override;
  Pending recv(const Tensor& x, int from, int tag) override { return inner().recv(x, from, tag); }

 private:
  void count(Traffic what, std::int64_t bytes) { account()->bytes[std::size_t(what)] += bytes; }
  std::int64_t others_part(std::int64_t bytes) const { return bytes * (size() - 1) / size(); }
};

}  // namespace weft
