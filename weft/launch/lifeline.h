// How a launcher sees at once that a rank is gone which mpirun started for it on this machine.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weft/launch/door.h"
#include "weft/launch/loop.h"
#include "weft/launch/wire.h"

namespace weft::launch {

/// A rank's end of a line to its launcher, which the kernel cuts when the process is gone, however it went.
class Lifeline {
 public:
  /// The launcher listens under this name; where nobody does, or at "", there is no line.
  Lifeline(const std::string& name, int round, int rank);
  /// It fails by itself, and ends with this code.
  void fails(int code) const;
  /// It ends as it should.
  void ends() const;

 private:
  void say(const Message& message) const;
  Descriptor line_;
  int round_, rank_;
};

/// The launcher's ends of all lines. mpirun hears of a rank's death too, but says so when it is done with all
/// others; and not at all where it hangs itself.
class Lifelines {
 public:
  struct Loss {
    int round = 0, rank = 0;
    pid_t process = 0;
    int code = -1;  // with which it said that it would end; -1: it said nothing
    Loop::Clock::time_point when;
  };
  using Lost = std::function<void(const Loss&)>;
  /// The listener stays the caller's.
  Lifelines(Loop& loop, int listener, Lost lost);
  ~Lifelines();
  Lifelines(const Lifelines&) = delete;
  Lifelines& operator=(const Lifelines&) = delete;

  /// SIGKILL to whoever still holds a line.
  void end_all() const;
  std::vector<pid_t> processes() const;

 private:
  struct Rank {
    std::unique_ptr<Wire> wire;
    pid_t process = 0;
    int round = 0, number = -1;  // -1: it has not said
    bool told = false;           // how it ends
    std::uint64_t patience = 0;
  };
  void take_in(Descriptor socket);
  void heard(int id, const Message& message);
  void cut(int id);
  void tell(Rank& rank, int code);
  Loop& loop_;
  Lost lost_;
  std::map<int, Rank> ranks_;
  int next_ = 1;
  Door door_;
};

/// A name in the kernel, no file, and of this network alone. Fails with Kind::device.
Descriptor listen_for_lives(const std::string& name);

}  // namespace weft::launch
