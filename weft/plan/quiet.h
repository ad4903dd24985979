// Circles in which nobody answers: one rank of many runs alone on a device that holds no numbers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/mesh/layout.h"

namespace weft {

/// Every word returns at once and changes nothing, which is all that a device that only counts can tell.
class QuietCommunicator : public Communicator {
 public:
  QuietCommunicator(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const char* carrier() const override { return "nobody"; }
  void barrier() override {}
  Pending all_reduce(const Tensor& x, Reduce) override { return holding(x, x); }
  /// In the host's memory, where ranks tell one another texts, the others have nothing to say.
  Pending all_gather(const Tensor& full, const Tensor& shard) override;
  Pending reduce_scatter(const Tensor& shard, const Tensor& full) override { return holding(shard, full); }
  Pending all_to_all(const Tensor& out, const Tensor& in, std::span<const std::int64_t>,
                     std::span<const std::int64_t>) override {
    return holding(out, in);
  }
  Pending broadcast(const Tensor& x, int) override { return holding(x, x); }
  Pending send(const Tensor& x, int, int) override { return holding(x, x); }
  Pending recv(const Tensor& x, int, int) override { return holding(x, x); }
  /// Nobody else says its color, so this is for the last rank, of circles that are cut into runs of equal
  /// size.
  std::unique_ptr<Communicator> split(int color, int key) override;

 private:
  /// As ranks that speak do, until it is waited for.
  static Pending holding(const Tensor& a, const Tensor& b) {
    return Pending([a = a, b = b] {});
  }
  int rank_, size_;
};

/// The colors that every rank of a layout says when a mesh is made: by rank, then by call.
using Colors = std::vector<std::vector<int>>;
Colors colors_of(const ParallelLayout& layout);

/// What the stages of a pipeline told one another, by stage, as far as they have been counted.
using Told = std::vector<std::string>;

/// A stage hears those before it: which of its tied weights are copies of theirs.
class QuietPipeline final : public QuietCommunicator {
 public:
  QuietPipeline(int rank, int size, Told& told) : QuietCommunicator(rank, size), told_(told) {}
  std::vector<std::string> tell_all(const std::string& mine) override;

 private:
  Told& told_;
};

/// The world of one rank, which knows what the others would say.
class QuietWorld final : public QuietCommunicator {
 public:
  QuietWorld(int rank, const Colors& colors, Told* told = nullptr)
      : QuietCommunicator(rank, int(colors.size())), colors_(colors), told_(told) {}
  std::unique_ptr<Communicator> split(int color, int key) override;

 private:
  const Colors& colors_;
  Told* told_;
  std::size_t call_ = 0;
};

}  // namespace weft
