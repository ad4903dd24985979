// Another program's answer.
#pragma once

#include <string>
#include <vector>

namespace weft::cli {

struct Answer {
  std::string out, err;
  int status = 0;        // as shells say it: 128 + signal
  bool missing = false;  // there is no such program
};

/// Runs it, found along PATH, with nothing to read; no shell sees the words.
Answer ask(const std::string& program, const std::vector<std::string>& words);
/// The same, with our own output; its status, or a usage error where there is no such program.
int run_program(const std::string& program, const std::vector<std::string>& words);

}  // namespace weft::cli
