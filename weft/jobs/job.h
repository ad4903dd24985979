// A job file of kind DeepSpeedJob, as T9k's clusters take them, and what of it weft runs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/tree.h"

namespace weft::jobs {

struct Elastic {
  int least = 1, most = 1;
};

struct Debug {
  std::vector<std::string> command;  // instead of the job's
  bool skips_init = false;           // its init containers are left out
};

struct Job {
  std::string name = "weft", space;  // space: the namespace; empty: the one that kubectl is set to
  Tree labels, annotations;
  int nodes = 1, slots = 1;        // slots: ranks a node
  std::vector<std::string> words;  // the program and its own words: pretrain_gpt.py --num-layers=12 …
  bool python = true;              // the program is Python's, unless it is one of weft's names
  std::string restarts;            // Never or OnFailure; empty: Never
  std::optional<int> backoff;
  std::optional<Elastic> elastic;
  std::optional<Debug> debug;
  std::string queue;
  std::optional<int> priority;
  Tree pod;                          // metadata and spec of the workers' template, carried over as they are
  std::vector<std::string> notices;  // what has no effect here, to be said once
};

/// Fails with Kind::usage for what cannot be carried over and for unknown keys, each by its path in the file.
Job job_of(const Tree& file, const std::string& who);
Job read_job(std::string_view yaml, const std::string& who);

/// Letters, digits and dashes, as names of services must be. Fails with Kind::usage.
void must_be_a_name(std::string_view who, std::string_view name);

}  // namespace weft::jobs
