// progress.txt: a line a start and a line a checkpoint, appended by every job of a run.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "weft/report/sink.h"

namespace weft::report {

struct ProgressOptions {
  std::filesystem::path file;
  int ranks = 1;
  std::string job;              // the scheduler's name for it; may be empty
  std::function<double()> now;  // seconds since 1970; the system's clock unless a test gives another
};

/// Says at once that a job starts. Rates are told of this job, and of all jobs since the first of an unbroken
/// row that had as many ranks, the time between them included.
std::unique_ptr<Sink> progress_sink(ProgressOptions options);

}  // namespace weft::report
