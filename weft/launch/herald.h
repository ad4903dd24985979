// A rank's side of being watched from another machine: tells the launcher now and then what its board says.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "weft/base/descriptor.h"
#include "weft/base/hosts.h"
#include "weft/base/pulse.h"
#include "weft/launch/message.h"

namespace weft::launch {

/// Where a launcher hears its ranks: "0.5@10.0.0.7,127.0.0.1:4711/token/round".
struct Watcher {
  double period = 1;  // seconds
  std::vector<std::string> hosts;
  int port = 0;
  std::string token;
  int round = 0;
  bool operator==(const Watcher&) const = default;
};
std::string to_word(const Watcher& watcher);
/// Fails with Kind::usage on anything else.
Watcher read_watcher(std::string_view word);

/// Tells on a thread of its own, and connects again where a connection breaks; a launcher that cannot be
/// reached costs nothing but its reports, as behind a firewall. But one that was reached and then is not for
/// long is gone, or this machine is cut off: nobody else would end this rank. Says goodbye when it goes, and
/// waits for nobody then.
class Herald {
 public:
  struct Loss {
    double after = 60;               // seconds
    std::function<void()> act = {};  // on the herald's thread, once
  };
  /// The board outlives it; the round is the watcher's.
  Herald(Watcher watcher, Whereabouts self, const PulseBoard& board, Loss loss,
         hosts::NameService names = hosts::ask_the_system);
  ~Herald();
  Herald(const Herald&) = delete;
  Herald& operator=(const Herald&) = delete;

 private:
  void work();
  bool connect();
  bool greet(const std::string& host);
  bool tell() const;
  bool send(const std::string& frame) const;
  /// Whether the launcher was reached, and now is not for too long.
  bool lost(bool connected);
  /// Both false when it is time to go.
  bool sleep(double seconds) const;
  bool ready(int descriptor, short events) const;
  Watcher watcher_;
  Whereabouts self_;
  const PulseBoard& board_;
  Loss loss_;
  hosts::Lookups lookups_;
  Descriptor socket_;
  double reached_ = 0, looked_ = 0;  // when; 0: never
  Descriptor goes_;                  // readable when it is time to go
  std::thread thread_;
};

}  // namespace weft::launch
