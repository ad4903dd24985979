// weft with the emulated GPU in it, a program of its own: ranks that are processes each have one of these.
// $EMULATED_GPUS says how many GPUs the machine has, and $EMULATED_CAPABILITY of which compute capability.
// Where there are several there is NCCL as $EMULATED_NCCL says: "here" among ranks of one process, or a
// folder in which those that are processes speak; without it there is none.
#include <runtime.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/support/gpu/emulated.h"
#include "tests/support/gpu/nccl_folder.h"
#include "weft/cli/verb.h"

namespace {

/// A GPU goes on while its host waits for other hosts, who wait for that GPU.
void keep_going(const std::stop_token& ended) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  while (
      !stopped.wait_for(lock, ended, std::chrono::microseconds(200), [&] { return ended.stop_requested(); }))
    emulated::go_on();
}

}  // namespace

int main(int count, char** words) {
  const char* gpus = std::getenv("EMULATED_GPUS");
  const char* capability = std::getenv("EMULATED_CAPABILITY");
  emulated::Cards cards{.count = gpus == nullptr ? 1 : std::atoi(gpus)};
  const char* nccl = std::getenv("EMULATED_NCCL");
  cards.nccl = cards.count == 1 || nccl != nullptr;
  if (capability != nullptr) cards.capability = std::atoi(capability);
  emulated::set_cards(cards);
  std::optional<std::jthread> going;
  if (nccl != nullptr && std::string_view(nccl) != "here") {
    emulated::share_nccl(nccl);
    emulated::set_patience(60);
    going.emplace(keep_going);
  }
  const std::vector<std::string_view> args(words + 1, words + count);
  const int status = weft::cli::run(weft::cli::verbs(), args);
  going.reset();
  const std::vector<std::string> found = emulated::take_reports();
  for (const std::string& one : found) std::cerr << "emulated: " << one << "\n";
  return found.empty() ? status : 99;
}
