// The coordinator's door: agents come and go over TCP, and whoever else knocks changes nothing.
#pragma once

#include <memory>
#include <unordered_map>

#include "weft/launch/coordinator.h"
#include "weft/launch/door.h"
#include "weft/launch/socket.h"
#include "weft/launch/wire.h"

namespace weft::launch {

/// A connection that has not joined within `join_patience` is closed; it may send no frame of more than 16
/// KiB. Connections beyond twice the nodes and 4096 wait in the kernel.
class Server {
 public:
  struct Options {
    double join_patience = 10;
  };
  Server(Loop& loop, Descriptor listener, const Rules& rules, Options options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const { return port_of(listener_); }
  const Coordinator& coordinator() const { return coordinator_; }
  /// What it says while the job goes on.
  void on_say(Coordinator::Say say) { say_ = std::move(say); }
  /// Tells all that nobody is counted any more.
  void resign();
  /// Called once, after everybody was told the verdict or `seconds` have passed.
  void when_over(double seconds, std::function<void()> act);
  std::size_t connections() const { return guests_.size(); }
  std::size_t bytes_held() const;

 private:
  struct Guest {
    std::unique_ptr<Wire> wire;
    bool joined = false, refused = false;
    std::uint64_t patience = 0;
  };
  void take_in(Descriptor socket);
  void send(int id, const Message& message);
  void heard(int id, const Message& message);
  void drop(int id, const std::string& why);
  void beat();
  void tick();
  void check_over();
  double now() const;

  Loop& loop_;
  Descriptor listener_;
  Options options_;
  double beat_seconds_;
  Coordinator::Say say_;
  std::unordered_map<int, Guest> guests_;  // looked up, never walked where order shows
  int next_ = 1, joined_ = 0;
  Coordinator coordinator_;
  std::uint64_t tick_ = 0, beat_ = 0, over_ = 0;
  std::function<void()> when_over_;
  Door door_;
};

}  // namespace weft::launch
