// Turns what the coordinator says into a group of workers, and their ends into words.
#include "weft/launch/agent.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <set>

#include "weft/base/error.h"
#include "weft/launch/report.h"

namespace weft::launch {
namespace {

double seconds_since(Loop::Clock::time_point when) { return seconds_now() - seconds_of(when); }

}  // namespace

Agent::Agent(Work work, Ways ways) : work_(std::move(work)), ways_(std::move(ways)) {
  if (work_.ward >= 0) ward_.emplace(ways_.loop, work_.ward, work_.ward_token);
  if (work_.lives >= 0)
    lives_.emplace(ways_.loop, work_.lives, [this](const Lifelines::Loss& loss) { rank_lost(loss); });
}

Agent::~Agent() {
  ways_.loop.cancel(look_);
  ways_.loop.cancel(end_ranks_);
}

void Agent::heard(const Message& message) {
  if (const auto* begins = std::get_if<Begin>(&message)) return begin(*begins);
  if (const auto* stops = std::get_if<Stop>(&message)) return stop(*stops);
  if (const auto* finish = std::get_if<Finish>(&message)) return ways_.finish(finish->code, finish->report);
  if (const auto* refused = std::get_if<Refused>(&message)) return ways_.finish(1, refused->why + "\n");
}

void Agent::begin(const Begin& message) {
  group_.reset();
  round_ = message.round;
  status_ = 0;
  stopping_ = told_to_stop_ = failed_ = alone_ = false;
  watch_.emplace(work_.hang);
  still_ = silence_told_ = false;
  lost_.reset();
  ways_.loop.cancel(look_);
  try {
    if (keeper_ == nullptr) keeper_ = std::make_unique<Keeper>();
    group_ = std::make_unique<Group>(ways_.loop, ways_.consoles, *keeper_,
                                     Group::Events{.ended = [this](const Ended& e) { worker_ended(e); },
                                                   .empty = [this] { all_ended(); }});
    group_->start(work_.workers(message));
    if (work_.pulses || ward_) look_ = ways_.loop.after(watch_->period(), [this] { look(); });
  } catch (const Error& e) {
    cannot_start(message.first_rank, e.what());
  }
}

/// As a shell says it: 127, and why.
void Agent::cannot_start(int rank, const std::string& why) {
  group_.reset();
  ways_.tell(
      Failed{round_, {.rank = rank, .local_rank = 0, .process = 0, .end = {127, 0}, .last_words = why}});
  ways_.tell(Stopped{.round = round_, .status = 127, .progress = work_.progress()});
}

void Agent::stop(const Stop& message) {
  if (message.round != round_ || group_ == nullptr || stopping_) return;
  stopping_ = told_to_stop_ = true;
  // A failure has stopped them already, and a second signal would mean more than the first.
  if (!failed_) group_->stop(message.signal, message.grace);
}

Failure Agent::failure_of(const Ended& ended) const {
  Failure out{.rank = ended.rank,
              .local_rank = ended.local_rank,
              .ranks = ended.ranks,
              .process = ended.process,
              .end = ended.end,
              .age = seconds_since(ended.when),
              .last_words = ended.said,
              .logs = ended.folder.string()};
  if (work_.explain) work_.explain(out, lost_ ? lost_->rank : -1);
  if (lost_) add_what_was_seen(out);
  if (work_.where) put_in_place(out);
  out.last_words = last_lines(out.last_words, 5);
  return out;
}

bool Agent::on_purpose(const End& end) const {
  return end.signal == 0 && work_.stopped_codes.contains(end.code);
}

/// Where the first of its ranks stops on purpose, srun ends those that are not quite as quick, and has their
/// signal's status: what counts is the first one's.
End Agent::end_of(const Ended& ended) const {
  if (!work_.explain || work_.stopped_codes.empty() || ended.end.good()) return ended.end;
  Failure said{.end = ended.end, .last_words = ended.said};
  work_.explain(said, -1);
  return on_purpose(said.end) ? said.end : ended.end;
}

void Agent::worker_ended(const Ended& ended) {
  const End end = end_of(ended);
  if (end.good()) return;
  if (status_ == 0 || ended.rank < status_rank_) {
    status_ = end.status();
    status_rank_ = ended.rank;
  }
  if (stopping_ || alone_ || on_purpose(end)) return;
  Failure failure = failure_of(ended);
  if (!failed_ && group_->running()) group_->stop(SIGTERM, std::min(peers_grace, work_.grace));
  // Who ends by our signal did not fail.
  const bool by_us = failed_ && (ended.end.signal == SIGTERM || ended.end.signal == SIGKILL);
  failed_ = true;
  if (!by_us) ways_.tell(Failed{round_, std::move(failure)});
}

/// What a rank says of itself counts for more than what its launcher says, and that for more than what the
/// order of hosts would give.
Whereabouts Agent::where(int rank, const std::string& host) const {
  const Whereabouts* own = ward_ ? ward_->where(round_, rank) : nullptr;
  Whereabouts out = work_.where(rank, own != nullptr && !own->host.empty() ? own->host : host);
  if (own == nullptr) return out;
  if (own->node >= 0) out.node = own->node;
  if (own->local_rank >= 0) out.local_rank = own->local_rank;
  out.process = own->process;
  return out;
}

void Agent::put_in_place(Failure& failure) const {
  if (!failure.launcher.empty()) return;  // it is here itself
  const Whereabouts there = where(failure.rank, failure.host);
  failure.placed = 1;
  failure.node = there.node;
  failure.host = there.host;
  failure.local_rank = there.local_rank;
  if (there.process > 0) failure.process = there.process;
}

Doing Agent::doing_here(const PulseReading& rank, double now) const {
  Doing out = doing_of(rank, round_, now);
  if (!work_.where) return out;
  const Whereabouts there = where(rank.rank, "");
  out.placed = 1;
  out.node = there.node;
  out.host = there.host;
  return out;
}

/// mpirun ends the others, and then says how this one ended; a failure is told when it has. Should it hang,
/// the others are ended all the same, and it with them.
void Agent::rank_lost(const Lifelines::Loss& loss) {
  if (loss.round != round_ || group_ == nullptr || lost_ || stopping_ || failed_ || alone_) return;
  if (work_.stopped_codes.contains(loss.code)) return;
  lost_ = loss;
  Failure seen{.rank = loss.rank, .end = {.code = std::max(0, loss.code), .signal = 0}};
  if (loss.code < 0) seen.what = "is gone";
  if (work_.where) put_in_place(seen);
  ways_.consoles.err.write(text("launch: ", one_line(seen), "; mpirun ends the others\n"));
  const double soon = std::min(peers_grace, work_.grace);
  end_ranks_ = ways_.loop.after(soon, [this] { lives_->end_all(); });
  group_->kill_after(soon);
}

/// A line that is cut is the first sign of a failure. How a rank ended that said nothing before, mpirun
/// knows, if it speaks of that rank.
void Agent::add_what_was_seen(Failure& f) const {
  const bool named = f.launcher.empty(), same = named && f.rank == lost_->rank;
  if (lost_->code > 0)
    f.end = {.code = lost_->code, .signal = 0};
  else if (!same)
    f.what = named ? text("is gone, before rank ", f.rank, ", of which mpirun says ", words_of(f.end))
                   : "is gone, and mpirun does not say how";
  if (!same) f.host.clear();
  f.launcher.clear();
  f.rank = lost_->rank;
  f.process = lost_->process;
  f.age = seconds_since(lost_->when);
}

void Agent::all_ended() {
  group_.reset();
  ways_.loop.cancel(end_ranks_);
  if (alone_) {
    if (ways_.stopped_alone) ways_.stopped_alone();
    return;
  }
  if (failed_ || stopping_)
    ways_.tell(Stopped{.round = round_, .status = status_, .progress = work_.progress()});
  else
    ways_.tell(Done{.round = round_, .status = status_});
}

/// srun says at once that a task was lost, and then waits for the others as long as its cluster lets them
/// live; they wait for the lost one, and would seem to hang.
bool Agent::overhears_failure() {
  if (!work_.waits_for_others) return false;
  Failure failure = failure_of(group_->so_far());
  if (!failure.launcher.empty() || failure.end.good() || on_purpose(failure.end)) return false;
  failed_ = true;
  group_->kill_after(std::min(peers_grace, work_.grace));
  ways_.tell(Failed{round_, std::move(failure)});
  return true;
}

/// A machine that answers nothing any more is lost once all others wait: while they work, its way to us may
/// be all that is cut. What waits for it has nothing to save.
bool Agent::misses_machine(const std::vector<PulseReading>& ranks, double now) {
  std::set<int> gone;
  const std::vector<Ward::Unanswered> unanswered = ward_->unanswered(round_, now);
  for (const Ward::Unanswered& one : unanswered) gone.insert(one.rank);
  if (gone.empty()) return silence_told_ = false;
  const double silence = unanswered.front().seconds;
  Failure first{.rank = unanswered.front().rank, .end = {.code = 1, .signal = 0}, .age = silence};
  first.what = text("does not answer for ", std::lround(silence), " s: its machine is gone or cut off");
  if (work_.where) put_in_place(first);
  const bool lost = all_wait_but(gone, ranks, now);
  if (!lost && !silence_told_) ways_.consoles.err.write(not_missed_yet(first));
  silence_told_ = true;
  if (!lost) return false;
  failed_ = true;
  group_->kill_after(0);
  ways_.tell(Failed{round_, std::move(first)});
  return true;
}

/// Tells when the ranks here fall still, and when they move again.
void Agent::look() {
  if (group_ == nullptr || stopping_ || failed_ || alone_ || overhears_failure()) return;
  const double now = seconds_now();
  const std::vector<PulseReading> ranks = ward_ ? ward_->read(round_, now) : work_.pulses(round_);
  if (ward_ && misses_machine(ranks, now)) return;
  // A network that lets nobody's word through is no hang.
  const Watch::Stillness seen = ward_ && ranks.empty() ? Watch::Stillness() : watch_->look(ranks, now);
  if (seen.still && !still_)
    for (const PulseReading& rank : ranks) ways_.tell(doing_here(rank, now));
  if (seen.still != still_) ways_.tell(Still{.round = round_, .is = seen.still ? 1 : 0, .limit = seen.limit});
  still_ = seen.still;
  tell_paces(ranks, now);
  look_ = ways_.loop.after(watch_->period(), [this] { look(); });
}

void Agent::tell_paces(const std::vector<PulseReading>& ranks, double now) {
  if (now - pace_told_ < work_.hang.slow_window / 4) return;
  pace_told_ = now;
  for (const PulseReading& r : ranks)
    ways_.tell(
        Pace{.round = round_, .rank = r.rank, .kin = r.kin, .steps = r.steps_done, .worked = r.worked});
}

void Agent::leave(int signal) {
  if (leaving_ && group_ != nullptr) group_->stop(SIGKILL, 0);
  if (!leaving_) ways_.tell(Leaving{signal});
  leaving_ = true;
}

void Agent::forward(int signal) {
  if (group_ != nullptr) group_->signal(signal);
}

void Agent::cut_off() {
  // A coordinator that has told us to stop knows that we leave, and waits; one that is lost after we have
  // waited for its answer does not.
  const bool may_save = leaving_ && (told_to_stop_ || !alone_);
  alone_ = true;
  if (group_ == nullptr && ways_.stopped_alone) return ways_.stopped_alone();
  if (group_ != nullptr) {
    if (!stopping_) group_->signal(SIGTERM);
    group_->kill_after(may_save ? work_.grace : std::min(peers_grace, work_.grace));
  }
  stopping_ = true;
}

std::vector<pid_t> Agent::processes() const {
  std::vector<pid_t> out = group_ != nullptr ? group_->processes() : std::vector<pid_t>();
  if (keeper_ != nullptr) out.push_back(keeper_->process());
  return out;
}

void wind_up(const Agent& agent, Group::Consoles consoles) {
  constexpr double reader = 5;  // seconds, if whoever reads our streams is slow
  reap_adopted(agent.processes(), true);
  consoles.out.flush(reader);
  consoles.err.flush(reader);
}

}  // namespace weft::launch
