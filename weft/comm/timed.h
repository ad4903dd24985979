// Circles that look at the clock: how long a rank waits for the others, and for which of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/comm/communicator.h"

namespace weft {

/// Speaks through `inner`, and adds the seconds that words and waits take to an account, which is its own
/// until it is given one. Circles that are split off it inherit that. Both outlive it.
class TimedCommunicator final : public Communicator {
 public:
  explicit TimedCommunicator(Communicator& inner) : inner_(inner) {}
  /// Of a circle that lives as long as this.
  TimedCommunicator(std::unique_ptr<Communicator> inner, double& seconds)
      : owned_(std::move(inner)), inner_(*owned_), seconds_(&seconds) {}
  TimedCommunicator(const TimedCommunicator&) = delete;
  TimedCommunicator& operator=(const TimedCommunicator&) = delete;

  /// What `circle`, which was split off this one, takes from now on; nothing happens where it was not.
  void charge(const Communicator& circle, double& seconds);
  void charge_here(double& seconds) { seconds_ = &seconds; }

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
  Pending recv(const Tensor& x, int from, int tag) override;
  void barrier() override;
  std::unique_ptr<Communicator> split(int color, int key) override;

 private:
  template <class Word>
  Pending timed(const Word& word);

  std::unique_ptr<Communicator> owned_;
  Communicator& inner_;
  double own_ = 0;
  double* seconds_ = &own_;
  std::vector<TimedCommunicator*> children_;
};

}  // namespace weft
