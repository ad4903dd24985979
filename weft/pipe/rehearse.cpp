// Plays a program by the clock of each rank; what can never start is named.
#include "weft/pipe/rehearse.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "weft/base/error.h"

namespace weft::pipe {
namespace {

std::string say(const Action& a) {
  return text(word(a.what), " of stage ", a.stage, ", microbatch ", a.microbatch);
}

class Player {
 public:
  Player(const Schedule& s, const CostOf& cost_of, int transfer, Delivery d)
      : s_(s),
        cost_of_(cost_of),
        transfer_(transfer),
        delivery_(d),
        next_(std::size_t(s.ranks)),
        clock_(std::size_t(s.ranks)),
        alive_(std::size_t(s.ranks)) {
    out_.peak_remembered.resize(std::size_t(s.ranks));
  }

  Rehearsal play() {
    check_order();
    for (bool moved = true; moved;) {
      moved = false;
      for (int r = 0; r < s_.ranks; ++r)
        while (!finished(r) && step(r)) moved = true;
    }
    report_stuck();
    report_undone();
    out_.duration = *std::max_element(clock_.begin(), clock_.end());
    out_.bubble = 1.0 - double(busy_) / (double(out_.duration) * s_.ranks);
    return std::move(out_);
  }

 private:
  bool finished(int r) const { return next_[std::size_t(r)] == s_.program[std::size_t(r)].size(); }
  const Action& head(int r) const { return s_.program[std::size_t(r)][next_[std::size_t(r)]]; }

  // When the action can start, or -1 if something it needs has not happened.
  int ready(int r, const Action& a) {
    const auto done = [&](Do what, int stage) {
      const auto it = ended_.find({what, stage, a.microbatch});
      return it == ended_.end() ? -1 : it->second;
    };
    const auto input_grad = [&](int stage) {
      return std::max(done(Do::backward, stage), done(Do::backward_input, stage));
    };
    const auto here = [&](int stage) { return s_.home[std::size_t(stage)] == r; };
    switch (a.what) {
      case Do::forward:
        if (a.stage == 0) return 0;
        return here(a.stage - 1) ? done(Do::forward, a.stage - 1) : done(Do::recv_activation, a.stage);
      case Do::backward:
      case Do::backward_input: {
        const int own = done(Do::forward, a.stage);
        if (own < 0 || a.stage == s_.stages() - 1) return own;
        const int from = here(a.stage + 1) ? input_grad(a.stage + 1) : done(Do::recv_gradient, a.stage);
        return from < 0 ? -1 : std::max(own, from);
      }
      case Do::backward_weight:
        return done(Do::backward_input, a.stage);
      case Do::send_activation:
        return done(Do::forward, a.stage);
      case Do::send_gradient:
        return input_grad(a.stage);
      case Do::recv_activation:
        return arrived(a, Do::send_activation, a.stage - 1, r);
      case Do::recv_gradient:
        return arrived(a, Do::send_gradient, a.stage + 1, r);
      case Do::post_activation:
      case Do::post_gradient:
        return 0;
    }
    return -1;
  }

  // Under rendezvous a send happens only while the receiver stands at the matching receive.
  bool receiver_is_there(const Action& a) const {
    const bool activation = a.what == Do::send_activation;
    if (delivery_ != Delivery::rendezvous || (!activation && a.what != Do::send_gradient)) return true;
    const Action wanted{activation ? Do::recv_activation : Do::recv_gradient, a.stage + (activation ? 1 : -1),
                        a.microbatch};
    const int peer = s_.home[std::size_t(wanted.stage)];
    return !finished(peer) && head(peer) == wanted;
  }

  int arrived(const Action& a, Do sent, int from_stage, int to) {
    const Action message{sent, from_stage, a.microbatch};
    const int from = s_.home[std::size_t(from_stage)];
    const auto it = ended_.find(message);
    if (it == ended_.end()) return -1;
    auto& queue = wire_[{from, to}];
    const auto place = std::find(queue.begin(), queue.end(), message);
    if (place == queue.end())
      fail(Kind::internal, s_.name, ": rank ", to, " waits twice for ", say(message), ", which rank ", from,
           " does once");
    if (delivery_ == Delivery::in_order && place != queue.begin())
      fail(Kind::internal, s_.name, ": rank ", to, " receives ", say(message), " but rank ", from, " sent ",
           say(queue.front()), " first");
    queue.erase(place);
    return it->second + transfer_;
  }

