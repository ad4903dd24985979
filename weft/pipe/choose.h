// Schedules by name, or out of a text file.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "weft/pipe/schedule.h"

namespace weft::pipe {

inline constexpr std::array<std::string_view, 5> schedule_names{"gpipe", "1f1b", "interleaved", "zb-h1",
                                                                "zb-v"};

struct Wanted {
  std::string name;  // one of schedule_names, or a file; empty: 1f1b, or interleaved where there are chunks
  int ranks = 1;
  int chunks = 1;  // stages a rank holds
  int microbatches = 1;
  int group = 0;  // interleaved: microbatches that go through a chunk before the next; 0: as many as ranks
  /// One forward more comes first, so that one is computed beside every backward: of one rank, and
  /// interleaved.
  bool beside = false;
};

/// Computations only. Refuses names nobody knows, chunks a schedule has no place for, and files that do not
/// fit.
Schedule make_schedule(const Wanted& wanted);
/// Whether that is one of schedule_names, or empty: what serves any number of microbatches.
bool knows_schedule(std::string_view name);
/// The rank of each stage, however many microbatches there are.
std::vector<int> stage_homes(const Wanted& wanted);

/// A schedule as text, and back. Lines: "stages 0 1 1 0", the rank of each stage in the order that data flow;
/// "rank 0: F0 F1 B0 B1", what a rank does: F forward, B backward, I its input half, W its weight half, then
/// the microbatch, and "@stage" where the rank holds several. "#" begins a comment; a rank may have many
/// lines.
std::string write_schedule(const Schedule& schedule);
/// `name` is what messages call it. Every stage must do every microbatch exactly once, in an order that can
/// run.
Schedule read_schedule(std::string_view script, const std::string& name);

}  // namespace weft::pipe
