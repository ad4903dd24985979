// Weights are lent to the layers that read them, by whoever knows where they are: gathered from ranks, read
// from a disk, or here all the time.
#pragma once

#include <cstdint>

namespace weft {

enum class Way : std::uint8_t { forward, backward };

/// Between lend() and take_back() the values of a layer's weights (Layer::each_read, or each_read_back) are
/// where its parameters say, and nobody else may rely on them. Layers of a stage are lent one after the
/// other, backward in reverse, so that the next one can be fetched meanwhile. Gradients of weights, which are
/// added to later, need no lease.
class Lender {
 public:
  virtual ~Lender() = default;
  virtual void lend(int layer, Way way) = 0;
  virtual void take_back(int layer, Way way) noexcept = 0;
};

/// A layer's weights for as long as this lives. Without a lender they are here anyway.
class Lease {
 public:
  Lease(Lender* lender, int layer, Way way) : lender_(lender), layer_(layer), way_(way) {
    if (lender_) lender_->lend(layer_, way_);
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() {
    if (lender_) lender_->take_back(layer_, way_);
  }

 private:
  Lender* lender_;
  int layer_;
  Way way_;
};

}  // namespace weft
