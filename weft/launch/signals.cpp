// signalfd: blocked signals wait in a descriptor.
#include "weft/launch/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>

namespace weft::launch {

std::vector<int> not_ignored(std::vector<int> signals) {
  std::erase_if(signals, [](int number) {
    struct sigaction now {};
    sigaction(number, nullptr, &now);
    return now.sa_handler == SIG_IGN;
  });
  return signals;
}

std::vector<int> heard_signals(std::vector<int> ending) {
  ending = not_ignored(std::move(ending));
  for (const int number : {SIGUSR1, SIGUSR2, SIGCHLD})
    if (std::find(ending.begin(), ending.end(), number) == ending.end()) ending.push_back(number);
  return ending;
}

Signals::Signals(Loop& loop, const std::vector<int>& wanted, std::function<void(int number)> heard)
    : loop_(loop) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : wanted) sigaddset(&set, number);
  pthread_sigmask(SIG_BLOCK, &set, &before_);
  struct sigaction ignored {};
  ignored.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignored, &pipe_before_);
  fd_ = Descriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  loop_.watch(fd_.get(), EPOLLIN, [this, heard = std::move(heard)](std::uint32_t) {
    signalfd_siginfo one{};
    while (read(fd_.get(), &one, sizeof one) == sizeof one) heard(int(one.ssi_signo));
  });
}

Signals::~Signals() {
  loop_.forget(fd_.get());
  sigaction(SIGPIPE, &pipe_before_, nullptr);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace weft::launch
