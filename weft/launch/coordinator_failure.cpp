// What a failure means for a job: another start, or the end.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "weft/base/error.h"
#include "weft/launch/coordinator.h"
#include "weft/launch/report.h"

namespace weft::launch {
namespace {

constexpr int stuck_limit = 3;
constexpr double brief_round = 5, first_pause = 0.5, longest_pause = 10;  // seconds

}  // namespace

void Coordinator::failed(int id, const Failed& message, double now) {
  const Member& member = members_[id];
  Failure failure = message.failure;
  if (failure.placed == 0) {
    failure.node = member.node;
    failure.host = member.join.host;
  }
  failures_.push_back({failure, now - std::max(0.0, failure.age)});
  if (state_ == State::running) give_up_round(now);
}

/// One that hangs makes all wait, so this is when nobody moves any more.
void Coordinator::hangs(double limit, double now) {
  std::vector<Doing> all;
  for (const auto& [rank, doing] : doings_) all.push_back(doing);
  const Hang hang = hang_of(all, limit);
  auto seat = seats_.upper_bound(hang.rank);
  const int id = seat == seats_.begin() ? seats_.begin()->second : std::prev(seat)->second;
  Failure failure{.rank = hang.rank};
  if (const auto doing = doings_.find(hang.rank); doing != doings_.end() && doing->second.placed != 0) {
    failure.node = doing->second.node;
    failure.host = doing->second.host;
  } else if (const auto member = members_.find(id); member != members_.end()) {
    failure.node = member->second.node;
    failure.host = member->second.join.host;
  }
  failure.end.code = 1;
  failure.what = hang.what;
  say_(text("launch: ", one_line(failure)));
  for (const std::string& line : hang.lines) {
    say_(text("launch:   ", line));
    failure.last_words += line + "\n";
  }
  failures_.push_back({failure, now});
  give_up_round(now);
}

const Coordinator::Told* Coordinator::first_failure() const {
  const auto first = std::min_element(failures_.begin(), failures_.end(),
                                      [](const Told& a, const Told& b) { return a.when < b.when; });
  return first == failures_.end() ? nullptr : &*first;
}

/// Gives the verdict, or says what is done.
bool Coordinator::another_start_helps(const Told& first, double now) {
  const Failure& f = first.failure;
  const bool node = f.rank < 0;
  const int code = node ? 1 : f.end.status();
  std::string why;
  if (!node && f.end.signal == 0 && rules_.final_codes.contains(f.end.code))
    why = text("exit code ", f.end.code, " is not tried again");
  else if (!(node && elastic()) && restarts_ >= rules_.max_restarts)
    why = rules_.max_restarts == 0 ? "--max-restarts is 0"
                                   : text("all ", rules_.max_restarts, " restarts are used");
  const bool progressed = progress_before_ >= 0 && progress_ > progress_before_;
  stuck_ = progress_ >= 0 && progress_ == progress_before_ ? stuck_ + 1 : 0;
  progress_before_ = progress_;
  if (why.empty() && stuck_ >= stuck_limit) why = text(stuck_limit, " restarts in a row made no progress");
  if (why.empty()) {
    if (node && elastic()) {
      say_(text("launch: ", one_line(f), "; going on with those that are left"));
      return true;
    }
    ++restarts_;
    const double pause = pause_after(first, progressed);
    not_before_ = std::max(not_before_, now + pause);
    say_(text("launch: ", one_line(f), "; restart ", restarts_, " of ", rules_.max_restarts,
              pause > 0 ? text(" in ", pause, " s") : ""));
    return true;
  }
  std::vector<Told> rest = failures_;
  std::sort(rest.begin(), rest.end(), [](const Told& a, const Told& b) { return a.when < b.when; });
  std::vector<std::string> others;
  for (std::size_t i = 1; i < rest.size(); ++i) others.push_back(one_line(rest[i].failure));
  finish(code, report_of({.first = f, .others = others, .seconds = first.when - began_, .why_it_ends = why}));
  return false;
}

/// Seconds until the next round may begin, where this one failed soon after its start and got nothing done.
double Coordinator::pause_after(const Told& first, bool progressed) {
  if (progressed || first.when - began_ >= brief_round) {
    brief_ = 0;
    return 0;
  }
  const double pause = std::min(longest_pause, first_pause * std::pow(2.0, std::min(brief_, 10)));
  ++brief_;
  return pause;
}

}  // namespace weft::launch
