// The states of a job and the few rules by which it goes from one to the next.
#include "weft/launch/coordinator.h"

#include <algorithm>
#include <csignal>
#include <limits>
#include <tuple>
#include <utility>

#include "weft/base/error.h"
#include "weft/launch/report.h"

namespace weft::launch {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
constexpr double stop_slack = 5;  // beyond the grace, for SIGKILL to arrive and be told
constexpr double fresh_beats = 2.5;
constexpr double late_beats = 1;  // by which a node may see later than we that it is cut off
constexpr double to_be_gone = 1;  // seconds from SIGKILL, on a busy machine
constexpr int most_rounds = 1 << 24;
constexpr std::size_t most_doings = 1 << 17;  // ranks that are remembered, whoever says they are more

}  // namespace

Coordinator::Coordinator(Rules rules, double now, Send send, Say say)
    : rules_(std::move(rules)),
      send_(std::move(send)),
      say_(std::move(say)),
      join_until_(now + rules_.patience.join),
      last_tick_(now),
      paces_(rules_.slow_window) {}

void Coordinator::joined(int id, const Join& join, double now) {
  if (verdict_) return send_(id, Finish{verdict_->code, shortened(verdict_->report)});
  if (join.run_id != rules_.run_id)
    return send_(
        id, Refused{text("launch: this rendezvous is for --rdzv-id ", rules_.run_id, ", not ", join.run_id)});
  if (join.wanted_rank >= rules_.nodes.most)
    return send_(id, Refused{text("launch: --node-rank ", join.wanted_rank, " is not below the ",
                                  rules_.nodes.most, " of --nnodes where agents meet")});
  // An agent that was started again comes back before its old connection is missed.
  if (join.wanted_rank >= 0) {
    const auto before = by_wish_.find(join.wanted_rank);
    if (before != by_wish_.end()) {
      const int earlier = before->second;
      // Where it lives all the same, it is another machine's by mistake, and must not wait for ever.
      send_(earlier, Refused{text("launch: another agent came with --node-rank ", join.wanted_rank,
                                  ", and the job goes on with that one")});
      gone(earlier, "its agent came back as another", now);
    }
    by_wish_[join.wanted_rank] = id;
  }
  members_[id] = {.join = join, .heard = now, .spoke = now};
  if (state_ == State::gathering && rules_.voters > 1) {
    round_ = std::clamp(join.round, round_, most_rounds);
    restarts_ = std::clamp(join.restarts, restarts_, rules_.max_restarts);
  }
  if (members() == rules_.nodes.least) last_call_ = now + rules_.patience.last_call;
  if (state_ == State::running && elastic() && participants_ < rules_.nodes.most) {
    say_(text("launch: host ", join.host, " came; all stop, to go on with one node more"));
    stop_all(SIGTERM, rules_.grace, now);
  }
  begin_if_due(now);
}

std::vector<int> Coordinator::chosen() const {
  std::vector<int> out;
  for (const auto& [id, member] : members_) out.push_back(id);
  std::sort(out.begin(), out.end(), [this](int a, int b) {
    const Join &one = members_.at(a).join, &other = members_.at(b).join;
    return std::tuple(one.wanted_rank < 0, one.wanted_rank, one.host, a) <
           std::tuple(other.wanted_rank < 0, other.wanted_rank, other.host, b);
  });
  if (out.size() > std::size_t(rules_.nodes.most)) out.resize(std::size_t(rules_.nodes.most));
  return out;
}

bool Coordinator::quorum(double now) const {
  if (rules_.voters <= 1) return true;
  std::set<int> here;
  for (const auto& [id, member] : members_)
    if (member.join.voter >= 0 && member.join.voter < rules_.voters &&
        now - member.spoke < fresh_beats * rules_.patience.beat)
      here.insert(member.join.voter);
  return 2 * int(here.size()) > rules_.voters;
}

/// One look may come before what has arrived was read.
void Coordinator::keep_quorum(double now) {
  if (state_ != State::running || quorum(now)) {
    most_gone_ = 0;
    return;
  }
  if (most_gone_ == 0) {
    most_gone_ = now;
    return;
  }
  say_(
      "launch: most of the places of --rdzv-endpoint are out of reach, and may go on without this one; all "
      "stop here");
  give_up_round(now);
}

void Coordinator::begin_if_due(double now) {
  if (state_ != State::gathering || verdict_ || now < not_before_ || !quorum(now)) return;
  if (members() >= rules_.nodes.most || (members() >= rules_.nodes.least && now >= last_call_)) begin(now);
}

