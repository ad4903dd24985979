// bench_rendezvous [AGENTS...]: how long simulated agents on loopback take to meet, to stop and to meet
// again, and what the coordinator's process keeps for them. The coordinator is one process, all agents are
// another.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "weft/base/clock.h"
#include "weft/launch/client.h"
#include "weft/launch/server.h"

using namespace weft;
using namespace weft::launch;

namespace {

long resident_kib() {
  std::ifstream in("/proc/self/statm");
  long pages = 0, resident = 0;
  in >> pages >> resident;
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

[[noreturn]] void serve(int agents, int tell) {
  raise_descriptor_limit();
  Loop loop;
  const Rules rules{.nodes = {agents, agents}, .patience = {}, .max_restarts = 1};
  const long before = resident_kib();
  Server server(loop, listen_at({.host = "0.0.0.0", .port = 0}, Bind::here), rules, {});
  const int port = server.port();
  if (write(tell, &port, sizeof port) < 0) _exit(1);
  std::function<void()> look = [&] {
    if (server.coordinator().verdict()) {
      std::printf("  coordinator: %ld KiB resident more than before, %zu KiB in connections\n",
                  resident_kib() - before, server.bytes_held() >> 10);
      std::fflush(stdout);
      server.when_over(5, [&] { loop.stop(); });
      return;
    }
    loop.after(0.05, look);
  };
  look();
  loop.run();
  _exit(0);
}

/// Joined, begun; then one fails, all stop, begin again, and are done.
struct Crowd {
  Loop loop;
  int agents = 0, begun = 0, finished = 0;
  Stopwatch watch;
  std::vector<std::unique_ptr<Client>> clients;
  void heard(std::size_t i, const Message& m) {
    if (const auto* begin = std::get_if<Begin>(&m)) {
      if (++begun % agents != 0) return;
      std::printf("%6d agents %s in %.3f s\n", agents, begun == agents ? "met" : "met again",
                  watch.restart());
      if (begin->round == 1) return clients[i]->tell(Failed{1, {.rank = 0, .end = {1, 0}}});
      for (auto& client : clients) client->tell(Done{.round = 2, .status = 0});
    }
    if (std::holds_alternative<Stop>(m)) clients[i]->tell(Stopped{.round = 1, .status = 1, .progress = -1});
    if (std::holds_alternative<Finish>(m) && ++finished == agents) loop.stop();
  }
};

/// Agents have addresses of their own. Here they dial several of one machine, so that the kernel, which takes
/// a free port for each connection to one address, does not search among thousands that are taken.
std::string address_of_agent(int i) { return "127.0.0." + std::to_string(1 + i % 16); }

void meet(int agents) {
  int ends[2];
  if (pipe(ends) != 0) std::exit(1);
  std::fflush(stdout);  // or both would print it
  const pid_t child = fork();
  if (child == 0) serve(agents, ends[1]);
  int port = 0;
  if (read(ends[0], &port, sizeof port) < 0) std::exit(1);
  raise_descriptor_limit();
  Crowd crowd;
  crowd.agents = agents;
  for (int i = 0; i < agents; ++i)
    crowd.clients.push_back(std::make_unique<Client>(
        crowd.loop, Endpoint{address_of_agent(i), port},
        Join{.run_id = "none", .host = "h", .wanted_rank = i, .slots = 8}, Patience{},
        Client::Events{.heard = [&crowd, at = std::size_t(i)](const Message& m) { crowd.heard(at, m); },
                       .cut_off = [](const std::string& why) { std::printf("cut off: %s\n", why.c_str()); },
                       .given_up = [](const std::string& why) { std::printf("%s\n", why.c_str()); }}));
  crowd.watch.restart();
  crowd.loop.run();
  crowd.clients.clear();
  waitpid(child, nullptr, 0);
}

}  // namespace

int main(int count, char** words) {
  std::vector<int> sizes;
  for (int i = 1; i < count; ++i) sizes.push_back(std::atoi(words[i]));
  if (sizes.empty()) sizes = {1024, 16384};
  for (const int agents : sizes) meet(agents);
}
