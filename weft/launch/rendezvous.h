// An agent's part in meeting the others, at one place or at several.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/launch/client.h"
#include "weft/launch/door.h"
#include "weft/launch/server.h"

namespace weft::launch {

/// At one place: the agent that wants rank 0 coordinates there, or, where no rank is wanted, the one whose
/// address it is. Of several places each is an agent's own, the n-th that of the agent that wants rank n,
/// else of one whose address it is. All try them in turn; who comes to its own coordinates, if most of the
/// others join it soon, and else tries on.
class Rendezvous {
 public:
  struct Events {
    std::function<void(const Message&)> heard;
    std::function<void(const std::string& why)> cut_off;
    std::function<void(const std::string& why)> given_up;
    Coordinator::Say say;  // of the job, where we coordinate
  };
  struct Terms {
    const Rules& rules;
    const Join& self;
    hosts::NameService names = hosts::ask_the_system;
  };
  Rendezvous(Loop& loop, const Terms& terms, std::vector<Endpoint> places, Events events);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  void tell(const Message& message) {
    if (client_) client_->tell(message);
  }
  bool coordinates() const { return server_.has_value(); }
  bool one_place() const { return places_.size() == 1; }
  /// What a person reads of the verdict, where it is ours.
  std::string report() const;
  /// Hears nothing more; calls `act` once the others have heard a verdict that is ours to tell, or have had
  /// `seconds` for it.
  void end(double seconds, std::function<void()> act);

 private:
  void wait_for_names();
  void meet();
  Descriptor listen(std::size_t place, Bind how);
  void serve(Descriptor listener);
  void meet_at_one();
  void meet_at_any();
  Client::Events client_events();
  void turn_away(Descriptor guest);
  void shut_door();
  const Endpoint& next_place();
  void coordinate();
  void look_for_quorum();
  void resign();

  Loop& loop_;
  Rules rules_;
  Join self_;
  std::vector<Endpoint> places_;
  Events events_;
  hosts::NameService names_;
  std::map<std::size_t, hosts::Lookup> lookups_;  // of places that may be ours, until we meet
  std::uint64_t late_ = 0;
  int bell_ = -1;  // of the one that is waited for
  std::optional<Server> server_;
  std::optional<Client> client_;
  Descriptor ours_;                 // the listener of our own place, of several
  std::optional<Door> shut_;        // at it, while we do not coordinate
  int mine_ = -1, at_ = -1;         // our own place, and the one that was tried last
  Loop::Clock::time_point quorum_;  // when we last had one
  std::uint64_t look_ = 0, leave_ = 0;
  bool answered_ = false;        // where we are
  bool somebody_works_ = false;  // of those whom we coordinated
  bool ended_ = false;
};

}  // namespace weft::launch
