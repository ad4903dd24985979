// The one word that needs an answer: who is in a circle.
#include "weft/plan/quiet.h"

#include <cstddef>
#include <cstring>

#include "weft/mesh/circles.h"
#include "weft/mesh/mesh.h"

namespace weft {
namespace {

/// Notes what its rank says.
class Recorder final : public QuietCommunicator {
 public:
  Recorder(int rank, int size, std::vector<int>& said) : QuietCommunicator(rank, size), said_(said) {}
  std::unique_ptr<Communicator> split(int color, int) override {
    said_.push_back(color);
    return std::make_unique<QuietCommunicator>(0, 1);
  }

 private:
  std::vector<int>& said_;
};

}  // namespace

Pending QuietCommunicator::all_gather(const Tensor& full, const Tensor& shard) {
  if (full.device().holds_numbers()) {
    std::memset(full.address(), 0, std::size_t(full.bytes()));
    std::memcpy(static_cast<std::byte*>(full.address()) + rank_ * shard.bytes(), shard.address(),
                std::size_t(shard.bytes()));
  }
  return holding(full, shard);
}

std::unique_ptr<Communicator> QuietCommunicator::split(int color, int) {
  const bool last_of_runs = rank_ + 1 == size_ && color >= 0 && size_ % (color + 1) == 0;
  const int run = last_of_runs ? size_ / (color + 1) : 1;
  return std::make_unique<QuietCommunicator>(run - 1, run);
}

Colors colors_of(const ParallelLayout& layout) {
  Colors all(std::size_t(layout.world()));
  for (int rank = 0; rank < layout.world(); ++rank) {
    Recorder world(rank, layout.world(), all[std::size_t(rank)]);
    const ProcessMesh mesh(layout, world);
  }
  return all;
}

std::vector<std::string> QuietPipeline::tell_all(const std::string& mine) {
  told_.resize(std::size_t(size()));
  told_[std::size_t(rank())] = mine;
  return told_;
}

std::unique_ptr<Communicator> QuietWorld::split(int color, int) {
  int mine = 0, members = 0;
  for (std::size_t other = 0; other < colors_.size(); ++other) {
    if (colors_[other].at(call_) != color) continue;
    if (int(other) < rank()) ++mine;
    ++members;
  }
  const bool pipeline = call_ < dense_circles.size() && dense_circles[call_] == Axes{Axis::pp};
  ++call_;
  if (pipeline && told_ != nullptr) return std::make_unique<QuietPipeline>(mine, members, *told_);
  return std::make_unique<QuietCommunicator>(mine, members);
}

}  // namespace weft
