// Wires one agent to one coordinator through the loop.
#include "weft/launch/supervise.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "weft/launch/signals.h"
#include "weft/launch/socket.h"

namespace weft::launch {
namespace {

class Alone {
 public:
  explicit Alone(const NodeJob& job)
      : out_(loop_, STDOUT_FILENO),
        err_(loop_, STDERR_FILENO),
        coordinator_(
            job.rules, seconds_now(), [this](int, const Message& m) { to_agent(m); },
            [this](const std::string& line) { err_.write(line + "\n"); }),
        agent_(job.work, {.loop = loop_,
                          .consoles = {out_, err_},
                          .tell = [this](const Message& m) { to_coordinator(m); },
                          .finish = [this](int code, const std::string& report) { finish(code, report); }}),
        signals_(loop_, heard_signals(job.signals), [this, &job](int number) { signaled(number, job); }) {
    adopt_orphans();
    raise_descriptor_limit();
    loop_.after(0, [this, &job] { coordinator_.joined(0, job.self, seconds_now()); });
    tick();
  }

  int run() {
    loop_.run();
    wind_up(agent_, {out_, err_});
    return code_;
  }

 private:
  // Neither may call the other while it speaks, so words go through the loop.
  void to_agent(const Message& message) {
    loop_.after(0, [this, message] { agent_.heard(message); });
  }
  void to_coordinator(const Message& message) {
    loop_.after(0, [this, message] {
      coordinator_.heard(0, message, seconds_now());
      tick();  // it may have made something due sooner
    });
  }
  void signaled(int number, const NodeJob& job) {
    if (number == SIGCHLD) return reap_adopted(agent_.processes(), false);
    const bool ends = std::find(job.signals.begin(), job.signals.end(), number) != job.signals.end();
    ends ? agent_.leave(number) : agent_.forward(number);
  }
  // The only member cannot be silent; it is ticked for what its workers owe.
  void tick() {
    coordinator_.heard(0, Beat{}, seconds_now());
    if (coordinator_.next() <= seconds_now()) coordinator_.tick(seconds_now());
    loop_.cancel(tick_);
    if (coordinator_.verdict()) return;
    tick_ = loop_.after(std::max(0.0, coordinator_.next() - seconds_now()), [this] { tick(); });
  }
  void finish(int code, const std::string&) {
    if (coordinator_.verdict()) err_.write(coordinator_.verdict()->report);
    code_ = code;
    loop_.stop();
  }

  Loop loop_;
  Console out_, err_;
  Coordinator coordinator_;
  Agent agent_;
  Signals signals_;
  std::uint64_t tick_ = 0;
  int code_ = 1;
};

}  // namespace

int supervise(const NodeJob& job) { return Alone(job).run(); }

}  // namespace weft::launch
