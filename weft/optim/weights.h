// All weights of a rank and what training keeps beside them, in few flat blocks: one pass over memory updates
// thousands of parameters.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/mesh/mesh.h"
#include "weft/nn/linear.h"
#include "weft/nn/parameter.h"
#include "weft/optim/fresh_sums.h"
#include "weft/optim/owned_part.h"
#include "weft/optim/ties.h"

namespace weft {

class UnderWay;
class Shelf;
class DueUpdate;
struct Offload;

/// Parameters that are treated alike stand in one block.
struct WeightKind {
  bool decays = true;
  Role role = Role::inner;
  Pace pace = Pace::usual;
  bool counted = true;      // this rank's copy is the one that norms count
  Axes copies;              // of the model: ranks along them hold the same, in buckets that are the same
  Axes partial;             // of the model: ranks along them hold terms of the gradients' sums
  View view = View::dense;  // data-parallel ranks are those of this view
  Neighbours shared;        // more than one: hold each last piece too, and one counts it
  auto operator<=>(const WeightKind&) const = default;
};

/// One parameter's place in a block, counted in elements.
struct WeightSlot {
  Parameter* parameter;
  std::int64_t at;
};

/// Parameters whose gradients are added over data-parallel ranks in one go.
struct WeightBucket {
  int first_slot = 0, slots = 0;
  std::int64_t at = 0, elements = 0;
};

/// How far ranks that read other samples cut up what they would all hold. Each step includes those before it.
enum class CutUp : std::uint8_t { nothing, states, gradients, weights };

/// Ranks that hold the same weights and read other samples, or other parts of them; they may share the work
/// of an update.
struct Readers {
  Communicator* circle = nullptr;  // none: nobody else
  CutUp so_far = CutUp::nothing;   // every rank keeps its part of these, and updates that
  Communicator* twins = nullptr;   // where several groups cut up the same: ranks that keep the same parts
  Communicator* near = nullptr;    // of the circle: ranks that hold all its weights a second time among them
  Communicator* far = nullptr;     // of the circle: those that have this one's place among others' near ranks
  int rank() const { return circle ? circle->rank() : 0; }
  int ranks() const { return circle ? circle->size() : 1; }
  bool cut(CutUp what = CutUp::states) const { return so_far >= what && ranks() > 1; }
};

/// Contiguous memory of all parameters of one kind. Between parameters lie zeros, up to the next 64 bytes.
struct WeightBlock {
  WeightKind kind;
  Readers readers;
  std::vector<WeightSlot> slots;
  std::vector<WeightBucket> buckets;  // as backward fills them: the last parameters first
  std::vector<OwnedPart> owned;       // one a bucket where states are cut, else one for all
  std::int64_t elements = 0, kept = 0;
  // Of owned elements only where weights, or gradients, are cut.
  Tensor values;           // what layers read: f32, bf16 or f16
  Tensor master;           // f32: the values themselves where those are f32, else of owned elements
  Shelf* shelf = nullptr;  // where masters lie in a file: windows of them are here while they are walked
  bool in_file = false;    // values do: lent to layers as cut ones are, and written by windows
  std::size_t values_there = 0;  // what the shelf calls them, where they are not the masters
  Tensor grads;                  // f32, or fewer bits (narrow_sums.h); empty where nothing is trained
  FreshSums fresh;               // where layers add to these as they lie

  std::span<const WeightSlot> slots_of(const WeightBucket& bucket) const {
    return std::span(slots).subspan(std::size_t(bucket.first_slot), std::size_t(bucket.slots));
  }
  /// Of every bucket of `flat`, which is as large as the block: each rank has its own part, and gets the
  /// others'.
  void gather(const Tensor& flat, UnderWay& under_way) const;

  /// Of what travels in small integers. Vectors are few, and one gain would be the scale of many a bias.
  bool holds_matrices(const WeightBucket& bucket) const;

  bool sums_in_grads() const {
    return grads && !readers.cut(CutUp::gradients) && grads.dtype() == Dtype::f32;
  }
  bool master_is_values() const { return values.dtype() == master.dtype(); }
  /// Whoever reads these lends them to layers.
  bool lent() const { return in_file || readers.cut(CutUp::weights); }
  /// Of a bucket, what this rank updates.
  OwnedPart share_of(std::size_t bucket) const {
    if (readers.cut()) return owned[bucket];
    return {.at = buckets[bucket].at, .kept = buckets[bucket].at, .count = buckets[bucket].elements};
  }
  Tensor value_of(const OwnedPart& part) const {
    return in_file ? in_window(values_there, part) : own(values, CutUp::weights, part);
  }
  Tensor grad_of(const OwnedPart& part) const { return own(grads, CutUp::gradients, part); }
  Tensor master_of(const OwnedPart& part) const {
    if (shelf != nullptr) return in_window(0, part);
    return master_is_values() ? value_of(part) : master.slice(0, part.kept, part.count);
  }

