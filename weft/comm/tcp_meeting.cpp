// Who connects says a greeting of fixed length; whoever says something else, or nothing, is let go.
#include "weft/comm/tcp_meeting.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <list>

#include "weft/base/clock.h"
#include "weft/base/error.h"
#include "weft/base/hash.h"

namespace weft {
namespace {

constexpr std::uint64_t magic = 0x7765'6674'0000'0001;  // with a version in its end
constexpr std::size_t most_guests = 4096;               // who have not said yet who they are

struct Greeting {
  std::uint64_t mark = magic, job = 0;
  std::int32_t rank = 0, port = 0;
};
/// Where a rank listens, as rank 0 saw it come.
struct Home {
  std::array<unsigned char, sizeof(sockaddr_in6)> address{};
  std::uint32_t size = 0;
};
struct Came {
  Descriptor socket;
  Greeting greeting;
};

int set(int fd, int level, int option, int value) {
  return setsockopt(fd, level, option, &value, sizeof value);
}

in_port_t& port_in(sockaddr_storage& at) {
  return at.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(at).sin_port
                                 : reinterpret_cast<sockaddr_in6&>(at).sin6_port;
}

void wait_for(int fd, short events, const Deadline& late) {
  pollfd one{.fd = fd, .events = events, .revents = 0};
  poll(&one, 1, int(std::min(1000.0, late.seconds_left() * 1000) + 1));
}

Descriptor listen_anywhere(int port) {
  Descriptor out(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int family = out ? AF_INET6 : AF_INET;
  if (!out) out = Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  set(out.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  set(out.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  sockaddr_in6 wide{};
  wide.sin6_family = AF_INET6;
  wide.sin6_port = htons(std::uint16_t(port));
  sockaddr_in old{};
  old.sin_family = AF_INET;
  old.sin_port = htons(std::uint16_t(port));
  const auto* at =
      family == AF_INET6 ? reinterpret_cast<const sockaddr*>(&wide) : reinterpret_cast<const sockaddr*>(&old);
  if (bind(out.get(), at, family == AF_INET6 ? sizeof wide : sizeof old) != 0 || listen(out.get(), 4096) != 0)
    fail(Kind::comm, "tcp: cannot listen at port ", port, ": ", std::strerror(errno));
  return out;
}

/// Tries until it stands: the other side, or its name, may come later.
Descriptor try_to_connect(const sockaddr* at, socklen_t size, const Deadline& late) {
  Descriptor out(socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int wrong = connect(out.get(), at, size) == 0 ? 0 : errno;
  if (wrong == EINPROGRESS) {
    wait_for(out.get(), POLLOUT, late);
    pollfd stands{.fd = out.get(), .events = POLLOUT, .revents = 0};
    if (poll(&stands, 1, 0) < 1) return {};
    socklen_t length = sizeof wrong;
    getsockopt(out.get(), SOL_SOCKET, SO_ERROR, &wrong, &length);
  }
  if (wrong == 0 && set(out.get(), IPPROTO_TCP, TCP_NODELAY, 1) == 0) return out;
  return {};
}

Descriptor connect_to(const sockaddr* at, socklen_t size, const Deadline& late) {
  while (!late.passed()) {
    if (Descriptor out = try_to_connect(at, size, late)) return out;
    poll(nullptr, 0, 20);
  }
  return {};
}

/// What is known of a host in time: a name server that does not answer may be silent for longer than that.
hosts::Found look_up(const std::string& host, const hosts::NameService& names, const Deadline& late) {
  const hosts::Lookup lookup(host, names);
  while (lookup.found() == nullptr && !late.passed()) wait_for(lookup.bell(), POLLIN, late);
  if (lookup.found() != nullptr) return *lookup.found();
  return {.addresses = {}, .why = text("host ", host, " is not known yet: no name server answers")};
}

/// Where nobody answers in time, `why` says what was last in the way, if it was the name.
Descriptor connect_to(const TcpSeat& seat, const hosts::NameService& names, const Deadline& late,
                      std::string& why) {
  while (!late.passed()) {
    hosts::Found found = look_up(seat.host, names, late);
    why = found.why;
    // A name may have addresses that lead nowhere from here, of IPv6 for one.
    for (hosts::Address& one : found.addresses) {
      port_in(one.at) = htons(std::uint16_t(seat.port));
      const Deadline soon(std::min(late.seconds_left(), &one != &found.addresses.back() ? 3.0 : 10.0));
      const auto* at = reinterpret_cast<const sockaddr*>(&one.at);
      if (Descriptor out = try_to_connect(at, one.size, soon)) return out;
    }
    poll(nullptr, 0, found.addresses.empty() ? 100 : 20);
  }
  return {};
}

/// All of it, in time; false: the other side is gone, or too late.
bool say(const Descriptor& to, const void* from, std::size_t bytes, const Deadline& late) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0 && !late.passed()) {
    const ssize_t done = send(to.get(), at, bytes, MSG_NOSIGNAL);
    if (done < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (done < 0) wait_for(to.get(), POLLOUT, late);
    if (done > 0) at += done, bytes -= std::size_t(done);
  }
  return bytes == 0;
}

bool hear(const Descriptor& from, void* to, std::size_t bytes, const Deadline& late) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0 && !late.passed()) {
    const ssize_t done = recv(from.get(), at, bytes, 0);
    if (done == 0 || (done < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (done < 0) wait_for(from.get(), POLLIN, late);
    if (done > 0) at += done, bytes -= std::size_t(done);
  }
  return bytes == 0;
}

/// Who has connected and not said all of a greeting yet.
struct Guest {
  Descriptor socket;
  std::array<char, sizeof(Greeting)> bytes{};
  std::size_t got = 0;
  bool gone = false;
};

void listen_to(Guest& guest) {
  const ssize_t done =
      recv(guest.socket.get(), guest.bytes.data() + guest.got, guest.bytes.size() - guest.got, 0);
  if (done > 0) guest.got += std::size_t(done);
  guest.gone = done == 0 || (done < 0 && errno != EAGAIN && errno != EINTR);
}

/// Ranks from `first` on, each once, at a listening socket. A rank that comes twice is a stranger the second
/// time.
class Gathering {
 public:
  Gathering(int listener, const TcpSeat& seat, std::uint64_t job, int first)
      : listener_(listener), seat_(seat), job_(job), first_(first), came_(std::size_t(seat.world)) {}

  std::vector<Came> all(const Deadline& late) {
    missing_ = seat_.world - first_;
    while (missing_ > 0) {
      if (late.passed()) fail_for_missing();
      round(late);
    }
    return std::move(came_);
  }

 private:
  void round(const Deadline& late) {
    std::vector<pollfd> asked{{.fd = listener_, .events = POLLIN, .revents = 0}};
    for (const Guest& guest : guests_)
      asked.push_back({.fd = guest.socket.get(), .events = POLLIN, .revents = 0});
    poll(asked.data(), asked.size(), int(std::min(1000.0, late.seconds_left() * 1000) + 1));
    std::size_t at = 1;
    for (Guest& guest : guests_)
      if (asked[at++].revents != 0) listen_to(guest);
    for (Guest& guest : guests_)
      if (guest.got == guest.bytes.size()) take(guest);
    guests_.remove_if([](const Guest& guest) { return guest.gone || !guest.socket; });
    if (asked[0].revents == 0) return;
    Guest fresh{.socket = Descriptor(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK))};
    if (fresh.socket && guests_.size() < most_guests) guests_.push_back(std::move(fresh));
  }
  void take(Guest& guest) {
    Greeting said;
    std::memcpy(&said, guest.bytes.data(), sizeof said);
    guest.gone = true;
    const bool ours =
        said.mark == magic && said.job == job_ && said.rank >= first_ && said.rank < seat_.world;
    if (!ours || came_[std::size_t(said.rank)].socket) return;
    set(guest.socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);
    came_[std::size_t(said.rank)] = {std::move(guest.socket), said};
    --missing_;
  }
  [[noreturn]] void fail_for_missing() const {
    std::string who;
    for (int r = first_; r < seat_.world; ++r)
      if (!came_[std::size_t(r)].socket) who += text(who.empty() ? "" : ", ", r);
    fail(Kind::comm, "tcp: rank ", seat_.rank, " waited ", seat_.patience, " s for ranks ", who, " of ",
         seat_.world, "; are they started, and do they reach ", seat_.host, " port ", seat_.port);
  }

  int listener_;
  const TcpSeat& seat_;
  std::uint64_t job_;
  int first_, missing_ = 0;
  std::vector<Came> came_;
  std::list<Guest> guests_;
};

Home home_of(const Came& came) {
  sockaddr_storage seen{};
  socklen_t size = sizeof seen;
  getpeername(came.socket.get(), reinterpret_cast<sockaddr*>(&seen), &size);
  port_in(seen) = htons(std::uint16_t(came.greeting.port));
  Home out{.address = {}, .size = std::uint32_t(std::min<std::size_t>(size, sizeof(sockaddr_in6)))};
  std::memcpy(out.address.data(), &seen, out.size);
  return out;
}

std::vector<Descriptor> receive_all(const TcpSeat& seat, std::uint64_t job, const Deadline& late) {
  const Descriptor own = seat.listener < 0 ? listen_anywhere(seat.port) : Descriptor();
  std::vector<Came> came = Gathering(own ? own.get() : seat.listener, seat, job, 1).all(late);
  std::vector<Home> homes(std::size_t(seat.world));
  std::vector<Descriptor> out;
  for (std::size_t r = 1; r < came.size(); ++r) homes[r] = home_of(came[r]);
  for (Came& one : came) {
    if (one.socket) static_cast<void>(say(one.socket, homes.data(), homes.size() * sizeof(Home), late));
    out.push_back(std::move(one.socket));
  }
  return out;
}

bool is_loopback(const sockaddr_storage& at) {
  if (at.ss_family == AF_INET)
    return (ntohl(reinterpret_cast<const sockaddr_in&>(at).sin_addr.s_addr) >> 24U) == 127;
  const in6_addr& wide = reinterpret_cast<const sockaddr_in6&>(at).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&wide) || (IN6_IS_ADDR_V4MAPPED(&wide) && wide.s6_addr[12] == 127);
}

/// Who came to rank 0 from its own machine by a name of that machine alone is seen at a loopback address,
/// where others would find themselves: what is meant is the machine of rank 0, as they reach it.
sockaddr_storage place_of(const Home& home, const Descriptor& rank_0) {
  sockaddr_storage at{}, there{};
  std::memcpy(&at, home.address.data(), std::min<std::size_t>(home.size, home.address.size()));
  socklen_t size = sizeof there;
  getpeername(rank_0.get(), reinterpret_cast<sockaddr*>(&there), &size);
  if (!is_loopback(at) || is_loopback(there)) return at;
  port_in(there) = port_in(at);
  return there;
}

std::vector<Descriptor> join(const TcpSeat& seat, std::uint64_t job, const hosts::NameService& names,
                             const Deadline& late) {
  const Descriptor listener = listen_anywhere(0);
  const Greeting greeting{.job = job, .rank = seat.rank, .port = port_of(listener)};
  std::string why;
  Descriptor first = connect_to(seat, names, late, why);
  std::vector<Home> homes(std::size_t(seat.world));
  if (!first || !say(first, &greeting, sizeof greeting, late) ||
      !hear(first, homes.data(), homes.size() * sizeof(Home), late))
    fail(Kind::comm, "tcp: rank ", seat.rank, " of ", seat.world, " finds no rank 0 at ", seat.host, " port ",
         seat.port, late.passed() ? " in time" : ", or it was refused there", why.empty() ? "" : ": ", why);
  std::vector<Descriptor> out(std::size_t(seat.world));
  out[0] = std::move(first);
  for (int r = 1; r < seat.rank; ++r) {
    const sockaddr_storage at = place_of(homes[std::size_t(r)], out[0]);
    Descriptor& to = out[std::size_t(r)];
    to = connect_to(reinterpret_cast<const sockaddr*>(&at),
                    at.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6), late);
    if (!to || !say(to, &greeting, sizeof greeting, late))
      fail(Kind::comm, "tcp: rank ", seat.rank, " does not reach rank ", r);
  }
  std::vector<Came> came = Gathering(listener.get(), seat, job, seat.rank + 1).all(late);
  for (std::size_t r = std::size_t(seat.rank) + 1; r < out.size(); ++r) out[r] = std::move(came[r].socket);
  return out;
}

}  // namespace

std::vector<Descriptor> meet(const TcpSeat& seat, const hosts::NameService& names) {
  const Deadline late(seat.patience);
  const std::uint64_t job = hash(text(seat.job, "\n", seat.world)).low;
  return seat.rank == 0 ? receive_all(seat, job, late) : join(seat, job, names, late);
}

}  // namespace weft
