// What ranks on other machines say of themselves, gathered for whoever watches them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weft/launch/door.h"
#include "weft/launch/loop.h"
#include "weft/launch/message.h"
#include "weft/launch/wire.h"

namespace weft::launch {

/// Listens where heralds connect. Who does not know the token, or says nothing in 10 s, is cut off, and
/// changes nothing. A rank whose connection broke counts as alive: that the network fails says nothing about
/// it. But one whose machine answers nothing any more, as the kernel of one that runs would even for a rank
/// that is stopped, is told apart.
class Ward {
 public:
  /// The listener stays the caller's.
  Ward(Loop& loop, int listener, std::string token);
  ~Ward();
  Ward(const Ward&) = delete;
  Ward& operator=(const Ward&) = delete;

  /// Of those that have told of this round, with their beats on our clock.
  std::vector<PulseReading> read(int round, double now) const;
  struct Unanswered {
    int rank = 0;
    double seconds = 0;  // since its last word
  };
  /// Of those, the ones whose machine is gone or cut off, until they are heard again.
  std::vector<Unanswered> unanswered(int round, double now) const;
  /// Where this rank of this round is, as it said itself; null: it did not.
  const Whereabouts* where(int round, int rank) const;
  std::size_t connections() const { return guests_.size(); }

 private:
  struct Guest {
    std::unique_ptr<Wire> wire;
    bool known = false;
    std::uint64_t patience = 0;
  };
  struct RankReading {
    PulseReading reading;
    int round = 0, by = 0;  // by: the guest that told
    double heard = 0;       // when
    bool cut_off = false, unanswered = false;
  };
  void take_in(Descriptor socket);
  void heard(int id, const Message& message);
  void note(int id, const Vital& vital);
  void drop(int id, bool in_order);
  Loop& loop_;
  std::string token_;
  std::map<int, Guest> guests_;
  std::map<int, RankReading> seen_;    // by rank
  std::map<int, Whereabouts> places_;  // by rank, and kept when it goes
  int next_ = 1;
  Door door_;
};

/// This machine's addresses as others may reach them, the ones that only itself reaches last.
std::vector<std::string> own_addresses();
/// That nobody guesses.
std::string new_token();

}  // namespace weft::launch
