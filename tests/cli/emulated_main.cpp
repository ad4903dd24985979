// weft with the emulated GPU in it, a program of its own: ranks that are processes each have one of these.
// $EMULATED_GPUS says how many GPUs the machine has, and $EMULATED_CAPABILITY of which compute capability.
// Where there are several there is no NCCL, since the fake of it knows one process alone; who starts but one
// says $EMULATED_NCCL.
#include <runtime.h>

#include <cstdlib>
#include <iostream>
#include <string_view>
#include <vector>

#include "tests/support/gpu/emulated.h"
#include "weft/cli/verb.h"

int main(int count, char** words) {
  const char* gpus = std::getenv("EMULATED_GPUS");
  const char* capability = std::getenv("EMULATED_CAPABILITY");
  emulated::Cards cards{.count = gpus == nullptr ? 1 : std::atoi(gpus)};
  cards.nccl = cards.count == 1 || std::getenv("EMULATED_NCCL") != nullptr;
  if (capability != nullptr) cards.capability = std::atoi(capability);
  emulated::set_cards(cards);
  const std::vector<std::string_view> args(words + 1, words + count);
  const int status = weft::cli::run(weft::cli::verbs(), args);
  const std::vector<std::string> found = emulated::take_reports();
  for (const std::string& one : found) std::cerr << "emulated: " << one << "\n";
  return found.empty() ? status : 99;
}
