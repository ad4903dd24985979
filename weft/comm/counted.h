// Circles that count the bytes their rank sends.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "weft/comm/communicator.h"

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

/// Speaks through `inner`, and adds what leaves to an account, which is its own until it is given one.
/// Circles that are split off it inherit that. Both outlive it. Texts that hosts tell one another are not
/// counted.
class CountedCommunicator final : public Communicator {
 public:
  explicit CountedCommunicator(Communicator& inner) : inner_(inner) {}
  /// Of a circle that lives as long as this.
  CountedCommunicator(std::unique_ptr<Communicator> inner, Sent& sent)
      : owned_(std::move(inner)), inner_(*owned_), sent_(&sent) {}
  CountedCommunicator(const CountedCommunicator&) = delete;
  CountedCommunicator& operator=(const CountedCommunicator&) = delete;

  /// To whom `circle`, which was split off this one, adds from now on; nothing happens where it was not.
  void charge(const Communicator& circle, Sent& sent);
  void charge_here(Sent& sent) { sent_ = &sent; }

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  Pulse* pulse() const override { return inner_.pulse(); }
  const char* carrier() const override { return inner_.carrier(); }
  bool adds_as_trees() const override { return inner_.adds_as_trees(); }
  std::vector<std::string> tell_all(const std::string& mine) override { return inner_.tell_all(mine); }
  void agree(std::span<double> numbers, Reduce how) override { inner_.agree(numbers, how); }
  Pending all_reduce(const Tensor& x, Reduce how) override;
  Pending all_gather(const Tensor& full, const Tensor& shard) override;
  Pending reduce_scatter(const Tensor& shard, const Tensor& full) override;
  Pending all_to_all(const Tensor& out, const Tensor& in, std::span<const std::int64_t> in_rows,
                     std::span<const std::int64_t> out_rows) override;
  Pending broadcast(const Tensor& x, int root) override;
  Pending send(const Tensor& x, int to, int tag) override;
  Pending recv(const Tensor& x, int from, int tag) override { return inner_.recv(x, from, tag); }
  void barrier() override { inner_.barrier(); }
  std::unique_ptr<Communicator> split(int color, int key) override;

 private:
  void count(Traffic what, std::int64_t bytes) { sent_->bytes[std::size_t(what)] += bytes; }
  std::int64_t others_part(std::int64_t bytes) const { return bytes * (size() - 1) / size(); }

  std::unique_ptr<Communicator> owned_;
  Communicator& inner_;
  Sent own_;
  Sent* sent_ = &own_;
  std::vector<CountedCommunicator*> children_;
};

}  // namespace weft
