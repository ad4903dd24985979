// Hears numbers over a socket: one of a group to kill at the end, its negative to leave it alone.
#include "weft/launch/keeper.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <set>

#include "weft/base/error.h"

namespace weft::launch {
namespace {

constexpr pid_t farewell = 0;  // an end in order

/// In the child, which is alone in it: nothing of the launcher's stays open, or its readers would wait for
/// us.
[[noreturn]] void keep_until_the_end(int hear) {
  setsid();
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  prctl(PR_SET_NAME, "weft keeper");
  dup2(hear, 0);
  close_range(1, ~0U, 0);
  std::set<pid_t> groups;
  for (pid_t one = 0;;) {
    const ssize_t got = recv(0, &one, sizeof one, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got == sizeof one && one == farewell) _exit(0);
    if (got != sizeof one) break;
    if (one > 0)
      groups.insert(one);
    else
      groups.erase(-one);
  }
  for (const pid_t group : groups) kill(-group, SIGKILL);
  _exit(0);
}

}  // namespace

Keeper::Keeper() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    fail(Kind::device, "launch: no socket to the keeper of its workers: ", std::strerror(errno));
  tell_ = Descriptor(ends[0]);
  const Descriptor hear(ends[1]);
  process_ = fork();
  if (process_ == 0) keep_until_the_end(hear.get());
  if (process_ < 0)
    fail(Kind::device, "launch: cannot start the keeper of its workers: ", std::strerror(errno));
}

Keeper::~Keeper() {
  tell(door(), farewell);
  tell_.reset();
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

/// It reads faster than anybody starts processes; and where it is gone, workers still end by themselves.
void Keeper::tell(int door, pid_t group) { send(door, &group, sizeof group, MSG_NOSIGNAL); }

}  // namespace weft::launch
