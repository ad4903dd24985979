// Processes that another launcher starts for us: mpirun's and srun's words, and what mpirun says when a rank
// fails.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "weft/launch/hostfile.h"
#include "weft/launch/options.h"
#include "weft/launch/process.h"

namespace weft::launch {

struct Processes {
  int count = 1;
  std::filesystem::path hostfile;  // empty: this machine, or the allocation
  std::vector<Host> hosts = {};  // srun's, which has no hostfile; each with as many slots; empty: its choice
  std::filesystem::path folder;  // of per-rank logs; empty: none
  bool console = true;           // what is logged also goes on
  bool prefixed = false;         // Open MPI's [job,rank] before lines
  bool as_root = false;
  bool trains = false;  // ranks of ours: once one is gone, the others have nothing to save
};

/// mpirun … program: ranks are not bound unless --launcher-args say so, and may outnumber processors.
std::vector<std::string> mpirun_words(const Processes& processes, const Options& options,
                                      const Environment& environment);
/// srun … program: as many tasks, where one that fails ends all.
std::vector<std::string> srun_words(const Processes& processes, const Options& options);

/// Which rank failed first and how, from what came out of mpirun or srun; `words` is what came before they
/// spoke.
struct Said {
  int rank = -1;  // they did not say
  End end;        // of that rank, where they said it: else good
  std::string words;
  std::string host;          // that rank's, where they said it
  std::int64_t process = 0;  // the same
};
Said read_mpirun(std::string_view said);
Said read_srun(std::string_view said);

/// What a rank wrote last to its own file in the folder of an attempt, mpirun's or srun's; "" where there is
/// none.
std::string last_of_rank(const std::filesystem::path& attempt, int rank);

}  // namespace weft::launch
