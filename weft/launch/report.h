// What a person reads when a job has failed.
#pragma once

#include <string>
#include <vector>

#include "weft/launch/message.h"

namespace weft::launch {

/// "rank 3 on node 1 (host b): signal 9 (Killed)", "node 2 (host c): silent for 12 s".
std::string one_line(const Failure& failure);
/// Of a rank that is not heard, and that nobody waits for yet.
std::string not_missed_yet(const Failure& silence);

struct Story {
  const Failure& first;
  std::vector<std::string> others;  // a line each, in order of time
  double seconds = 0;               // from the start of the round to the failure
  std::string why_it_ends;          // "no restarts are left (3 of 3 used)"
};
/// The first failing rank by time, how it ended, its last words, where its logs lie, who followed, why
/// nothing more is tried.
std::string report_of(const Story& story);

/// For nodes other than the one that tells it: whole lines of at most 4 KiB, as there may be thousands of
/// both, and where the rest is.
std::string shortened(const std::string& report);

}  // namespace weft::launch