void Coordinator::begin(double now) {
  const std::vector<int> ids = chosen();
  ++round_;
  Begin message{.round = round_, .restarts = restarts_, .max_restarts = rules_.max_restarts};
  message.nodes = participants_ = working_ = int(ids.size());
  message.world = 0;
  std::vector<Peer> peers;
  for (const int id : ids) {
    const Join& join = members_[id].join;
    message.world += join.slots;
    peers.push_back({join.address, join.slots});
  }
  message.master = peers[0].address;
  message.port = members_[ids[0]].join.port;
  state_ = State::running;
  began_ = now;
  failures_.clear();
  stop_status_ = stop_signal_ = 0;
  doings_.clear();
  seats_.clear();
  paces_.forget();
  for (auto& [id, member] : members_) member.node = -1;
  for (const int id : ids) {
    Member& member = members_[id];
    member.ended = member.still = false;
    seats_[message.first_rank] = id;
    member.node = message.node;
    message.slots = member.join.slots;
    message.peers = message.node == 0 ? peers : std::vector<Peer>();
    send_(id, message);
    message.first_rank += message.slots;
    ++message.node;
  }
}

void Coordinator::heard(int id, const Message& message, double now) {
  const auto found = members_.find(id);
  if (found == members_.end()) return;
  found->second.heard = found->second.spoke = now;
  const auto of_this_round = [&](int round) { return round == round_ && found->second.node >= 0; };
  if (const auto* failed_one = std::get_if<Failed>(&message); failed_one && of_this_round(failed_one->round))
    failed(id, *failed_one, now);
  if (const auto* leaving = std::get_if<Leaving>(&message)) return leaves(id, leaving->signal, now);
  if (const auto* done = std::get_if<Done>(&message); done && of_this_round(done->round)) {
    if (stop_status_ == 0) stop_status_ = done->status;
    ended(id, now);
    return;
  }
  if (state_ == State::running && found->second.node >= 0) watched(id, message, now);
  const auto* stopped = std::get_if<Stopped>(&message);
  if (stopped == nullptr || !of_this_round(stopped->round)) return;
  progress_ = std::max(progress_, stopped->progress);
  // The word of the first node decides, of those that ended other than well.
  if (stop_status_ == 0) stop_status_ = stopped->status;
  if (const auto leaver = leaving_.find(id); leaver != leaving_.end() && stopped->status != 0)
    leaver->second = stopped->status;
  ended(id, now);
}

void Coordinator::watched(int id, const Message& message, double now) {
  if (const auto* pace = std::get_if<Pace>(&message); pace && pace->round == round_)
    for (const std::string& line : paces_.note(*pace, now)) say_(line);
  if (const auto* doing = std::get_if<Doing>(&message);
      doing && doing->round == round_ && doings_.size() < most_doings)
    doings_[doing->rank] = *doing;
  const auto* still = std::get_if<Still>(&message);
  if (still == nullptr || still->round != round_) return;
  members_[id].still = still->is != 0;
  const bool all = std::all_of(members_.begin(), members_.end(), [](const auto& one) {
    return one.second.node < 0 || one.second.ended || one.second.still;
  });
  if (all) hangs(still->limit, now);
}

void Coordinator::leaves(int id, int signal, double now) {
  const int code = 128 + signal, others = members() - int(leaving_.size()) - (leaving_.contains(id) ? 0 : 1);
  const bool others_go_on = elastic() && others >= rules_.nodes.least;
  const bool has_part = state_ != State::gathering && members_.at(id).node >= 0;
  if (!has_part && (others_go_on || state_ != State::gathering)) return let_go(id, code);
  if (!has_part) return finish(code, "");
  leaving_.emplace(id, code);
  if (!others_go_on) stop_signal_ = signal;
  if (state_ == State::running) stop_all(others_go_on ? SIGTERM : signal, rules_.grace, now);
}

void Coordinator::gone(int id, const std::string& why, double now) {
  const auto found = members_.find(id);
  if (found == members_.end()) return;
  works_unseen(id, now);
  const Member member = found->second;
  forget(id);
  if (member.node >= 0 && !member.ended) --working_;
  const bool left = leaving_.erase(id) > 0;
  if (verdict_ || member.node < 0 || state_ == State::gathering) return;
  if (!member.ended && !left) {
    Failure failure{.node = member.node, .host = member.join.host, .what = why};
    failures_.push_back({failure, now});
    say_(text("launch: ", one_line(failure)));
  }
  if (state_ == State::running && !member.ended) give_up_round(now);
  settle(now);
}

