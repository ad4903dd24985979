// A pass is one microbatch's trip through one stage: what it must remember, and what it owes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "weft/base/random.h"
#include "weft/nn/batch.h"
#include "weft/nn/mixed_stack.h"

namespace weft {

/// Weight gradients that were put off, in the order they were owed.
class Debts {
 public:
  template <class Work>
  void owe(Work work) {
    work_.push(std::move(work));
    if (at_once_) pay();
  }
  void pay() { work_.run_all(); }
  /// Under the action `backward` nothing is put off: a debt is paid as soon as it is owed.
  void pay_at_once(bool yes) { at_once_ = yes; }
  bool at_once() const { return at_once_; }
  bool empty() const { return work_.empty(); }

 private:
  MixedStack work_;
  bool at_once_ = true;
};

/// The factors of losses in the objective, loss scale included: gradients start from them, and everything
/// after is a plain sum.
struct LossFactors {
  float token = 1;   // of every counted token's loss
  float sample = 1;  // of the loss of a whole sample
  float pass = 1;    // of what is a mean over a pass already
  /// Of a counted token's loss where tokens are guessed so many places further on than the next, less one.
  std::array<float, most_ahead> ahead{};
  float balance = 1;  // of what balances experts: a mean over a pass, and with a mean over the global batch's
                      // tokens a sum over those of the pass, counting or not
};

/// A loss by its number among those of the model's family (ModelKind::losses), and its terms: zero where they
/// do not count.
struct Measured {
  int loss = 0;
  Tensor terms;
};

/// What a decoder knows of an encoder's text that several passes read: the first makes it on every rank,
/// later ones go through no layer of the encoder, and nothing of it travels between stages.
struct Encoded {
  bool known = false;
  std::map<int, Tensor> keys_values;  // of the attention to it, by the number of the decoder's layer
};

/// What layers made of those tokens of a text that earlier passes read: a pass reads what follows them.
struct Earlier {
  std::int64_t tokens = 0;  // of those
  std::int64_t room = 0;    // of all that may come
  struct KeysValues {
    Tensor keys, values;  // [room, b, g, d]
  };
  std::map<int, KeysValues> layers;  // by number
  std::int64_t now = 0;              // tokens that this pass reads; what follows them fills it up
  struct Memory {
    Tensor last;    // [taps - 1, b, keys, filtered]: what filters read of the last tokens
    Tensor memory;  // of DeltaIn
  };
  std::map<int, Memory> memories;  // of layers that remember, by number
};

/// What is the same for all passes of one step.
struct StepPlace {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  bool training = true;
  /// Where nobody trains: the places of the text whose logits are asked for, instead of losses.
  std::int64_t logits_from = 0, logits_count = 0;
  Encoded* encoded = nullptr;  // and what earlier passes left of the same source; none: every pass by itself
  Earlier* earlier = nullptr;  // of the same text, where nobody trains; none: it begins here
  LossFactors factors;
  /// Where somebody wants to know: the greatest score of each head in layers that are no further tokens',
  /// which attention raises. f32 [layers, heads of the whole model]
  Tensor greatest_scores = {};
};

/// Told what flows by, where somebody looks for the first number that is not finite.
class Watch {
 public:
  virtual ~Watch() = default;
  virtual void see(const char* operation, int layer, const Tensor& x) = 0;
};

/// The other pass of two that a rank works on by turns.
class Beside {
 public:
  virtual ~Beside() = default;
  /// It goes on until it waits for something itself, or ends.
  virtual void go_on() = 0;
  /// It ends.
  virtual void end() = 0;
};

class Pass {
 public:
  Pass() = default;
  Pass(const Pass&) = delete;  // debts_ may point inside
  Pass& operator=(const Pass&) = delete;
  /// Starts a trip. A pass is used again and again, so that its memory is.
  void open(const Batch& batch, const StepPlace& place, Watch* watch = nullptr);
  /// The same trip once more, for a part that was forgotten: remembers on its own, and reports no loss again.
  void open_again(const Pass& outer);

