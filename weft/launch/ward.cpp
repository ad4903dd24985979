#include "weft/launch/ward.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>

#include "weft/base/error.h"

namespace weft::launch {
namespace {

constexpr std::size_t largest_frame = 16 << 10, most_guests = 1 << 17, longest_name = 255;
constexpr int most_ranks = 1 << 20;
constexpr double join_patience = 10, longest_age = 1e7;

/// It came over a wire, and others index and print it.
bool makes_sense(const Vital& v) {
  const PulseReading& r = v.reading;
  const bool numbers = v.age >= 0 && v.age <= longest_age && std::isfinite(r.longest_step) &&
                       std::isfinite(r.worked) && std::isfinite(r.longest_here);
  return numbers && r.rank >= 0 && r.rank < most_ranks && r.section <= Section::ending &&
         r.word <= Spoken::recv && r.circle >= -1 && r.circle < int(r.circles.size());
}

/// Its machine's kernel is asked after 4 s without a word and then every 2 s; the connection breaks when it
/// has not answered three times, 10 s after the last word.
void ask_whether_it_is_there(const Descriptor& socket) {
  const auto set = [&](int level, int option, int value) {
    setsockopt(socket.get(), level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 4);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

/// What a connection breaks with whose other end answers nothing.
bool says_nobody_answers(int error) {
  return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
}

/// An address of IPv6 that holds on one link alone names that link by a number of this machine's.
bool leaves_the_link(const sockaddr& address) {
  if (address.sa_family != AF_INET6) return address.sa_family == AF_INET;
  return !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

}  // namespace

Ward::Ward(Loop& loop, int listener, std::string token)
    : loop_(loop),
      token_(std::move(token)),
      door_(
          loop_, listener, [this](Descriptor socket) { take_in(std::move(socket)); },
          [this] { return guests_.size() < most_guests; }) {}

Ward::~Ward() {
  for (auto& [id, guest] : guests_) loop_.cancel(guest.patience);
}

void Ward::take_in(Descriptor socket) {
  const int id = next_++;
  Guest& guest = guests_[id];
  ask_whether_it_is_there(socket);
  guest.wire =
      std::make_unique<Wire>(loop_, std::move(socket), largest_frame,
                             Wire::Events{.heard = [this, id](const Message& m) { heard(id, m); },
                                          .broken = [this, id](const std::string&) { drop(id, false); }});
  guest.patience = loop_.after(join_patience, [this, id] { drop(id, false); });
}

void Ward::heard(int id, const Message& message) {
  Guest& guest = guests_.at(id);
  const auto* join = std::get_if<Join>(&message);
  if (join != nullptr && join->run_id == token_) {
    guest.known = true;
    loop_.cancel(guest.patience);
    return guest.wire->send(Beat{});
  }
  if (!guest.known) fail(Kind::comm, "launch: a stranger");
  if (const auto* vital = std::get_if<Vital>(&message); vital != nullptr && makes_sense(*vital))
    note(id, *vital);
  if (const auto* here = std::get_if<Whereabouts>(&message);
      here != nullptr && here->rank >= 0 && here->rank < most_ranks && here->host.size() <= longest_name)
    places_[here->rank] = *here;
  if (std::holds_alternative<Leaving>(message)) drop(id, true);
}

void Ward::note(int id, const Vital& vital) {
  RankReading& seen = seen_[vital.reading.rank];
  seen = {.reading = vital.reading, .round = vital.round, .by = id, .heard = seconds_now()};
  seen.reading.beat = seen.heard - vital.age;
}

void Ward::drop(int id, bool in_order) {
  const auto guest = guests_.find(id);
  if (guest == guests_.end()) return;
  loop_.cancel(guest->second.patience);
  const bool unanswered = says_nobody_answers(guest->second.wire->error());
  guests_.erase(guest);
  for (auto at = seen_.begin(); at != seen_.end();) {
    if (at->second.by == id) at->second.cut_off = true;
    if (at->second.by == id) at->second.unanswered = unanswered;
    at = at->second.by == id && in_order ? seen_.erase(at) : std::next(at);
  }
}

std::vector<PulseReading> Ward::read(int round, double now) const {
  std::vector<PulseReading> out;
  for (const auto& [rank, seen] : seen_) {
    if (seen.round != round) continue;
    out.push_back(seen.reading);
    if (seen.cut_off) out.back().beat = now;
  }
  return out;
}

std::vector<Ward::Unanswered> Ward::unanswered(int round, double now) const {
  std::vector<Unanswered> out;
  for (const auto& [rank, seen] : seen_)
    if (seen.round == round && seen.unanswered) out.push_back({rank, now - seen.heard});
  return out;
}

const Whereabouts* Ward::where(int round, int rank) const {
  const auto found = places_.find(rank);
  return found == places_.end() || found->second.round != round ? nullptr : &found->second;
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> out, of_six;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {"127.0.0.1"};
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    const bool up = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
    if (!up || one->ifa_addr == nullptr || !leaves_the_link(*one->ifa_addr)) continue;
    const bool six = one->ifa_addr->sa_family == AF_INET6;
    std::array<char, NI_MAXHOST> name{};
    if (getnameinfo(one->ifa_addr, six ? sizeof(sockaddr_in6) : sizeof(sockaddr_in), name.data(), name.size(),
                    nullptr, 0, NI_NUMERICHOST) == 0)
      (six ? of_six : out).emplace_back(name.data());
  }
  freeifaddrs(all);
  out.insert(out.end(), of_six.begin(), of_six.end());
  out.emplace_back("127.0.0.1");
  return out;
}

std::string new_token() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != ssize_t(bytes.size()))
    fail(Kind::device, "launch: the system gives no random bytes");
  std::string out;
  for (const unsigned byte : bytes) {
    out += "0123456789abcdef"[byte >> 4U];
    out += "0123456789abcdef"[byte & 15U];
  }
  return out;
}

}  // namespace weft::launch