  bool step(int r) {
    const Action a = head(r);
    const int start = ready(r, a);
    if (start < 0 || !receiver_is_there(a)) return false;
    auto& clock = clock_[std::size_t(r)];
    const int cost = computes(a.what) ? cost_of_(a) : 0;
    switch (a.what) {
      case Do::send_activation:
        wire_[{r, s_.home[std::size_t(a.stage) + 1]}].push_back(a);
        break;
      case Do::send_gradient:
        wire_[{r, s_.home[std::size_t(a.stage) - 1]}].push_back(a);
        break;
      default:
        break;
    }
    if (computes(a.what)) {
      clock = std::max(clock, start);
      out_.spans.push_back({a, r, clock, clock + cost});
      clock += cost;
      busy_ += cost;
    }
    if (a.what == Do::forward)
      out_.peak_remembered[std::size_t(r)] =
          std::max(out_.peak_remembered[std::size_t(r)], ++alive_[std::size_t(r)]);
    if (a.what == Do::backward || a.what == Do::backward_weight) --alive_[std::size_t(r)];
    ended_[a] = a.what == Do::recv_activation || a.what == Do::recv_gradient ? start
                : computes(a.what)                                           ? clock
                                                                             : start;
    ++next_[std::size_t(r)];
    return true;
  }

  // The head adds to its gradients in forward, everything else in backward, so both must count upwards.
  void check_order() const {
    for (const auto& program : s_.program) {
      std::map<std::pair<Do, int>, int> latest;
      for (const Action& a : program) {
        if (!computes(a.what)) continue;
        const auto [at, first] = latest.try_emplace({a.what, a.stage}, a.microbatch);
        if (!first && at->second >= a.microbatch)
          fail(Kind::internal, s_.name, ": ", say(a), " comes after microbatch ", at->second,
               "; sums are taken in ascending order, once each");
        at->second = a.microbatch;
      }
    }
  }
  void report_stuck() const {
    std::string stuck;
    for (int r = 0; r < s_.ranks; ++r)
      if (!finished(r)) stuck += text("\n  rank ", r, " waits to ", say(head(r)));
    if (!stuck.empty()) fail(Kind::internal, s_.name, ": deadlock", stuck);
  }
  void report_undone() const {
    for (int stage = 0; stage < s_.stages(); ++stage)
      for (int m = 0; m < s_.microbatches; ++m) {
        const bool whole = ended_.count({Do::backward, stage, m}) == 1;
        const bool halves =
            ended_.count({Do::backward_input, stage, m}) + ended_.count({Do::backward_weight, stage, m}) == 2;
        if (!ended_.count({Do::forward, stage, m}) || whole == halves)
          fail(Kind::internal, s_.name, ": stage ", stage, ", microbatch ", m, " is not done exactly once");
      }
  }

  const Schedule& s_;
  const CostOf& cost_of_;
  int transfer_;
  Delivery delivery_;
  std::vector<std::size_t> next_;
  std::vector<int> clock_, alive_;
  std::map<Action, int> ended_;
  std::map<std::pair<int, int>, std::vector<Action>> wire_;
  long busy_ = 0;
  Rehearsal out_;
};

}  // namespace

Rehearsal rehearse(const Schedule& s, const Costs& costs, Delivery delivery) {
  const auto cost_of = [&costs](const Action& a) {
    if (a.what == Do::forward) return costs.forward;
    if (a.what == Do::backward_input) return costs.backward_input;
    if (a.what == Do::backward_weight) return costs.backward_weight;
    return costs.backward_input + costs.backward_weight;
  };
  return rehearse(s, cost_of, costs.transfer, delivery);
}

Rehearsal rehearse(const Schedule& s, const CostOf& cost_of, int transfer, Delivery delivery) {
  return Player(s, cost_of, transfer, delivery).play();
}

}  // namespace weft::pipe
