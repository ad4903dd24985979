// Plays a schedule for real: one rank's program over its stages.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/nn/layer.h"
#include "weft/pipe/schedule.h"
#include "weft/pipe/turns.h"

namespace weft::pipe {

/// What travels into a stage from the one before it, and its gradient back: the same for every microbatch of
/// a run.
struct Parcel {
  Shape hidden, memory, biases = {};  // of each stream; one without dims stays behind
  Dtype dtype = Dtype::f32;           // of memory
  Dtype residual = Dtype::f32;        // of hidden

  const Shape& operator[](Stream stream) const {
    return stream == Stream::hidden ? hidden : stream == Stream::memory ? memory : biases;
  }
  Dtype type_of(Stream stream) const {
    return stream == Stream::biases ? Dtype::f32 : stream == Stream::hidden ? residual : dtype;
  }
  bool carries(Stream stream) const { return (*this)[stream].rank() > 0; }
};

/// Told when the device was at every action, where somebody measures.
class Timekeeper {
 public:
  virtual ~Timekeeper() = default;
  virtual void took(const Action& action, Stretch stretch) = 0;
};

class Runner {
 public:
  /// stages holds those that live on this rank, by stage number. The schedule has its transfers.
  Runner(const Schedule& schedule, const std::map<int, Stage>& stages, Communicator& along_pp,
         Device& device);

  /// Told of a microbatch's pass when a stage's forward is done that is the last or has measured something:
  /// losses are read there, and logits.
  using Forwarded = std::function<void(int microbatch, const Pass&)>;
  struct Order {
    std::span<const Batch> microbatches;
    std::span<const LossFactors> loss_factors;  // one a microbatch
    StepPlace place;                            // its factors are taken from loss_factors
    std::span<const Parcel> parcels;  // by the stage they travel into; one for all, where they are alike
    Watch* watch = nullptr;
    Timekeeper* timekeeper = nullptr;
    bool pay_meanwhile = false;  // weight gradients wait until a layer waits for a message
  };
  /// Every microbatch, forward and backward; or forward only, where the place says that nobody trains.
  void run(const Order& order, const Forwarded& forwarded);
  /// Most passes that were open at once.
  int most_remembered() const { return most_remembered_; }
  /// Most sends whose tensors were held at once.
  int most_going() const { return most_going_; }
  const Schedule& schedule() const { return schedule_; }

 private:
  struct Slot {
    Pass* pass = nullptr;
    Flow input, output, output_grad, input_grad;
  };
  /// A stream of a message that somebody waits for.
  using Arrivals = std::array<Pending, all_streams.size()>;
  void act(const Action& action, const Order& order, const Forwarded& forwarded);
  void act_and_tell(const Action& action, const Order& order, const Forwarded& forwarded);
  bool beside_the_next(std::size_t at) const;
  void act_by_turns(std::size_t at, const Order& order, const Forwarded& forwarded);
  void forward(const Action& action, const Order& order, const Forwarded& forwarded);
  void whole_backward(const Action& action, const Order& order);
  void backward(const Action& action);
  void settle(const Action& action);
  void send(const Flow& x, const Action& action, const Order& order);
  void post(const Action& action, const Order& order);
  void forget_what_arrived(int rank, int its_place);
  void await_group_before(const Action& action);
  Flow receive(const Action& action, const Order& order);
  Slot& slot(int stage, int microbatch);
  Pass* fresh_pass();
  bool mine(int stage) const { return schedule_.home[std::size_t(stage)] == along_pp_.rank(); }
  bool last(int stage) const { return stage == schedule_.stages() - 1; }

  const Schedule& schedule_;
  const std::map<int, Stage>& stages_;
  Communicator& along_pp_;
  Device& device_;
  std::vector<int> place_of_stage_;  // among those that live here
  std::vector<Slot> slots_;          // by this rank's stages, and microbatch
  std::vector<std::unique_ptr<Pass>> passes_;
  std::vector<Pass*> free_;
  /// A receive that was posted and not waited for.
  struct Coming {
    int tag = 0;
    Flow x;
    Arrivals pending;
  };
  std::vector<Coming> coming_;  // few at a time
  /// A send whose reader may not have it yet.
  struct Going {
    int to = 0;
    int read_at = 0;  // where the reader's program takes it
    int stage = 0, microbatch = 0;
    Pending pending;
  };
  std::vector<Going> going_;
  std::unique_ptr<Turns> turns_;  // where forwards are computed beside backwards
  bool by_turns_ = false;
  std::vector<int> sent_at_, read_at_;  // by tag: places in the programs of sender and reader
  int most_remembered_ = 0, most_going_ = 0;
};

}  // namespace weft::pipe
