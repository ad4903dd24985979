// One node's part of a job on several: its agent, and where it meets the others.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>

#include "weft/base/error.h"
#include "weft/launch/rendezvous.h"
#include "weft/launch/signals.h"
#include "weft/launch/supervise.h"

namespace weft::launch {
namespace {

constexpr double farewell = 5;  // seconds for the others to hear the verdict, or to answer

class Node {
 public:
  Node(const NodeJob& job, const Meeting& meeting)
      : job_(job),
        out_(loop_, STDOUT_FILENO),
        err_(loop_, STDERR_FILENO),
        agent_(job.work, {.loop = loop_,
                          .consoles = {out_, err_},
                          .tell = [this](const Message& m) { meeting_->tell(m); },
                          .finish = [this](int code, const std::string& why) { finish(code, why); },
                          .stopped_alone = [this] { end_alone(); }}),
        signals_(loop_, heard_signals(job.signals), [this](int number) { signaled(number); }) {
    adopt_orphans();
    raise_descriptor_limit();
    meeting_.emplace(loop_, Rendezvous::Terms{job.rules, job.self}, meeting.at, events());
  }

  int run() {
    loop_.run();
    wind_up(agent_, {out_, err_});
    return code_;
  }

 private:
  Rendezvous::Events events() {
    return {.heard =
                [this](const Message& m) {
                  cut_off_ = false;
                  agent_.heard(m);
                },
            .cut_off = [this](const std::string& why) { cut_off(why); },
            .given_up = [this](const std::string& why) { finish(1, why + "\n"); },
            .say = [this](const std::string& line) { err_.write(line + "\n"); }};
  }

  void signaled(int number) {
    if (number == SIGCHLD) return reap_adopted(agent_.processes(), false);
    if (std::find(job_.signals.begin(), job_.signals.end(), number) == job_.signals.end())
      return agent_.forward(number);
    left_by_ = number;
    agent_.leave(number);
    if (cut_off_ && !agent_.working()) return end_alone();
    // Where nobody answers, nobody may have noticed yet that the coordinator is gone: workers are stopped,
    // and the node ends when they have. However that goes, it has waited for its peers long enough then.
    loop_.after(farewell, [this] {
      if (!agent_.stopping()) agent_.cut_off();
    });
    loop_.after(job_.rules.grace + 2 * farewell, [this] { end_alone(); });
  }
  void end_alone() {
    if (left_by_ != 0) finish(128 + left_by_, "");
  }
  void cut_off(const std::string& why) {
    cut_off_ = true;
    if (meeting_->one_place() || agent_.working())
      err_.write(text("launch: the coordinator is lost: ", why, "; workers stop, and this node waits for ",
                      meeting_->one_place() ? "it\n" : "another\n"));
    agent_.cut_off();
  }
  void finish(int code, const std::string& report) {
    if (finished_) return;
    finished_ = true;
    code_ = code;
    const std::string ours = meeting_->report();  // whole, where others were told its beginning
    err_.write(ours.empty() ? report : ours);
    meeting_->end(farewell, [this] { loop_.stop(); });
  }

  const NodeJob& job_;
  Loop loop_;
  Console out_, err_;
  Agent agent_;
  Signals signals_;
  std::optional<Rendezvous> meeting_;
  bool finished_ = false, cut_off_ = false;
  int code_ = 1, left_by_ = 0;
};

}  // namespace

int supervise_with_others(const NodeJob& job, const Meeting& meeting) { return Node(job, meeting).run(); }

}  // namespace weft::launch
