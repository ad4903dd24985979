// A weight, its gradient, and what the rest of the house must know about both.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/mesh/shard.h"
#include "weft/mesh/spread.h"
#include "weft/nn/fp8.h"
#include "weft/tensor/tensor.h"

namespace weft {

/// How a parameter starts. Random elements are addressed by the parameter's name and their place in the whole
/// tensor.
struct Init {
  enum class How : std::uint8_t { normal, uniform, constant, log_of_uniform, softplus_gives_exp_of_uniform };
  How how = How::normal;
  float value = 0;       // the constant, or the mean (of what the rest is made of)
  float spread = 0.02F;  // standard deviation, or half the width of the uniform range
};

/// Told when a layer has added what one of its uses of a weight gives for one microbatch.
class GradListener {
 public:
  virtual ~GradListener() = default;
  virtual void added(int parameter) = 0;
  /// A gradient is about to be added, and its sum has no memory: binds some that holds zeros, or is renewed.
  virtual void make_room(int) {}
};

/// Where the gradients of a weight are summed: f32, over all microbatches of a step.
class GradSink {
 public:
  void bind(Tensor sum) {
    sum_ = std::move(sum);
    old_ = false;
  }
  /// Memory comes with the first gradient, from whoever listens, and goes when the sum leaves.
  void bind_on_demand() { on_demand_ = true; }
  /// To be added to, or read.
  const Tensor& sum() const {
    if (holds_nothing()) clear();
    return sum_;
  }
  /// The sum begins anew: what lies there is old.
  void renew() const { old_ = true; }
  /// Whether nothing has been added since it began anew.
  bool holds_nothing() const {
    make_room();
    return old_;
  }
  /// Where memory comes on demand, it is there from now on.
  void make_room() const {
    if (!sum_ && on_demand_) listener_->make_room(parameter_);
  }
  /// For a product that is written to `count` rows of a matrix from `first` on, right away. Where those are
  /// not all, others must be zeros.
  GradPlace place(std::int64_t first, std::int64_t count) const;
  GradPlace place() const;
  bool here() const { return bool(sum_); }
  bool wanted() const { return sum_ || on_demand_; }
  /// Nobody listens, or one who knows the parameter by this number.
  void listen(GradListener* listener, int parameter) {
    listener_ = listener;
    parameter_ = parameter;
  }
  /// Every use of a weight says this once a microbatch, when its gradient is in the sum.
  void added() const {
    if (listener_) listener_->added(parameter_);
  }

 private:
  void clear() const;
  Tensor sum_;
  mutable bool old_ = false;
  GradListener* listener_ = nullptr;
  int parameter_ = 0;
  bool on_demand_ = false;
};

/// Weights that an optimizer may treat otherwise than others.
enum class Role : std::uint8_t {
  inner,
  mixed,  // rows of many kinds and few channels: no matrix to who looks at its directions (muon)
  kept,   // no gradient: f32, and its own layer's to change
  words   // embedding and output: a learning rate of their own may apply
};

/// How fast it learns, where that follows the width of the model (muP): as the schedule says, or by the rate
/// and epsilon that were made for the width.
enum class Pace : std::uint8_t { usual, by_width };

/// Ranks next to each other along an axis of the mesh that hold the last piece of a parameter too: what the
/// axis cuts has fewer parts than the axis has ranks.
struct Neighbours {
  Axis along = Axis::tp;
  int ranks = 1;        // 1: nobody
  bool partial = true;  // gradients of that piece are terms of one sum; else all have the same
  auto operator<=>(const Neighbours&) const = default;
};

/// Rows of a matrix that make queries and keys: what a step may hold down where scores are too large
/// (optim/score_clip.h). They lie in units, of a key group or of a head.
struct ScoreRows {
  /// alone: of queries whose keys are made of other rows, which stay.
  enum class Of : std::uint8_t { query, key, alone };
  struct Part {
    std::int64_t from = 0, count = 0;  // rows of a unit
    Of of = Of::query;
  };
  int layer = 0;                           // of the whole model
  std::int64_t first_head = 0, heads = 1;  // of the whole model: the first of this rank's, and of a unit
  std::int64_t unit = 1;                   // rows
  std::array<Part, 2> parts;
};

struct Parameter {
  std::string name;           // of the whole tensor, the same on every rank: "layers.3.mlp.up.weight"
  Shape shape;                // of this rank's part
  std::vector<Piece> pieces;  // where that part sits in the whole; one box unless cut otherwise
  Init init;
  Spread spread = spread_in(View::dense);
  Neighbours shared;
  bool decays = true;  // weight decay applies
  Role role = Role::inner;
  Pace pace = Pace::usual;
  /// Of a matrix whose rows are several matrices' in turn (a key group's queries, key and value): rows of
  /// each, of one turn of the whole; empty: one matrix.
  std::vector<std::int64_t> bands;
  std::optional<ScoreRows> scores;
  int layer = -1;  // of those of its rank, counted through: buckets end where layers end; -1: not said
  int uses = 1;    // gradients that a microbatch adds to it
  int sequences =
      1;  // in exact mode: so many sequences' a pass adds one by one, the same ones' in every pass
  bool tied = false;  // other layers have a parameter of this name, a copy: an update sees the sum of all
                      // their gradients
  int use = 0;        // of a tied one: which of the weight's uses it serves, in the order of the model
  Tensor value;       // what layers multiply with
  GradSink grad;
  Fp8 fp8;  // of the product that it is the weight of, or the first of several that share scales
};

/// This rank's place among those along an axis of the mesh.
struct Along {
  Axis axis = Axis::tp;
  int rank = 0, ranks = 1;
};

/// A parameter that the ranks of a stage hold whole, and see the same gradient of but for data-parallel ones.
Parameter whole_parameter(std::string name, const Shape& shape, const Init& init);
/// A matrix of `rows` rows (or a vector of elements) cut along its first dimension.
Parameter row_parameter(std::string name, const Shape& whole, const Init& init, const Along& cut);
/// A matrix cut along its second dimension.
Parameter column_parameter(std::string name, const Shape& whole, const Init& init, const Along& cut);

/// Fills value (f32, of the parameter's shape) by its init: the same numbers however the tensor is cut.
void initialize(const Parameter& parameter, const Tensor& value, std::uint64_t seed);

}  // namespace weft
