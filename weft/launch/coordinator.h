// Who decides for all nodes of a job: when to start, what a failure means, when to end. No sockets, no clock.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "weft/launch/message.h"
#include "weft/launch/options.h"
#include "weft/launch/watch.h"

namespace weft::launch {

struct Rules {
  Nodes nodes;
  Patience patience;
  int max_restarts = 0;
  double grace = 25;
  std::string run_id = "none";
  int voters = 1;           // places where agents may meet: nothing is begun or goes on without most of them
  double slow_window = 60;  // seconds over which ranks' work is compared
  /// Exit codes of workers that another start would not change, the person's mistake for one.
  std::set<int> final_codes;
};

struct Verdict {
  int code = 0;
  std::string report;
};

/// gathering: members wait until MIN or MAX of them are there. running: a round's participants work; others
/// are spares. stopping: participants were told to stop, and the round is over when all have. Then it gathers
/// again, or gives the verdict. `now` is in seconds of any clock that only goes forward; tick() is due at
/// next().
///
/// A failure costs a restart; a node that comes or goes, where MIN:MAX allows it, does not. Three failures in
/// a row between which no agent saw progress end the job; after a round that failed at once, the next waits a
/// while, and longer each time, as what it fails by may pass. Who leaves is let go when the others can go on
/// without it: at once where it has no part in the round. A coordinator that was itself held up blames
/// nobody for it. Where agents may meet at several places, each may come to coordinate, and one acts only
/// while most of the places are with it; what it does not know of the job, those who join know.
class Coordinator {
 public:
  using Send = std::function<void(int member, const Message& message)>;
  /// What is worth a line while the job goes on.
  using Say = std::function<void(const std::string& line)>;
  Coordinator(Rules rules, double now, Send send, Say say);

  void joined(int member, const Join& join, double now);
  void heard(int member, const Message& message, double now);
  void gone(int member, const std::string& why, double now);
  void tick(double now);
  double next() const;
  const std::optional<Verdict>& verdict() const { return verdict_; }
  /// Whether most of the voters are with us, as was heard just now. Whoever leaves us waits longer than this
  /// before it joins another coordinator, so no two can have that at once.
  bool quorum(double now) const;
  /// Whether all have stopped, or have had the time to see that they are cut off.
  bool nobody_works(double now) const { return working_ == 0 && now >= not_before_; }
  int members() const { return static_cast<int>(members_.size()); }

 private:
  enum class State { gathering, running, stopping };
  struct Member {
    Join join;
    double heard = 0;    // and as often as it was excused
    double spoke = 0;    // without excuses
    int node = -1;       // in this round; -1: a spare
    bool ended = false;  // its workers of this round
    bool still = false;  // none of them moves
  };
  struct Told {
    Failure failure;
    double when = 0;
  };
  void begin_if_due(double now);
  void begin(double now);
  std::vector<int> chosen() const;
  void failed(int member, const Failed& message, double now);
  void watched(int member, const Message& message, double now);
  void hangs(double limit, double now);
  void leaves(int member, int signal, double now);
  void let_go(int member, int code);
  void forget(int member);
  void ended(int member, double now);
  void keep_quorum(double now);
  void works_unseen(int member, double until_it_knows);
  void loses_sight_of(int member);
  void stop_all(int signal, double grace, double now);
  void give_up_round(double now);
  void settle(double now);
  bool another_start_helps(const Told& first, double now);
  double pause_after(const Told& first, bool progressed);
  void finish(int code, std::string report);
  bool elastic() const { return rules_.nodes.least < rules_.nodes.most; }
  const Told* first_failure() const;

  Rules rules_;
  Send send_;
  Say say_;
  std::map<int, Member> members_;
  std::map<int, int> by_wish_;  // the wanted rank to the member
  int working_ = 0;             // participants whose workers have not all ended
  std::map<int, int> leaving_;  // members, and with what code they end
  State state_ = State::gathering;
  int round_ = 0, participants_ = 0, restarts_ = 0, stuck_ = 0, brief_ = 0, stop_status_ = 0,
      stop_signal_ = 0;
  std::int64_t progress_ = -1, progress_before_ = -1;
  double join_until_, last_call_ = 0, stop_until_ = 0, last_tick_, began_ = 0, most_gone_ = 0;
  double not_before_ = 0;  // a round begins: lest somebody still works, or after rounds that failed at once
  std::vector<Told> failures_;   // of this round
  std::map<int, Doing> doings_;  // by rank
  std::map<int, int> seats_;     // of the round: a node's first rank to its member
  Paces paces_;
  std::optional<Verdict> verdict_;
};

}  // namespace weft::launch
