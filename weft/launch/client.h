// An agent's side of the rendezvous: finds the coordinator, keeps in touch, comes back.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/launch/socket.h"
#include "weft/launch/wire.h"

namespace weft::launch {

/// Tries to connect until `patience.join` has passed, because the other end or its name may come later. Both
/// sides beat; a coordinator that is silent for as long as a node may be is lost. What is told meanwhile is
/// told when it is back, after a new Join: nothing, that is, as a new coordinator knows of no round.
class Client {
 public:
  struct Events {
    std::function<void(const Message&)> heard;
    std::function<void(const std::string& why)> cut_off;   // it stood, and tries again from here on
    std::function<void(const std::string& why)> given_up;  // once
    /// Where to try now, if there are several places.
    std::function<Endpoint()> next = {};
    /// Seconds to wait before another coordinator is joined than the one that was lost.
    std::function<double()> lease = {};
    /// Who knows names; asked on threads of its own.
    hosts::NameService names = hosts::ask_the_system;
  };
  Client(Loop& loop, Endpoint endpoint, Join join, const Patience& patience, Events events);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  void tell(const Message& message);
  /// No longer beats, connects or hears.
  void close();

 private:
  void connect();
  void reach();
  void too_late();
  void connected();
  void failed(const std::string& why);
  void lost(const std::string& why);
  void beat();
  Loop& loop_;
  Endpoint endpoint_;
  Join join_;
  Patience patience_;
  Events events_;
  void listen_to(const Message& message);
  hosts::Lookups lookups_;
  Descriptor connecting_;
  std::unique_ptr<Wire> wire_;
  std::uint64_t retry_ = 0, beat_ = 0, hurry_ = 0;
  Loop::Clock::time_point give_up_at_, last_beat_;
  int silent_beats_ = 0, turn_ = 0, bell_ = -1;  // bell_: of a lookup that is waited for
  double wait_ = 0.02;
  bool begun_ = false, resigned_ = false;  // it: the coordinator that we joined
};

}  // namespace weft::launch