void Coordinator::forget(int id) {
  const auto wish = by_wish_.find(members_.at(id).join.wanted_rank);
  if (wish != by_wish_.end() && wish->second == id) by_wish_.erase(wish);
  members_.erase(id);
}

void Coordinator::let_go(int id, int code) {
  forget(id);
  send_(id, Finish{code, ""});
}

void Coordinator::stop_all(int signal, double grace, double now) {
  state_ = State::stopping;
  stop_until_ = now + grace + stop_slack;
  for (const auto& [id, member] : members_)
    if (member.node >= 0 && !member.ended) send_(id, Stop{round_, signal, grace});
}

void Coordinator::give_up_round(double now) { stop_all(SIGTERM, std::min(peers_grace, rules_.grace), now); }

void Coordinator::ended(int id, double now) {
  Member& member = members_[id];
  if (!member.ended) --working_;
  member.ended = true;
  settle(now);
}

/// The round is over when the last participant's workers have ended.
void Coordinator::settle(double now) {
  if (verdict_ || state_ == State::gathering) return;
  if (working_ > 0) return;
  if (state_ == State::running) return finish(stop_status_, "");
  const Told* first = first_failure();
  if (stop_signal_ != 0) return finish(stop_status_, "");
  if (first != nullptr && !another_start_helps(*first, now)) return;
  state_ = State::gathering;
  for (const auto& [id, code] : std::exchange(leaving_, {})) let_go(id, code);
  join_until_ = std::max(now, not_before_) + rules_.patience.join;
  last_call_ = now;  // who is here goes on; who comes later is taken in then
  begin_if_due(now);
}

void Coordinator::finish(int code, std::string report) {
  verdict_ = Verdict{code, std::move(report)};
  const Finish message{code, shortened(verdict_->report)};
  for (const auto& [id, member] : members_) send_(id, message);
}

/// It may work until it knows that it is cut off, and has stopped its workers.
void Coordinator::works_unseen(int id, double until_it_knows) {
  const Member& member = members_.at(id);
  if (member.node < 0 || member.ended) return;
  const double grace = leaving_.contains(id) ? rules_.grace : std::min(peers_grace, rules_.grace);
  not_before_ = std::max(not_before_, until_it_knows + grace + to_be_gone);
}

/// It works on until it misses us.
void Coordinator::loses_sight_of(int id) {
  const Patience& p = rules_.patience;
  works_unseen(id, members_.at(id).spoke + (p.missed_beats + late_beats) * p.beat);
}

void Coordinator::tick(double now) {
  if (verdict_) return;
  const double limit = rules_.patience.beat * rules_.patience.missed_beats;
  // Held up ourselves, we heard nobody; that is not their silence.
  const double late = now - last_tick_ - 2 * rules_.patience.beat;
  last_tick_ = now;
  std::vector<int> silent;
  for (auto& [id, member] : members_) {
    if (late > 0) member.heard += late + rules_.patience.beat;
    if (now - member.heard >= limit) silent.push_back(id);
  }
  for (const int id : silent) {
    if (!members_.contains(id)) continue;  // it wanted to leave, and the one before was the last to wait for
    loses_sight_of(id);
    send_(id, Refused{"launch: nothing was heard from this node, and the job goes on without it"});
    gone(id, text("silent for ", int(limit), " s"), now);
  }
  keep_quorum(now);
  if (state_ == State::stopping && now >= stop_until_) {
    std::vector<int> hung;
    for (const auto& [id, member] : members_)
      if (member.node >= 0 && !member.ended) hung.push_back(id);
    for (const int id : hung) {
      loses_sight_of(id);
      // It must end them before it may come back: the job goes on beside it.
      send_(id,
            Refused{"launch: this node did not stop its workers in time, and the job goes on without it"});
      gone(id, "did not stop its workers", now);
    }
  }
  begin_if_due(now);
  if (state_ == State::gathering && !verdict_ && now >= join_until_)
    finish(1, text("launch: after ", int(rules_.patience.join), " s ", members(), " of at least ",
                   rules_.nodes.least, " nodes are here",
                   quorum(now) ? "" : ", and not most of the places of --rdzv-endpoint",
                   "; see --rdzv-conf join_timeout\n"));
}

double Coordinator::next() const {
  if (verdict_) return never;
  double out = last_tick_ + rules_.patience.beat;
  if (state_ == State::stopping) out = std::min(out, stop_until_);
  if (state_ == State::gathering) {
    out = std::min(out, join_until_);
    if (members() >= rules_.nodes.least) out = std::min(out, std::max({last_call_, last_tick_, not_before_}));
  }
  return out;
}

}  // namespace weft::launch
