// The workers of one attempt on this node: started together, watched, stopped together.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/launch/console.h"
#include "weft/launch/keeper.h"
#include "weft/launch/options.h"
#include "weft/launch/outlet.h"
#include "weft/launch/process.h"

namespace weft::launch {

struct Worker {
  std::vector<std::string> words;
  Environment environment;
  int rank = 0, local_rank = 0;
  int ranks = 1;  // that are threads of it
  Streams files = Streams::none, console = Streams::both;
  std::filesystem::path folder;  // of stdout.log and stderr.log
  std::string prefix;
  std::filesystem::path error_file = {};  // in which it may say why it failed
  int keep = -1;                          // a descriptor that it inherits
  bool overheard = false;                 // stderr is read even where it is a person's terminal
  int save_signal = 0;                    // what it hears instead of any but SIGKILL; 0: those
};

struct Ended {
  int rank = 0, local_rank = 0, ranks = 1;
  pid_t process = 0;
  End end;
  Loop::Clock::time_point when;
  std::string said;              // the last 4 KiB or so
  std::filesystem::path folder;  // empty: no logs
};

/// `ended` is called for every worker as it ends, `empty` once after the last.
class Group {
 public:
  struct Events {
    std::function<void(const Ended&)> ended;
    std::function<void()> empty;
  };
  struct Consoles {
    Console &out, &err;
  };
  Group(Loop& loop, Consoles consoles, const Keeper& keeper, Events events);
  /// Kills and reaps what still runs.
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  /// Throws if one cannot be run; those before it are then killed.
  void start(const std::vector<Worker>& workers);
  void signal(int number);
  /// The signal now, SIGKILL after so many seconds; a second call may only shorten that.
  void stop(int number, double grace);
  void kill_after(double grace);
  /// Of the first that still runs, as if it had ended well just now.
  Ended so_far() const;
  bool running() const { return running_ > 0; }
  std::vector<pid_t> processes() const;

 private:
  struct Member;
  void start_one(const Worker& worker);
  void end(Member& member);
  static Ended ended_as(const Member& member, End how);
  Loop& loop_;
  Consoles consoles_;
  const Keeper& keeper_;
  Events events_;
  std::vector<std::unique_ptr<Member>> members_;
  int running_ = 0;
  std::uint64_t kill_time_ = 0;
  Loop::Clock::time_point kill_at_ = Loop::Clock::time_point::max();
};

}  // namespace weft::launch
