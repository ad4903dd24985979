// A coordinator under a clock of ours, and what it told whom.
#pragma once

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "weft/launch/coordinator.h"

namespace weft::launch::testing {

struct Meeting {
  explicit Meeting(Rules rules)
      : coordinator(
            std::move(rules), now, [this](int to, const Message& m) { told.emplace_back(to, m); },
            [this](const std::string& line) { said.push_back(line); }) {}

  void join(int id, int wanted = -1, int slots = 2) {
    coordinator.joined(id,
                       {.run_id = "none",
                        .host = "h" + std::to_string(id),
                        .address = "10.0.0." + std::to_string(id),
                        .wanted_rank = wanted,
                        .slots = slots},
                       now);
  }
  void fail(int id, double age = 0, End end = {.code = 0, .signal = SIGKILL}) {
    coordinator.heard(id, Failed{round(), {.rank = 10 * id, .end = end, .age = age}}, now);
  }
  void stopped(int id, std::int64_t progress = -1, int status = 137) {
    coordinator.heard(id, Stopped{round(), status, progress}, now);
  }
  void pass(double seconds) {
    now += seconds;
    coordinator.tick(now);
  }
  int round() const { return last<Begin>().round; }
  template <class M>
  std::vector<int> who() const {
    std::vector<int> out;
    for (const auto& [to, message] : told)
      if (std::holds_alternative<M>(message)) out.push_back(to);
    return out;
  }
  template <class M>
  M last() const {
    for (auto at = told.rbegin(); at != told.rend(); ++at)
      if (const M* found = std::get_if<M>(&at->second)) return *found;
    return {};
  }
  int code() const { return coordinator.verdict() ? coordinator.verdict()->code : -1; }

  double now = 100;
  std::vector<std::pair<int, Message>> told;
  std::vector<std::string> said;
  Coordinator coordinator;
};

}  // namespace weft::launch::testing
