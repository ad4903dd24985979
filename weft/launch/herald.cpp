// Sockets that do not block, each waited for with a limit: a network that is gone must not hold a rank's end
// up.
#include "weft/launch/herald.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/launch/environment.h"
#include "weft/launch/socket.h"

namespace weft::launch {
namespace {

constexpr int patience = 3000;  // milliseconds to connect, to be answered, or to send
constexpr double pause_at_first = 0.2, longest_pause = 5;

/// Seconds since the other machine's kernel has last heard us, whatever the program there does.
double unheard(const Descriptor& socket) {
  tcp_info about{};
  socklen_t size = sizeof about;
  if (getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &about, &size) != 0) return 0;
  return about.tcpi_last_ack_recv / 1e3;
}

Descriptor new_bell() {
  Descriptor out(eventfd(0, EFD_CLOEXEC));
  if (!out) fail(Kind::device, "launch: no descriptor for what tells the launcher: ", std::strerror(errno));
  return out;
}

[[noreturn]] void no_watcher(std::string_view word) {
  fail(Kind::usage, "environment: WEFT_WATCHER: '", word,
       "' is not PERIOD@HOST,…:PORT/TOKEN/ROUND, as weft launch sets it");
}

double period_in(std::string_view word, std::string_view whole) {
  double out = 0;
  const auto [stop, wrong] = std::from_chars(word.data(), word.data() + word.size(), out);
  if (wrong != std::errc{} || stop != word.data() + word.size() || !(out >= 0.01) || !(out <= 60))
    no_watcher(whole);
  return out;
}

}  // namespace

std::string to_word(const Watcher& w) {
  return text(w.period, "@", join(w.hosts, ","), ":", w.port, "/", w.token, "/", w.round);
}

Watcher read_watcher(std::string_view word) {
  const auto at = word.find('@'), slash = word.find('/');
  if (at == word.npos || slash == word.npos || slash < at) no_watcher(word);
  const std::string_view place = word.substr(at + 1, slash - at - 1), rest = word.substr(slash + 1);
  const auto colon = place.rfind(':'), second = rest.find('/');
  if (colon == place.npos || second == rest.npos) no_watcher(word);
  Watcher out{.period = period_in(word.substr(0, at), word), .token = std::string(rest.substr(0, second))};
  for (const std::string_view host : split(place.substr(0, colon), ','))
    if (!host.empty()) out.hosts.emplace_back(host);
  out.port = whole_number("environment: WEFT_WATCHER", place.substr(colon + 1), 1);
  out.round = whole_number("environment: WEFT_WATCHER", rest.substr(second + 1), 0);
  if (out.hosts.empty() || out.port > 65535) no_watcher(word);
  return out;
}

Herald::Herald(Watcher watcher, Whereabouts self, const PulseBoard& board, Loss loss,
               hosts::NameService names)
    : watcher_(std::move(watcher)),
      self_(std::move(self)),
      board_(board),
      loss_(std::move(loss)),
      lookups_(std::move(names)),
      goes_(new_bell()),
      thread_([this] { work(); }) {}

Herald::~Herald() {
  eventfd_write(goes_.get(), 1);
  thread_.join();
}

bool Herald::sleep(double seconds) const {
  pollfd bell{.fd = goes_.get(), .events = POLLIN, .revents = 0};
  return poll(&bell, 1, int(std::ceil(1e3 * seconds))) != 1;
}

bool Herald::ready(int descriptor, short events) const {
  std::array<pollfd, 2> both{{{descriptor, events, 0}, {goes_.get(), POLLIN, 0}}};
  return poll(both.data(), both.size(), patience) > 0 && both[0].revents != 0;
}

void Herald::work() {
  double pause = pause_at_first;
  for (;;) {
    if (!connect()) {
      if (lost(false)) return loss_.act();
      if (!sleep(pause)) return;
      pause = std::min(longest_pause, 2 * pause);
      continue;
    }
    pause = pause_at_first;
    while (tell()) {
      if (lost(true)) return loss_.act();
      if (!sleep(watcher_.period)) {
        static_cast<void>(send(encode(Leaving{})));
        return;
      }
    }
    socket_.reset();
  }
}

bool Herald::lost(bool connected) {
  const double now = seconds_now();
  // Whoever was held up itself heard nobody, and blames nobody.
  const double turn = 2e-3 * patience * double(watcher_.hosts.size()) + longest_pause + watcher_.period;
  const bool held_up = looked_ > 0 && now - looked_ > turn + longest_pause;
  looked_ = now;
  if (reached_ > 0 && held_up) reached_ = now;
  if (connected) reached_ = std::max(reached_, now - unheard(socket_));
  return reached_ > 0 && loss_.act && now - reached_ > loss_.after;
}

bool Herald::connect() {
  return std::ranges::any_of(watcher_.hosts, [this](const std::string& host) { return greet(host); });
}

/// Whoever answers with a beat knows the token.
bool Herald::greet(const std::string& host) {
  const hosts::Lookup& asked = lookups_.of(host);
  if (asked.found() == nullptr && !ready(asked.bell(), POLLIN)) return false;
  std::string why;
  socket_ = connect_to(lookups_.take(host), watcher_.port, why);
  if (!socket_ || !ready(socket_.get(), POLLOUT) || !failure_of(socket_).empty()) return false;
  const Join hello{.run_id = watcher_.token, .host = "", .address = "", .wanted_rank = self_.rank};
  if (!send(encode(hello)) || !ready(socket_.get(), POLLIN)) return false;
  char byte = 0;
  if (recv(socket_.get(), &byte, 1, MSG_DONTWAIT) != 1) return false;
  reached_ = seconds_now();
  Whereabouts here = self_;
  here.round = watcher_.round;
  return send(encode(here));
}

bool Herald::tell() const {
  const double now = seconds_now();
  const std::vector<PulseReading> ranks = board_.read();
  return std::ranges::all_of(
             ranks,
             [&](const PulseReading& rank) {
               return send(encode(
                   Vital{.round = watcher_.round, .age = std::max(0.0, now - rank.beat), .reading = rank}));
             }) &&
         (!ranks.empty() || send(encode(Beat{})));
}

bool Herald::send(const std::string& frame) const {
  std::string_view left = frame;
  while (!left.empty()) {
    const ssize_t sent = ::send(socket_.get(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) left.remove_prefix(std::size_t(sent));
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (sent < 0 && errno == EAGAIN && !ready(socket_.get(), POLLOUT)) return false;
  }
  return true;
}

}  // namespace weft::launch
