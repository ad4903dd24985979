// Writes no more than a pipe takes without blocking, and asks the loop for the rest.
#include "weft/launch/console.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "weft/base/clock.h"

namespace weft::launch {
namespace {

bool is_file(int fd) {
  struct stat about {};
  return fstat(fd, &about) == 0 && (S_ISREG(about.st_mode) || S_ISBLK(about.st_mode));
}

}  // namespace

Console::Console(Loop& loop, int fd) : loop_(loop), fd_(fd), is_file_(is_file(fd)) {}

Console::~Console() {
  if (watched_) loop_.forget(fd_);
}

void Console::write(std::string_view lines) {
  pending_ += lines;
  push();
}

// A pipe or terminal that poll() calls ready takes PIPE_BUF bytes without blocking; ours may be shared with
// others, so it cannot be made non-blocking.
bool Console::push_some() {
  pollfd asked{.fd = fd_, .events = POLLOUT, .revents = 0};
  if (!is_file_ && poll(&asked, 1, 0) <= 0) return false;
  const std::size_t left = pending_.size() - written_;
  const std::size_t now = is_file_ ? left : std::min<std::size_t>(left, PIPE_BUF);
  const ssize_t done = ::write(fd_, pending_.data() + written_, now);
  if (done < 0 && errno == EINTR) return true;
  // Nobody reads any more, or the disk is full: the job matters more than its console.
  written_ += done < 0 ? left : std::size_t(done);
  return true;
}

void Console::push() {
  while (written_ < pending_.size() && push_some()) {
  }
  const bool waits = written_ < pending_.size();
  if (!waits) {
    pending_.clear();
    written_ = 0;
  } else if (written_ > enough) {
    pending_.erase(0, written_);
    written_ = 0;
  }
  if (waits && !watched_) loop_.watch(fd_, EPOLLOUT, [this](std::uint32_t) { push(); });
  if (!waits && watched_) loop_.forget(fd_);
  watched_ = waits;
  if (full() || waiting_.empty()) return;
  auto ready = std::move(waiting_);
  waiting_.clear();
  for (const auto& [who, act] : ready) act();
}

void Console::flush(double seconds) {
  const Deadline late(seconds);
  while (written_ < pending_.size() && !late.passed()) {
    pollfd asked{.fd = fd_, .events = POLLOUT, .revents = 0};
    poll(&asked, 1, int(late.seconds_left() * 1000) + 1);
    while (written_ < pending_.size() && push_some()) {
    }
  }
}

}  // namespace weft::launch
