// Gradients of ranks that read other samples, added: bucket by bucket, while backward goes on where asked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "weft/optim/grad_shares.h"
#include "weft/optim/grad_tree.h"
#include "weft/optim/narrow_sums.h"
#include "weft/optim/under_way.h"
#include "weft/optim/weights.h"

namespace weft {

/// What a step leaves of gradients: their sums over data-parallel ranks, or each rank's own.
enum class GradsOf : std::uint8_t { all_ranks, own_samples };
enum class ReduceWhen : std::uint8_t { after_backward, when_a_bucket_is_full };

/// In which order a gradient's terms are added where gradients are cut over ranks: those of all microbatches
/// of a rank first, as where they are whole, so that a rank needs room for all of them through a step; or
/// those of all ranks first, with every microbatch, so that it needs room for a few layers' only.
enum class AddFirst : std::uint8_t { microbatches, ranks };

/// Layers tell when a use of a weight has added a microbatch's gradient. How often that happens in a
/// microbatch is learned in the first step; from then on a bucket leaves as soon as the last microbatch has
/// filled it. All ranks of a circle run the same program, so their buckets leave in the same order. Where
/// states are cut a rank receives its own part only. Sums are those of all_reduce in either case, and no
/// border shows in them. Terms that ranks along other axes of the mesh hold are added among those first, a
/// bucket in one word, and go on when the next bucket sets out: backward never waits for a word that has just
/// begun.
/// In exact mode microbatches are added as a tree, and buckets leave when it is complete.
///
/// Where gradients are cut, a bucket gets room when the first of its gradients is added. How many there will
/// be is what parameters say (Parameter::uses); with the last of them the room's content leaves, in backward
/// whatever `when` says, and what arrives here is the rank's share. A bucket that somebody adds to once more
/// gets room once more, so a wrong number costs memory, never a term.
class GradReduction final : public GradListener {
 public:
  /// Collective over ranks that share pieces.
  GradReduction(Weights& weights, ReduceWhen when, const SumRules& sums = {},
                AddFirst first = AddFirst::ranks);
  ~GradReduction() override;
  GradReduction(const GradReduction&) = delete;
  GradReduction& operator=(const GradReduction&) = delete;

  /// Before the first microbatch of a step.
  void begin(int microbatches, GradsOf of = GradsOf::all_ranks);
  void added(int parameter) override;
  void make_room(int parameter) override;
  /// When backward is done: whatever has not left leaves, and everything has arrived.
  void finish();
  /// Buckets of the latest step that left before its backward was done.
  int left_early() const { return left_early_; }
  /// Gives up gradients that were added while no step was going on and have no memory of their own.
  void drop_rooms();

 private:
  struct Leaving {
    WeightBlock* block;
    std::size_t bucket;
    Communicator* terms = nullptr;       // hold terms of the sums of all of it,
    Communicator* neighbours = nullptr;  // or of each last piece
    int uses = 0;                        // gradients that a microbatch adds, as parameters say
    int waits_for = 0;                   // gradients that are still to be added before it leaves
    bool left = false, sent = false;     // in this step: for ranks that hold terms, and for readers
    Tensor wire;        // where gradients travel rounded: all of the bucket's, until it has arrived
    FreshSums fresh{};  // where gradients are cut: how those of a room begin,
    Tensor room;        // what is being added to,
    Tensor going;       // and what leaves
    bool cut() const { return block->readers.cut(CutUp::gradients); }
    const WeightBucket& place() const { return block->buckets[bucket]; }
    /// This rank's sum of all of it.
    Tensor whole() const { return cut() ? going : block->grads.slice(0, place().at, place().elements); }
  };
  struct Counted {
    std::size_t leaving;   // the bucket it stands in
    int added = 0;         // in this step
    int a_microbatch = 0;  // 0: not known yet
  };
  /// Who holds terms of a block's sums, or of each last piece's, along axes of the model.
  Communicator* terms_of(const WeightBlock& block) const;
  Communicator* neighbours_of(const WeightBlock& block) const;
  void learn();
  void count_down(Leaving& bucket);
  void close(Leaving& bucket);
  void set_out(Leaving& bucket);
  void add_parts(Leaving& bucket);
  void go_on();
  void leave(Leaving& bucket);
  Tensor own_part(const Leaving& bucket) const;
  void arrive(Leaving& bucket) const;
  void add_over_groups();

  Weights& weights_;
  ReduceWhen when_;
  std::vector<Leaving> buckets_;
  Leaving* first_ = nullptr;  // the bucket whose parts are being added
  Pending parts_;
  Tensor shared_;  // of that bucket: pieces that neighbours hold too, one after the other
  std::vector<Counted> parameters_;
  std::optional<GradTree> tree_;  // exact mode
  AddFirst order_;
  NarrowSums narrow_;
  UnderWay under_way_;
  GradShares shares_;
  GradsOf of_ = GradsOf::all_ranks;
  bool open_ = false;
  int microbatches_ = 0, left_early_ = 0;
};

}  // namespace weft
