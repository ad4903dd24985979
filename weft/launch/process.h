// One child process: started so that it dies with us, heard through a descriptor when it ends.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "weft/launch/environment.h"
#include "weft/launch/loop.h"

namespace weft::launch {

struct Start {
  std::vector<std::string> words;  // the program, found along PATH, and its arguments
  Environment environment;
  int out = -1, err = -1;  // become its stdout and stderr; -1: ours
  int keep = -1;           // stays open in it, under the same number
  int keeper = -1;         // where it says its group before it is the program (keeper.h)
};

/// How a process ended: with a code, or by a signal.
struct End {
  int code = 0;
  int signal = 0;
  bool good() const { return code == 0 && signal == 0; }
  /// 128 + signal, as shells say it.
  int status() const { return signal != 0 ? 128 + signal : code; }
  bool operator==(const End&) const = default;
};
/// "exit code 3", "signal 9 (Killed)".
std::string words_of(const End& end);

struct Process {
  pid_t id = -1;
  Descriptor ended;  // readable once it has
};

/// Its own process group, no signal blocked, stdin empty, SIGKILL when the calling thread is gone. Fails with
/// a usage error if the program cannot be run. Only async-signal-safe calls happen between fork and exec.
Process start(const Start& what);

/// To all of its process group, whose leader must not have been reaped; a group that is gone is fine.
void signal_group(const Process& process, int number);

/// Kills what is left of its group, then reaps it. Call when `ended` is readable.
End reap(const Process& process);

/// Becomes the program, found along PATH, with these variables; returns why it cannot be run.
std::string become(std::vector<std::string> words, const Environment& environment);

/// SIGKILL when the parent is gone, however it went: for those that another launcher started for us.
void die_with_parent();

/// From now on, processes that lost their parent become ours instead of init's.
void adopt_orphans();
/// Reaps adopted children that ended; with `kill`, ends those that live. `ours` are left to their owners.
void reap_adopted(const std::vector<pid_t>& ours, bool kill);

}  // namespace weft::launch
