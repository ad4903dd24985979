// weft with the emulated GPU in it, a program of its own: ranks that are processes each have one of these.
// $EMULATED_GPUS says how many GPUs the machine has. Where there are several there is no NCCL, since the fake
// of it knows one process alone.
#include <runtime.h>

#include <cstdlib>
#include <iostream>
#include <string_view>
#include <vector>

#include "tests/support/gpu/emulated.h"
#include "weft/cli/verb.h"

int main(int count, char** words) {
  const char* gpus = std::getenv("EMULATED_GPUS");
  const int here = gpus == nullptr ? 1 : std::atoi(gpus);
  emulated::set_cards({.count = here, .nccl = here == 1});
  const std::vector<std::string_view> args(words + 1, words + count);
  const int status = weft::cli::run(weft::cli::verbs(), args);
  const std::vector<std::string> found = emulated::take_reports();
  for (const std::string& one : found) std::cerr << "emulated: " << one << "\n";
  return found.empty() ? status : 99;
}
