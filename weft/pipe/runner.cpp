// The loop over a program. What a pass remembered is gone as soon as its weight gradients are paid.
#include "weft/pipe/runner.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "weft/base/error.h"
#include "weft/pipe/letters.h"
#include "weft/tensor/named.h"

namespace weft::pipe {
namespace {

bool goes_forward(Do what) {
  return what == Do::forward || what == Do::send_activation || what == Do::recv_activation ||
         what == Do::post_activation;
}

bool sends(Do what) { return what == Do::send_activation || what == Do::send_gradient; }

/// A message is known by its microbatch, the stage that reads it, and its direction: both ends make the same
/// of it.
int tag_of(const Schedule& schedule, const Action& action) {
  const bool activation = goes_forward(action.what);
  const int reader = sends(action.what) ? action.stage + (activation ? 1 : -1) : action.stage;
  return (action.microbatch * schedule.stages() + reader) * 2 + int(!activation);
}

/// The stage that a message, or its gradient, travels into on its way forward.
int border_of(const Action& action) {
  const bool into_the_next = action.what == Do::send_activation || action.what == Do::recv_gradient ||
                             action.what == Do::post_gradient;
  return action.stage + int(into_the_next);
}

const Parcel& parcel_of(const Action& action, const Runner::Order& order) {
  return order.parcels.size() == 1 ? order.parcels.front() : order.parcels[std::size_t(border_of(action))];
}

/// Still odd for gradients and even for activations: some carriers keep only those apart.
int tag_of_stream(int tag, Stream stream) {
  return (tag / 2 * int(all_streams.size()) + int(stream)) * 2 + tag % 2;
}

Flow take(Flow& kept) { return std::exchange(kept, Flow()); }

}  // namespace

Runner::Runner(const Schedule& schedule, const std::map<int, Stage>& stages, Communicator& along_pp,
               Device& device)
    : schedule_(schedule),
      stages_(stages),
      along_pp_(along_pp),
      device_(device),
      place_of_stage_(std::size_t(schedule.stages()), -1) {
  if (!along_pp.keeps_letters())
    if (const std::string overtaken = overtaken_letter(schedule); !overtaken.empty())
      fail(Kind::usage, "pipeline schedule ", schedule.name, ": ", along_pp.carrier(),
           " hands activations, and gradients, over in the order in which they were sent, and ", overtaken);
  int here = 0;
  for (int stage = 0; stage < schedule.stages(); ++stage)
    if (mine(stage)) place_of_stage_[std::size_t(stage)] = here++;
  slots_.resize(std::size_t(here) * std::size_t(schedule.microbatches));
  if (!schedule.beside.empty()) turns_ = std::make_unique<Turns>();
  const std::size_t tags = std::size_t(schedule.stages()) * std::size_t(schedule.microbatches) * 2;
  sent_at_.resize(tags);
  read_at_.resize(tags);
  for (const auto& program : schedule.program)
    for (std::size_t at = 0; at < program.size(); ++at) {
      const Action& a = program[at];
      if (sends(a.what)) sent_at_[std::size_t(tag_of(schedule, a))] = int(at);
      if (a.what == Do::recv_activation || a.what == Do::recv_gradient)
        read_at_[std::size_t(tag_of(schedule, a))] = int(at);
    }
}

void Runner::run(const Order& order, const Forwarded& forwarded) {
  const auto& program = schedule_.program[std::size_t(along_pp_.rank())];
  for (std::size_t at = 0; at < program.size(); ++at) {
    if (!order.place.training && !goes_forward(program[at].what)) continue;
    if (order.place.training && beside_the_next(at))
      act_by_turns(at++, order, forwarded);
    else
      act_and_tell(program[at], order, forwarded);
  }
  for (Going& going : going_) going.pending.wait();
  going_.clear();
}

void Runner::act_and_tell(const Action& action, const Order& order, const Forwarded& forwarded) {
  if (!order.timekeeper) return act(action, order, forwarded);
  Instant from = device_.instant();
  act(action, order, forwarded);
  order.timekeeper->took(action, {std::move(from), device_.instant()});
}

bool Runner::beside_the_next(std::size_t at) const {
  const auto rank = std::size_t(along_pp_.rank());
  const auto& program = schedule_.program[rank];
  return !schedule_.beside.empty() && schedule_.beside[rank] > 0 && program[at].what == Do::forward &&
         at + 1 < program.size() && program[at + 1].what == Do::backward;
}

// The backward begins: others wait for what comes of it, and its first message leaves soon.
void Runner::act_by_turns(std::size_t at, const Order& order, const Forwarded& forwarded) {
  const auto& program = schedule_.program[std::size_t(along_pp_.rank())];
  const Action &forth = program[at], &back = program[at + 1];
  by_turns_ = true;
  std::optional<Turns::Clock> clock;
  const auto told = [&](Turns::Side side, Stretch stretch) {
    order.timekeeper->took(side == Turns::Side::first ? back : forth, std::move(stretch));
  };
  if (order.timekeeper) clock.emplace(Turns::Clock{device_, told});
  turns_->run([&] { act(back, order, forwarded); }, [&] { act(forth, order, forwarded); },
              clock ? &*clock : nullptr);
  by_turns_ = false;
}

void Runner::act(const Action& action, const Order& order, const Forwarded& forwarded) {
  const Named named(device_, word(action.what), action.microbatch);
  Slot& here = slot(action.stage, action.microbatch);
  switch (action.what) {
    case Do::recv_activation:
      here.input = receive(action, order);
      break;
    case Do::recv_gradient:
      here.output_grad = receive(action, order);
      break;
    case Do::post_activation:
    case Do::post_gradient:
      post(action, order);
      break;
    case Do::forward:
      forward(action, order, forwarded);
      break;
    case Do::backward:
      whole_backward(action, order);
      break;
    case Do::backward_input:
      here.pass->weight_grads().pay_at_once(false);
      backward(action);
      break;
    case Do::backward_weight:
      settle(action);
      break;
    case Do::send_activation:
      send(take(here.output), action, order);
      break;
    case Do::send_gradient:
      send(take(here.input_grad), action, order);
      break;
  }
}

void Runner::forward(const Action& action, const Order& order, const Forwarded& forwarded) {
  Slot& here = slot(action.stage, action.microbatch);
  here.pass = fresh_pass();
  StepPlace place = order.place;
  place.factors = order.loss_factors[std::size_t(action.microbatch)];
  here.pass->open(order.microbatches[std::size_t(action.microbatch)], place, order.watch);
  if (by_turns_) here.pass->take_turns(turns_.get());
  Flow y = stages_.at(action.stage).forward(*here.pass, take(here.input));
  here.pass->take_turns(nullptr);
  if (last(action.stage) || !here.pass->losses().empty()) forwarded(action.microbatch, *here.pass);
  if (!last(action.stage))
    (mine(action.stage + 1) ? slot(action.stage + 1, action.microbatch).input : here.output) = std::move(y);
  if (!order.place.training) settle(action);
}

void Runner::whole_backward(const Action& action, const Order& order) {
  Pass& pass = *slot(action.stage, action.microbatch).pass;
  pass.weight_grads().pay_at_once(!order.pay_meanwhile);
  pass.pay_meanwhile(order.pay_meanwhile);
  backward(action);
  settle(action);
}

void Runner::backward(const Action& action) {
  Slot& here = slot(action.stage, action.microbatch);
  if (by_turns_) here.pass->take_turns(turns_.get());
  Flow dx = stages_.at(action.stage).backward(*here.pass, take(here.output_grad));
  if (action.stage == 0) return;
  (mine(action.stage - 1) ? slot(action.stage - 1, action.microbatch).output_grad : here.input_grad) =
      std::move(dx);
}

// The pass pays what it owes and is forgotten. One that still remembers something is a bug in a layer.
void Runner::settle(const Action& action) {
  Pass* pass = std::exchange(slot(action.stage, action.microbatch).pass, nullptr);
  if (!pass)
    fail(Kind::internal, "runner: stage ", action.stage, ", microbatch ", action.microbatch, " is not open");
  pass->weight_grads().pay();
  if (!pass->finished())
    fail(Kind::internal, "runner: stage ", action.stage, " saved more than its backward took");
  pass->forget_losses();
  pass->set_logits({});
  free_.push_back(pass);
}

// The wire keeps a tensor until its reader has it, and no longer.
void Runner::send(const Flow& x, const Action& action, const Order& order) {
  const int to_stage = action.stage + (goes_forward(action.what) ? 1 : -1);
  const int to = schedule_.home[std::size_t(to_stage)], tag = tag_of(schedule_, action);
  const Parcel& parcel = parcel_of(action, order);
  if (!order.place.training && schedule_.group > 0) await_group_before(action);
  for (const Stream stream : all_streams)
    if (parcel.carries(stream))
      going_.push_back({.to = to,
                        .read_at = read_at_[std::size_t(tag)],
                        .stage = action.stage,
                        .microbatch = action.microbatch,
                        .pending = along_pp_.send(x[stream], to, tag_of_stream(tag, stream))});
  most_going_ = std::max(most_going_, int(going_.size()));
}

// Where nobody trains, nothing comes back that would tell. But the group before has to go through all stages
// before this one goes through any, so waiting for its readers holds nobody up for ever.
void Runner::await_group_before(const Action& action) {
  const auto before = [&](const Going& g) {
    return g.stage == action.stage && g.microbatch <= action.microbatch - schedule_.group;
  };
  for (Going& going : going_)
    if (before(going)) going.pending.wait();
  std::erase_if(going_, before);
}

// Whoever sent this has read everything that stands before it in its program.
void Runner::forget_what_arrived(int rank, int its_place) {
  for (Going& going : going_)
    if (going.to == rank && going.read_at < its_place) going.pending.wait();
  std::erase_if(going_, [&](const Going& g) { return g.to == rank && g.read_at < its_place; });
}

void Runner::post(const Action& action, const Order& order) {
  const int from_stage = action.stage + (goes_forward(action.what) ? -1 : 1);
  const int tag = tag_of(schedule_, action);
  const Parcel& parcel = parcel_of(action, order);
  Coming coming{.tag = tag};
  for (const Stream stream : all_streams) {
    if (!parcel.carries(stream)) continue;
    coming.x[stream] = empty(device_, parcel[stream], parcel.type_of(stream));
    coming.pending[std::size_t(stream)] =
        along_pp_.recv(coming.x[stream], schedule_.home[std::size_t(from_stage)], tag_of_stream(tag, stream));
  }
  coming_.push_back(std::move(coming));
}

Flow Runner::receive(const Action& action, const Order& order) {
  const int tag = tag_of(schedule_, action);
  auto found = std::ranges::find(coming_, tag, &Coming::tag);
  if (found == coming_.end()) {
    post(action, order);
    found = coming_.end() - 1;
  }
  for (Pending& pending : found->pending) pending.wait();
  Flow x = std::move(found->x);
  coming_.erase(found);
  const int from_stage = action.stage + (goes_forward(action.what) ? -1 : 1);
  forget_what_arrived(schedule_.home[std::size_t(from_stage)], sent_at_[std::size_t(tag)]);
  return x;
}

Runner::Slot& Runner::slot(int stage, int microbatch) {
  const auto place = std::size_t(place_of_stage_[std::size_t(stage)]);
  return slots_[place * std::size_t(schedule_.microbatches) + std::size_t(microbatch)];
}

Pass* Runner::fresh_pass() {
  if (free_.empty()) {
    passes_.push_back(std::make_unique<Pass>());
    free_.reserve(passes_.size());
    free_.push_back(passes_.back().get());
  }
  Pass* pass = free_.back();
  free_.pop_back();
  most_remembered_ = std::max(most_remembered_, int(passes_.size() - free_.size()));
  return pass;
}

}  // namespace weft::pipe
