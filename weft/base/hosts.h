// Hosts' names to addresses, while whoever asks goes on.
#pragma once

#include <sys/socket.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace weft::hosts {

struct Address {
  sockaddr_storage at{};  // without a port
  socklen_t size = 0;
};
/// In the order in which to try them; none: why.
struct Found {
  std::vector<Address> addresses;
  std::string why;
};

using NameService = std::function<Found(const std::string& host)>;
/// As long as the system takes: where no name server answers, for most of a minute.
Found ask_the_system(const std::string& host);
/// Of a host that is written as a number, "10.0.0.7" or "fd00::7"; none of a name.
Found numeric(const std::string& host);

/// One host's addresses: a number's at once, a name's from a thread of its own. Nobody waits for that: it
/// holds nothing of the asker's, and goes when the system has answered, even if the asker is gone.
class Lookup {
 public:
  Lookup(const std::string& host, const NameService& service);
  /// Null until it is known.
  const Found* found() const;
  /// Readable from when it is known on.
  int bell() const;

 private:
  struct Shared;
  void ask(const std::string& host, const NameService& service) const;
  std::shared_ptr<Shared> shared_;
};

/// All of one asker's: of a host one at a time, so that asking again and again makes no more threads.
class Lookups {
 public:
  explicit Lookups(NameService service = ask_the_system) : service_(std::move(service)) {}
  /// The one that goes on, or a new one.
  const Lookup& of(const std::string& host);
  /// What it has found; the next asks again.
  Found take(const std::string& host);

 private:
  NameService service_;
  std::map<std::string, Lookup> on_;
};

}  // namespace weft::hosts
