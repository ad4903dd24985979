// What agents and the coordinator of a job say to each other, and how it travels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weft/base/pulse.h"
#include "weft/launch/process.h"

namespace weft::launch {

/// A worker, or a whole node, that failed.
struct Failure {
  int rank = -1, local_rank = -1, node = -1;  // rank -1: the node itself
  int ranks = 1;                              // from that one on, threads of one process
  int placed = 0;                             // 1: not where its teller is, but on this node and host
  std::string host, launcher;                 // launcher: that ended, and did not say for which rank
  std::int64_t process = 0;
  End end;
  double age = 0;    // seconds from the end to the telling; no two nodes' clocks are compared
  std::string what;  // of a node
  std::string last_words, logs;
};

// From an agent.
struct Join {
  std::string run_id, host, address;
  int wanted_rank = -1, slots = 1;
  int port = 0;                 // where its first worker can listen; 0: no matter
  int voter = -1;               // which of the places where agents may meet it is; -1: none
  int round = 0, restarts = 0;  // of the job, as it knows them
};
struct Beat {};
struct Failed {
  int round = 0;
  Failure failure;
};
/// All workers of the round have ended, after a failure or a stop; `status` is the worst of theirs.
struct Stopped {
  int round = 0, status = 0;
  std::int64_t progress = -1;  // whatever grows while the job gets on; -1: not known
};
/// All workers of the round have ended well, or stopped on purpose with this code.
struct Done {
  int round = 0, status = 0;
};
/// The agent was told by a signal to end.
struct Leaving {
  int signal = 0;
};

/// What a rank does, told when a node has fallen still.
struct Doing {
  struct Circle {
    std::uint64_t id = 0, words = 0;
    int place = 0;
  };
  int round = 0, rank = 0, section = 0;
  int word = 0, peer = -1;  // what it waits in: a Spoken
  std::int64_t step = 0, number = 0;
  std::uint64_t circle = 0;
  double still = 0;
  int placed = 0, node = -1;  // as in a Failure
  std::string host = {};
  std::vector<Circle> circles;
};
/// After the doings of all its ranks: none of them has moved for longer than the limit. Or, with `is` 0, that
/// they move again.
struct Still {
  int round = 0, is = 0;
  double limit = 0;
};
/// How much a rank has worked in how many steps.
struct Pace {
  int round = 0, rank = 0, kin = 0;
  std::int64_t steps = 0;
  double worked = 0;
};

/// From a rank on another machine to the launcher that watches it.
struct Vital {
  int round = 0;
  double age = 0;  // seconds since its last beat
  PulseReading reading;
};

/// And before that: where it is, as far as it knows.
struct Whereabouts {
  int round = 0, rank = -1;
  int node = -1, local_rank = -1;  // -1: nobody knows
  std::string host;                // "": nobody knows
  std::int64_t process = 0;        // 0: nobody knows
};

// From the coordinator, which also beats.
struct Peer {
  std::string address;
  int slots = 1;
};
struct Begin {
  int round = 0, restarts = 0, max_restarts = 0;
  int node = 0, nodes = 1, first_rank = 0, slots = 1, world = 1;
  std::string master;       // the address of node 0
  int port = 0;             // and where its first worker can listen
  std::vector<Peer> peers;  // in order, told to node 0 only
};
struct Stop {
  int round = 0, signal = 0;
  double grace = 0;
};
struct Finish {
  int code = 0;
  std::string report;
};
struct Refused {
  std::string why;
};
/// It coordinates no longer, and counts nobody.
struct Resigned {};

using Message = std::variant<Join, Beat, Failed, Stopped, Done, Leaving, Begin, Stop, Finish, Refused, Doing,
                             Still, Pace, Vital, Resigned, Whereabouts>;

/// A frame: how many bytes follow (u32), which message (u8), its fields.
std::string encode(const Message& message);

constexpr std::size_t frame_head = 4;
/// Takes the first whole frame off `bytes`; none: more must come. Throws a comm error for what cannot be a
/// frame of at most `largest` bytes.
std::optional<Message> take_frame(std::string& bytes, std::size_t largest);

}  // namespace weft::launch
