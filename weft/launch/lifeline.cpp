// A socket a rank, by which the kernel itself says whose process it is and when it is gone.
#include "weft/launch/lifeline.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <utility>

#include "weft/base/error.h"

namespace weft::launch {
namespace {

constexpr std::size_t largest_frame = 4 << 10;
constexpr double join_patience = 10;  // seconds
constexpr int most_waiting = 4096;

struct Name {
  sockaddr_un at{};
  socklen_t size = 0;
};

/// Of the abstract kind.
Name name_of(const std::string& words) {
  Name out;
  out.at.sun_family = AF_UNIX;
  const std::size_t bytes = std::min(words.size(), sizeof out.at.sun_path - 1);
  std::memcpy(out.at.sun_path + 1, words.data(), bytes);
  out.size = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  return out;
}

/// Who connected, as the kernel knows; 0: another person's process, or one that this one cannot see.
pid_t owner_of(int socket) {
  ucred who{};
  socklen_t size = sizeof who;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.uid != geteuid()) return 0;
  return who.pid;
}

}  // namespace

Lifeline::Lifeline(const std::string& name, int round, int rank) : round_(round), rank_(rank) {
  if (name.empty()) return;
  const Name to = name_of(name);
  line_ = Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(line_.get(), reinterpret_cast<const sockaddr*>(&to.at), to.size) != 0) line_.reset();
  say(Whereabouts{.round = round, .rank = rank, .host = "", .process = getpid()});
}

void Lifeline::fails(int code) const {
  say(Failed{round_, {.rank = rank_, .end = {.code = code, .signal = 0}}});
}

void Lifeline::ends() const { say(Leaving{}); }

void Lifeline::say(const Message& message) const {
  if (!line_) return;
  const std::string frame = encode(message);
  static_cast<void>(send(line_.get(), frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

Lifelines::Lifelines(Loop& loop, int listener, Lost lost)
    : loop_(loop),
      lost_(std::move(lost)),
      door_(loop, listener, [this](Descriptor socket) { take_in(std::move(socket)); }) {}

Lifelines::~Lifelines() {
  for (auto& [id, rank] : ranks_) loop_.cancel(rank.patience);
}

void Lifelines::take_in(Descriptor socket) {
  const pid_t process = owner_of(socket.get());
  if (process <= 0) return;
  const int id = next_++;
  Rank& rank = ranks_[id];
  rank.process = process;
  rank.wire = std::make_unique<Wire>(loop_, std::move(socket), largest_frame,
                                     Wire::Events{.heard = [this, id](const Message& m) { heard(id, m); },
                                                  .broken = [this, id](const std::string&) { cut(id); }});
  rank.patience = loop_.after(join_patience, [this, id] { ranks_.erase(id); });
}

void Lifelines::heard(int id, const Message& message) {
  Rank& rank = ranks_.at(id);
  if (const auto* here = std::get_if<Whereabouts>(&message); here != nullptr && here->rank >= 0) {
    loop_.cancel(rank.patience);
    rank.round = here->round;
    rank.number = here->rank;
  }
  if (std::holds_alternative<Leaving>(message)) rank.told = true;
  if (const auto* failed = std::get_if<Failed>(&message)) tell(rank, failed->failure.end.code);
}

void Lifelines::cut(int id) {
  auto gone = ranks_.extract(id);
  loop_.cancel(gone.mapped().patience);
  tell(gone.mapped(), -1);
}

void Lifelines::tell(Rank& rank, int code) {
  if (rank.number < 0 || std::exchange(rank.told, true)) return;
  lost_({.round = rank.round,
         .rank = rank.number,
         .process = rank.process,
         .code = code,
         .when = Loop::Clock::now()});
}

/// A number whose line stands is still its process's.
void Lifelines::end_all() const {
  for (const auto& [id, rank] : ranks_) kill(rank.process, SIGKILL);
}

std::vector<pid_t> Lifelines::processes() const {
  std::vector<pid_t> out;
  for (const auto& [id, rank] : ranks_) out.push_back(rank.process);
  return out;
}

Descriptor listen_for_lives(const std::string& name) {
  const Name at = name_of(name);
  Descriptor out(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!out || bind(out.get(), reinterpret_cast<const sockaddr*>(&at.at), at.size) != 0 ||
      listen(out.get(), most_waiting) != 0)
    fail(Kind::device, "launch: no socket for the lines of its ranks: ", std::strerror(errno));
  return out;
}

}  // namespace weft::launch
