// Gradients of ranks that read other samples, added: bucket by bucket, while backward goes on where asked.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "weft/optim/grad_tree.h"
#include "weft/optim/under_way.h"
#include "weft/optim/weights.h"

namespace weft {

/// What a step leaves of gradients: their sums over data-parallel ranks, or each rank's own.
enum class GradsOf : std::uint8_t { all_ranks, own_samples };
enum class ReduceWhen : std::uint8_t { after_backward, when_a_bucket_is_full };

/// Layers tell when a use of a weight has added a microbatch's gradient. How often that happens in a
/// microbatch is learned in the first step; from then on a bucket leaves as soon as the last microbatch has
/// filled it. All ranks of a circle run the same program, so their buckets leave in the same order. Where
/// states are cut a rank receives its own part only. Sums are those of all_reduce in either case, and no
/// border shows in them. Terms that ranks along other axes of the mesh hold are added among those first, a
/// bucket in one word, and go on when the next bucket sets out: backward never waits for a word that has just
/// begun.
/// In exact mode microbatches are added as a tree, and buckets leave when it is
/// complete.
class GradReduction final : public GradListener {
 public:
  /// Collective over ranks that share pieces.
  GradReduction(Weights& weights, ReduceWhen when, const SumRules& sums = {});
  ~GradReduction() override;
  GradReduction(const GradReduction&) = delete;
  GradReduction& operator=(const GradReduction&) = delete;

  /// Before the first microbatch of a step.
  void begin(int microbatches, GradsOf of = GradsOf::all_ranks);
  void added(int parameter) override;
  /// When backward is done: whatever has not left leaves, and everything has arrived.
  void finish();
  /// Buckets of the latest step that left before its backward was done.
  int left_early() const { return left_early_; }

 private:
  struct Leaving {
    WeightBlock* block;
    std::size_t bucket;
    Communicator* terms = nullptr;       // hold terms of the sums of all of it,
    Communicator* neighbours = nullptr;  // or of each last piece
    int waits_for = 0;                   // gradients that are still to be added in this step
    bool left = false;
    Tensor wire;  // where gradients travel rounded: all of the bucket's, until it has arrived
  };
  struct Counted {
    std::size_t leaving;   // the bucket it stands in
    int added = 0;         // in this step
    int a_microbatch = 0;  // 0: not known yet
  };
  /// Who holds terms of a block's sums, or of each last piece's, along axes of the model.
  Communicator* terms_of(const WeightBlock& block) const;
  Communicator* neighbours_of(const WeightBlock& block);
  void learn();
  void set_out(Leaving& bucket);
  void add_parts(Leaving& bucket);
  void go_on();
  void leave(Leaving& bucket);
  Tensor own_part(const Leaving& bucket) const;
  void arrive(Leaving& bucket) const;

  Weights& weights_;
  std::map<Neighbours, std::unique_ptr<Communicator>> neighbours_;
  ReduceWhen when_;
  std::vector<Leaving> buckets_;
  Leaving* first_ = nullptr;  // the bucket whose parts are being added
  Pending parts_;
  Tensor shared_;  // of that bucket: pieces that neighbours hold too, one after the other
  std::vector<Counted> parameters_;
  std::optional<GradTree> tree_;  // exact mode
  UnderWay under_way_;
  GradsOf of_ = GradsOf::all_ranks;
  bool open_ = false;
  int microbatches_ = 0, left_early_ = 0;
};

}  // namespace weft