  /// Puts away what a module needs for its backward; nothing is kept where there will be none.
  template <class Saved>
  void save(Saved saved) {
    if (place_.training && !forgetful_) saved_.push(std::move(saved));
  }
  /// Takes back the latest. Backward runs in the reverse order of forward, and this checks it.
  template <class Saved>
  Saved take() {
    return saved_.pop<Saved>();
  }
  /// What cannot be computed again, of a layer: kept although the pass is forgetful, and there when it goes
  /// again.
  void keep(int layer, Tensor x) { kept_->push_back({address_of(layer), std::move(x)}); }
  /// Fails where nothing was kept.
  const Tensor& kept(int layer) const;

  /// While forgetful, save() keeps nothing: somebody will compute it again.
  void forget(bool yes) { forgetful_ = yes; }
  /// What was forgotten is computed again: it was counted before.
  bool again() const { return again_; }
  bool forgetful() const { return forgetful_; }

  Debts& weight_grads() { return *debts_; }

  /// What is worked on by turns with this trip, and whether its debts are paid while messages travel.
  void take_turns(Beside* beside) { beside_ = beside; }
  void pay_meanwhile(bool yes) { pays_meanwhile_ = yes; }
  /// A layer waits for a message next, as all do that exchange with it, in the same place: what else there is
  /// to do is done first.
  void meanwhile() {
    if (pays_meanwhile_) debts_->pay();
    if (beside_) beside_->go_on();
  }
  /// A layer's forward adds to a gradient that a backward adds to as well: that of the microbatch before
  /// comes first.
  void after_the_other() const {
    if (beside_) beside_->end();
  }

  bool finished() const { return saved_.empty() && debts_->empty(); }

  const Batch& batch() const { return *batch_; }
  /// Another, until the one that was read before is given back: what a layer makes of it must outlive it.
  const Batch* read(const Batch* batch) { return std::exchange(batch_, batch); }
  const StepPlace& place() const { return place_; }
  bool training() const { return place_.training; }
  Address address(Purpose purpose, int layer) const {
    return {.seed = place_.seed, .purpose = purpose, .step = place_.step, .layer = address_of(layer)};
  }
  /// A layer that a pass goes through several times draws other numbers in every round, counted from 0.
  void go_round(int round) { round_ = std::uint32_t(round); }

  /// Measured by a layer, on whichever stage it stands, and read by the step: terms of the same number are
  /// added up.
  void add_loss(int loss, Tensor terms) { losses_.push_back({loss, std::move(terms)}); }
  std::span<const Measured> losses() const { return losses_; }
  void forget_losses() { losses_.clear(); }

  /// What may follow the places that were asked for: this rank's columns [count * b, v/tp].
  void set_logits(Tensor logits) { logits_ = std::move(logits); }
  const Tensor& logits() const { return logits_; }

  void see(const char* operation, int layer, const Tensor& x) const {
    if (watch_) watch_->see(operation, layer, x);
  }

 private:
  std::uint32_t address_of(int layer) const { return std::uint32_t(layer) + (round_ << 24); }
  struct Kept {
    std::uint32_t layer = 0;
    Tensor x;
  };
  MixedStack saved_;
  std::vector<Kept> own_kept_;
  std::vector<Kept>* kept_ = &own_kept_;  // of the trip that this one is again
  Debts own_debts_;
  Debts* debts_ = &own_debts_;
  const Batch* batch_ = nullptr;
  StepPlace place_;
  std::vector<Measured> losses_;
  Tensor logits_;
  Watch* watch_ = nullptr;
  Beside* beside_ = nullptr;
  std::uint32_t round_ = 0;
  bool forgetful_ = false, again_ = false, pays_meanwhile_ = false;
};

}  // namespace weft