 private:
  Tensor in_window(std::size_t number, const OwnedPart& part) const;
  Tensor own(const Tensor& held, CutUp what, const OwnedPart& part) const {
    return held.slice(0, readers.cut(what) ? part.kept : part.at, part.count);
  }
};

/// How ranks that read other samples share the work on one set of weights.
struct DataParallel {
  const ProcessMesh* mesh = nullptr;  // none: this rank holds all there is
  CutUp cut = CutUp::nothing;         // ZeRO's stage
  std::int64_t bucket = 0;            // elements after which a bucket may be closed; 0: a bucket a block
  int groups = 1;                     // that cut it up each; gradients are then added over groups too
  int near = 0;                       // ranks next to each other that hold cut weights a second time
  Dtype wire = Dtype::f32;            // what gradients travel as
  // Where cut matrices, or their cut gradients, travel as small integers: how many share a scale (0: not so).
  std::int64_t weight_block = 0, gradient_block = 0;
  Dtype sums = Dtype::f32;           // what they are kept in from one microbatch to the next
  const Offload* offload = nullptr;  // states, masters of other types than f32, or all of it lie in a file
};

/// What this rank holds of a tensor that is as large as a parameter: a master, a moment. Replica 0 of every
/// box is written to checkpoints; memory holds more than the pieces.
struct Held {
  std::string name;
  const Parameter& parameter;
  Tensor memory;              // contiguous
  std::vector<Piece> pieces;  // boxes of the global tensor, and where they start in memory
  const WeightBlock& block;   // where the parameter stands
  bool of_ranks = false;      // as many as there are ranks: nothing to another layout
};
using VisitHeld = std::function<void(const Held&)>;

class Weights {
 public:
  enum class For : std::uint8_t { training, reading };
  /// Gathers what `each` visits, makes the memory, and binds every parameter to its part. Pieces get the
  /// numbers of their copies, which the mesh knows. Collective over the mesh.
  Weights(const std::function<void(const VisitParameter&)>& each, Device& device, Dtype compute, For purpose,
          const DataParallel& data = {});
  ~Weights();
  Weights(const Weights&) = delete;  // a block knows its shelf
  Weights& operator=(const Weights&) = delete;
  /// Fills masters by each parameter's init; the same numbers under every layout.
  void initialize(std::uint64_t seed);
  /// Sums begin anew.
  void zero_grads();
  /// Layers see what the masters hold now, those of all data-parallel ranks: after they were filled or
  /// loaded. An update does this itself.
  void publish();
  /// Values that other ranks updated arrive here, where they are not cut: those are gathered when they are
  /// lent.
  void gather();
  std::vector<WeightBlock>& blocks() { return blocks_; }
  const std::vector<WeightBlock>& blocks() const { return blocks_; }
  const DataParallel& data() const { return data_; }
  const Ties& ties() const { return *ties_; }
  /// Changes whenever values do: what was copied of them before is old.
  std::int64_t version() const { return version_; }
  /// Ranks that hold different parts of what is cut up. Only where there is a mesh.
  Communicator& sharers(View view) const;
  /// The part of a tensor that belongs to a parameter, in its shape. The tensor holds the block's elements
  /// from `from` on.
  static Tensor part(const Tensor& flat, const WeightSlot& slot, std::int64_t from = 0);
  /// What of the masters is here. After filling them, publish().
  void each_master(const VisitHeld& visit) const;
  /// What of a tensor of owned elements, one a block, is here; `suffix` is added to the parameters' names.
  void each_kept(const std::vector<Tensor>& kept, const std::string& suffix, const VisitHeld& visit) const;
  Device& device() const { return device_; }
  /// Where states lie in a file; null where they are in memory.
  Shelf* shelf() const { return shelf_.get(); }
  /// Who makes updates wait for the next forward; null: nobody.
  DueUpdate* due() const { return due_; }
  void let_wait(DueUpdate* due) { due_ = due; }

 private:
  void place(Parameter& parameter);
  void number_copies(Parameter& parameter, View view) const;
  Readers readers_of(View view) const;
  void cut_into_buckets(WeightBlock& block) const;
  void share_out(WeightBlock& block) const;
  void allocate(WeightBlock& block, Dtype compute, For purpose);
  void initialize_through_grads(const WeightBlock& block, std::uint64_t seed);
  void put_on_shelf();
  void put(const Tensor& file, const OwnedPart& own, const Tensor& values);
  void set_master(const WeightBlock& block, const OwnedPart& own, const Tensor& values);
  void set_values(const WeightBlock& block, const WeightBucket& bucket, const OwnedPart& own,
                  const Tensor& whole);
  void initialize_by_buckets(const WeightBlock& block, std::uint64_t seed);
  enum class Counted : std::uint8_t { from_the_block, from_what_is_kept };
  std::vector<Piece> pieces_here(const WeightBlock& block, const WeightSlot& slot, Counted counted) const;
  Device& device_;
  DataParallel data_;
  std::optional<Ties> ties_;
  std::unique_ptr<Shelf> shelf_;  // outlives what lies there
  bool in_files_ = false;         // weights too
  std::vector<WeightBlock> blocks_;
  std::int64_t version_ = 0;
  DueUpdate* due_ = nullptr;
};

}  // namespace weft
