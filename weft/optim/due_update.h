// An update that is made while the next forward goes on: a layer's weights are new when it is lent them.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <vector>

#include "weft/nn/layer.h"
#include "weft/optim/optimizer.h"
#include "weft/optim/weights.h"

namespace weft {

struct UpdateRun;

/// States that lie in a file cannot be updated before the norm of all gradients is known, and nobody reads
/// the weights of the last layer before the next forward comes to it. So an update whose elements do not ask
/// for each other (updates_by_element) only begins when a step ends: its windows stand in the order in which
/// forward reads them, and are visited by the thread that computes, when it is lent a layer: those that are
/// here, and those that the layer wants, for which it waits. Between, the shelf's threads read and write.
///
/// Gradients of a window are zero when it was visited. Heads add theirs in forward, so that is none too
/// early. Whoever else looks at weights, states or gradients finishes it before. What fails, fails whoever
/// comes next, each time.
class DueUpdate {
 public:
  using Visit = std::function<void(const UpdateRun&)>;
  /// Of weights whose states lie in a file, read by stages of this rank.
  DueUpdate(Weights& weights, const std::map<int, Stage>& stages);
  /// Whether an update can wait: whoever reads what this rank updates asks this rank.
  static bool possible(const Weights& weights);

  void begin(const UpdateArgs& args, Visit visit);
  bool going() const { return going_; }
  /// What a layer reads is new; they are counted through all stages of the rank.
  void until(int layer);
  void finish();
  /// Gradients that no window has, where an update is going on; else all of them.
  void zero_grads();

 private:
  void make_needs(const std::map<int, Stage>& stages);
  std::size_t turns_for(const Parameter& parameter) const;
  void go_on(std::size_t turns);
  void visit_next();

  Weights& weights_;
  Shelf& shelf_;
  std::vector<std::size_t> turns_;  // by layer: so many windows are visited before it reads
  std::size_t visited_ = 0;
  bool going_ = false, in_files_ = false;  // layers read from the file
  UpdateArgs args_;
  Visit visit_;
  std::exception_ptr error_;
};

/// Lends a stage's layers what is new, from a lender or from where it lies anyway. A lender asks for the next
/// layer's weights, too.
class DueLender final : public Lender {
 public:
  /// The stage's first layer, counted through.
  DueLender(DueUpdate& due, int first, Lender* inner) : due_(due), first_(first), inner_(inner) {}
  void lend(int layer, Way way) override;
  void take_back(int layer, Way way) noexcept override;

 private:
  DueUpdate& due_;
  int first_;
  Lender* inner_;  // null: weights are in memory
};

}  // namespace weft
