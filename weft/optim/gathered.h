// Weights that every rank keeps a share of, or that lie in a file, whole while a layer reads them.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "weft/comm/pending.h"
#include "weft/nn/layer.h"
#include "weft/optim/fetched.h"
#include "weft/optim/weights.h"
#include "weft/tensor/args.h"

namespace weft {

/// Lends a stage's weights where they are cut over ranks (CutUp::weights). A layer's buckets are gathered
/// from those ranks when it is lent, the next layer's set out at the same time, and memory goes when nobody
/// reads any of it: two layers' weights are whole at once, and twice as many where a forward is computed
/// beside a backward. All ranks that share a bucket run the same program, so they gather in one order. What
/// backward does not read is not gathered for it.
///
/// Where ranks near each other hold all weights a second time (ZeRO++ calls it hpZ), a bucket comes from all
/// ranks when it is read for the first time after an update, and each keeps a part of it; until the next
/// update it comes from the near ones.
///
/// Where matrices travel as small integers (ZeRO++ calls it qwZ; DataParallel::weight_block), every rank
/// reads what all of them unpack, its own share too, and near ranks keep that. Masters are what they are.
///
/// Where weights lie in a file (WeightBlock::in_file), what a bucket's layer reads is fetched on a thread
/// from the time that the layer before it is lent; a share is then gathered when it is here.
class GatheredWeights final : public Lender {
 public:
  GatheredWeights(const Weights& weights, const Stage& stage);
  void lend(int layer, Way way) override;
  void take_back(int layer, Way way) noexcept override;

 private:
  struct Bucket {
    const WeightBlock* block;
    std::size_t number;  // in the block
    Tensor whole;        // while somebody asked for it
    Pending coming;
    int asked = 0;
    Tensor share = {};  // from a file, until it is gathered
    Fetcher::Ticket fetch = 0;
    Tensor second = {};         // this rank's part of what near ranks hold among them; empty: they do not
    Tensor packed = {};         // u8 [ranks, bytes of a share]: what is coming, where it is packed
    std::int64_t copied = -1;   // version of the weights that it was copied from,
    std::int64_t arrives = -1;  // and of those that are coming
  };
  /// What a layer reads, as places in buckets_.
  using Reads = std::vector<std::size_t>;
  const Reads& reads(int layer, Way way) const { return reads_[std::size_t(way)][std::size_t(layer)]; }
  void note(const Parameter& parameter, Reads& reads);
  void ask(int layer, Way way);
  void ask_file(Bucket& bucket);
  void gather_fetched(Bucket& bucket);
  Tensor room_for(const Bucket& bucket) const;
  bool packs(const Bucket& bucket) const;
  void gather(Bucket& bucket, const Tensor& share);
  void unpack(Bucket& bucket) const;
  void arrive(Bucket& bucket);
  void leave(int layer, Way way);

  const Weights& weights_;
  BlockCode code_;
  std::vector<Bucket> buckets_;
  std::array<std::vector<Reads>, 2> reads_;  // by way and layer
  std::unique_ptr<Fetcher> fetcher_;         // where any lies in a file
  std::array<int, 2> ahead_{-1, -1};         // by way: the layer that was asked for before it is lent
};

}  // namespace weft
