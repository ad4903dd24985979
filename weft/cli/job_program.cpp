#include "weft/cli/job_program.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "weft/base/descriptor.h"
#include "weft/base/error.h"

namespace weft::cli {
namespace {

/// What a child's descriptors become; gone with us.
class Actions {
 public:
  Actions() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
  }
  ~Actions() { posix_spawn_file_actions_destroy(&actions_); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  void becomes(int fd, int number) { posix_spawn_file_actions_adddup2(&actions_, fd, number); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

struct Pipe {
  Descriptor read, write;
};
Pipe pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail(Kind::device, "cannot make a pipe: ", std::strerror(errno));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

/// 0 where there is no such program.
pid_t start(const std::string& program, const std::vector<std::string>& words, const Actions& actions) {
  std::vector<std::string> copy{program};
  copy.insert(copy.end(), words.begin(), words.end());
  std::vector<char*> views;
  for (std::string& word : copy) views.push_back(word.data());
  views.push_back(nullptr);
  pid_t id = 0;
  const int error = posix_spawnp(&id, program.c_str(), actions.get(), nullptr, views.data(), environ);
  if (error == ENOENT || error == EACCES) return 0;
  if (error != 0) fail(Kind::device, "cannot start ", program, ": ", std::strerror(error));
  return id;
}

int end_of(pid_t id) {
  int status = 0;
  while (::waitpid(id, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void read_both(const Descriptor& out, const Descriptor& err, Answer& answer) {
  std::array<pollfd, 2> open{{{out.get(), POLLIN, 0}, {err.get(), POLLIN, 0}}};
  std::array<std::string*, 2> to{&answer.out, &answer.err};
  std::array<char, 1 << 16> room{};
  while (open[0].fd >= 0 || open[1].fd >= 0) {
    if (::poll(open.data(), open.size(), -1) < 0 && errno != EINTR) return;
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (open[i].fd < 0 || open[i].revents == 0) continue;
      const ssize_t got = ::read(open[i].fd, room.data(), room.size());
      if (got > 0) to[i]->append(room.data(), std::size_t(got));
      if (got == 0 || (got < 0 && errno != EINTR)) open[i].fd = -1;
    }
  }
}

}  // namespace

Answer ask(const std::string& program, const std::vector<std::string>& words) {
  Pipe out = pipe(), err = pipe();
  Actions actions;
  actions.becomes(out.write.get(), 1);
  actions.becomes(err.write.get(), 2);
  Answer answer;
  const pid_t id = start(program, words, actions);
  if (id == 0) return {.out = {}, .err = {}, .status = 127, .missing = true};
  out.write.reset();
  err.write.reset();
  read_both(out.read, err.read, answer);
  answer.status = end_of(id);
  return answer;
}

int run_program(const std::string& program, const std::vector<std::string>& words) {
  const pid_t id = start(program, words, Actions());
  if (id == 0) fail(Kind::usage, "there is no program ", program);
  return end_of(id);
}

}  // namespace weft::cli
