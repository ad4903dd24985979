// fork, exec, pidfd and waitid, with the order of steps that leaves no orphan and no race.
#include "weft/launch/process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>

#include "weft/base/error.h"
#include "weft/launch/keeper.h"

namespace weft::launch {
namespace {

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> variables_of(const Environment& environment) {
  std::vector<std::string> out;
  for (const auto& [name, value] : environment) out.push_back(text(name, "=", value));
  return out;
}

struct Image {
  char* const* words;
  char* const* variables;
  int out, err, keep, keeper, tell;
  pid_t parent;
};

/// In the child, until exec: async-signal-safe calls only.
[[noreturn]] void become(const Image& image) {
  setpgid(0, 0);
  if (image.keeper >= 0) Keeper::tell(image.keeper, getpid());
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != image.parent) _exit(127);  // it was gone before we asked
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD, SIGPIPE})
    signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int empty = open("/dev/null", O_RDONLY);
  if (empty > 0) {
    dup2(empty, 0);
    close(empty);
  }
  if (image.out >= 0) dup2(image.out, 1);
  if (image.err >= 0) dup2(image.err, 2);
  if (image.keep >= 0) fcntl(image.keep, F_SETFD, 0);
  execvpe(image.words[0], image.words, image.variables);
  const int wrong = errno;
  if (write(image.tell, &wrong, sizeof wrong) < 0) _exit(126);
  _exit(127);
}

}  // namespace

std::string words_of(const End& end) {
  if (end.signal == 0) return text("exit code ", end.code);
  return text("signal ", end.signal, " (", strsignal(end.signal), ")");
}

std::string become(std::vector<std::string> words, const Environment& environment) {
  std::vector<std::string> variables = variables_of(environment);
  execvpe(words[0].c_str(), pointers(words).data(), pointers(variables).data());
  return std::strerror(errno);
}

Process start(const Start& what) {
  std::vector<std::string> words = what.words, variables = variables_of(what.environment);
  const auto word_list = pointers(words), variable_list = pointers(variables);
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    fail(Kind::device, "launch: no pipe to start ", words[0], ": ", std::strerror(errno));
  const Descriptor hear(ends[0]);
  Descriptor tell(ends[1]);
  const Image image{word_list.data(), variable_list.data(), what.out,   what.err,
                    what.keep,        what.keeper,          tell.get(), getpid()};
  Process child{.id = fork(), .ended = {}};
  if (child.id == 0) become(image);
  if (child.id < 0) fail(Kind::device, "launch: cannot start ", words[0], ": ", std::strerror(errno));
  setpgid(child.id, child.id);  // both sides ask, so that either may be first
  tell.reset();
  child.ended = Descriptor(int(syscall(SYS_pidfd_open, child.id, 0)));
  int wrong = 0;
  const bool told = read(hear.get(), &wrong, sizeof wrong) == sizeof wrong;
  if (told || !child.ended) {
    if (!told) wrong = errno;
    if (!told) kill(child.id, SIGKILL);
    if (what.keeper >= 0) Keeper::tell(what.keeper, -child.id);
    waitpid(child.id, nullptr, 0);
    fail(Kind::usage, "launch: cannot run ", words[0], ": ", std::strerror(wrong));
  }
  return child;
}

void signal_group(const Process& process, int number) { kill(-process.id, number); }

End reap(const Process& process) {
  // While the leader is not reaped, nobody else can get its number.
  signal_group(process, SIGKILL);
  siginfo_t found{};
  while (waitid(P_PID, id_t(process.id), &found, WEXITED) != 0 && errno == EINTR) {
  }
  if (found.si_code == CLD_EXITED) return {.code = found.si_status, .signal = 0};
  return {.code = 0, .signal = found.si_status};
}

void die_with_parent() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

void adopt_orphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

void reap_adopted(const std::vector<pid_t>& ours, bool kill_them) {
  // Whose parent is killed becomes ours in its turn. What is another user's cannot be ended, nor waited for.
  for (bool more = true; more;) {
    more = false;
    std::ifstream list(text("/proc/self/task/", gettid(), "/children"));
    for (pid_t child = 0; list >> child;) {
      if (std::find(ours.begin(), ours.end(), child) != ours.end()) continue;
      const bool killed = kill_them && kill(child, SIGKILL) == 0;
      waitpid(child, nullptr, killed ? 0 : WNOHANG);
      more = more || killed;
    }
  }
}

}  // namespace weft::launch
