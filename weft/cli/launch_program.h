// What is launched: weft's own training under its names and Megatron's, or any other program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "weft/launch/options.h"

namespace weft::cli {

struct Program {
  bool trains = false;             // weft train
  std::vector<std::string> words;  // after weft itself where it trains: "train", "gpt", …
  std::filesystem::path save;      // where it saves; empty: it does not, or nobody knows
  int ranks = 1;                   // that its flags ask for, where nobody else does
  bool resumes = false;            // it loads from where it saves by itself
};

/// `train gpt …`, `pretrain_gpt.py …` (also bert, t5, hybrid and mamba), else a program and its words; what
/// ends in .py is run by python3, or PYTHON_EXEC. Reads training's flags, so that a mistake in them is said
/// once, before anything starts.
Program program_of(const launch::Options& options, const launch::Environment& environment);

/// Whether that is weft's own training: its verb, or one of Megatron's scripts under any path.
bool is_training(const std::string& program, bool python);

/// The newest complete step that it has saved; 0 for none, -1 where it does not save.
std::int64_t newest_step(const Program& program);

/// Its words for a start that goes on where `save` left off: --load SAVE in the place of what said what to
/// load.
std::vector<std::string> words_to_go_on(const Program& program);

}  // namespace weft::cli
