// Turns what the coordinator says into a group of workers, and their ends into words.
#include "weft/launch/agent.h"

#include <algorithm>
#include <csignal>

#include "weft/base/error.h"

namespace weft::launch {
namespace {

constexpr double peers_grace = 3;  // as the coordinator's: after a failure nobody has anything to save

double seconds_since(Loop::Clock::time_point when) {
  return std::chrono::duration<double>(Loop::Clock::now() - when).count();
}

}  // namespace

Agent::Agent(Work work, Ways ways) : work_(std::move(work)), ways_(std::move(ways)) {}

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
  stopping_ = failed_ = alone_ = false;
  group_ = std::make_unique<Group>(
      ways_.loop, ways_.consoles,
      Group::Events{.ended = [this](const Ended& e) { worker_ended(e); }, .empty = [this] { all_ended(); }});
  try {
    group_->start(work_.workers(message));
  } catch (const Error& e) {
    cannot_start(e.what());
  }
}

/// As a shell says it: 127, and why.
void Agent::cannot_start(const std::string& why) {
  group_.reset();
  ways_.tell(Failed{round_, {.rank = 0, .local_rank = 0, .process = 0, .end = {127, 0}, .last_words = why}});
  ways_.tell(Stopped{.round = round_, .status = 127, .progress = work_.progress()});
}

void Agent::stop(const Stop& message) {
  if (message.round != round_) return;
  if (group_ == nullptr || !group_->running()) {
    // Nothing of ours runs: what mpirun started here ends with it.
    if (group_ != nullptr) all_ended();
    return;
  }
  if (stopping_) return;
  stopping_ = true;
  // A failure has stopped them already, and a second signal would mean more than the first.
  if (!failed_) group_->stop(message.signal, message.grace);
}

void Agent::worker_ended(const Ended& ended) {
  if (ended.end.good()) return;
  if (status_ == 0 || ended.rank < status_rank_) {
    status_ = ended.end.status();
    status_rank_ = ended.rank;
  }
  if (stopping_ || alone_) return;
  if (ended.end.signal == 0 && work_.stopped_codes.contains(ended.end.code)) return;
  Failure failure{.rank = ended.rank,
                  .local_rank = ended.local_rank,
                  .process = ended.process,
                  .end = ended.end,
                  .age = seconds_since(ended.when),
                  .last_words = ended.said,
                  .logs = ended.folder.string()};
  if (work_.explain) work_.explain(failure);
  failure.last_words = last_lines(failure.last_words, 5);
  if (!failed_ && group_->running()) group_->stop(SIGTERM, std::min(peers_grace, work_.grace));
  // Who ends by our signal did not fail.
  const bool by_us = failed_ && (ended.end.signal == SIGTERM || ended.end.signal == SIGKILL);
  failed_ = true;
  if (!by_us) ways_.tell(Failed{round_, std::move(failure)});
}

void Agent::all_ended() {
  group_.reset();
  if (alone_) return;
  if (failed_ || stopping_)
    ways_.tell(Stopped{.round = round_, .status = status_, .progress = work_.progress()});
  else
    ways_.tell(Done{.round = round_, .status = status_});
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
  alone_ = true;
  if (group_ != nullptr && !stopping_) group_->stop(SIGTERM, work_.grace);
  stopping_ = true;
}

std::vector<pid_t> Agent::processes() const {
  return group_ != nullptr ? group_->processes() : std::vector<pid_t>();
}

}  // namespace weft::launch
