// Runs that weft job started on this machine: what is kept of them, and what became of them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/descriptor.h"

namespace weft::cli {

/// Where runs are kept: $XDG_STATE_HOME/weft/jobs or ~/.local/state/weft/jobs; empty: this user has no home.
std::filesystem::path usual_runs();

/// A run while it goes on. What it is called is taken for as long as it does: a second one is refused.
class RunRecord {
 public:
  RunRecord(std::filesystem::path folder, std::vector<std::string> words);
  /// Under it the launcher keeps what ranks say.
  std::filesystem::path logs() const { return folder_ / "logs"; }
  void end(int status);

 private:
  void write(const std::string& rest) const;
  std::filesystem::path folder_;
  std::vector<std::string> words_;
  std::string started_;
  Descriptor lock_;
};

/// A run that was started here, by what is kept of it.
struct RunHere {
  std::filesystem::path folder;
  std::vector<std::string> words;
  std::string started, ended;  // empty: it goes on, or was killed
  int process = 0, status = 0;
  bool goes_on = false;
};
std::optional<RunHere> run_here(const std::filesystem::path& runs, const std::string& job);

/// As of a cluster's job: a state, why, and the last words of what failed.
std::string status_told(const RunHere& run, const std::string& job);
std::string events_told(const RunHere& run, const std::string& job);
/// What ranks said at the last start; `tail` lines of each, or -1: all.
std::string logs_told(const RunHere& run, int tail);
std::string resources_told(const RunHere& run);

}  // namespace weft::cli
