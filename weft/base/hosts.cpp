// getaddrinfo knows no deadline, so it is asked where nobody minds.
#include "weft/base/hosts.h"

#include <netdb.h>
#include <sys/eventfd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <system_error>
#include <thread>

#include "weft/base/descriptor.h"
#include "weft/base/error.h"

namespace weft::hosts {
namespace {

Found ask(const std::string& host, int flags) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags;
  addrinfo* list = nullptr;
  const int wrong = getaddrinfo(host.c_str(), nullptr, &wanted, &list);
  if (wrong != 0) return {{}, text("host ", host, " is not known: ", gai_strerror(wrong))};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> held(list, freeaddrinfo);
  Found out;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    Address address{.size = one->ai_addrlen};
    std::memcpy(&address.at, one->ai_addr, one->ai_addrlen);
    out.addresses.push_back(address);
  }
  return out;
}

}  // namespace

Found ask_the_system(const std::string& host) { return ask(host, 0); }
Found numeric(const std::string& host) { return ask(host, AI_NUMERICHOST); }

struct Lookup::Shared {
  Descriptor bell{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  Found found;
  std::atomic<bool> known = false;  // after which nobody writes

  void set(Found value) {
    found = std::move(value);
    known = true;
    eventfd_write(bell.get(), 1);
  }
};

/// On a thread that nobody knows afterwards.
void Lookup::ask(const std::string& host, const NameService& service) const {
  // Signals are the other threads' business.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([shared = shared_, host, service] { shared->set(service(host)); }).detach();
  } catch (const std::system_error& e) {
    shared_->set({{}, text("no thread is left to ask for host ", host, ": ", e.what())});
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Lookup::Lookup(const std::string& host, const NameService& service) : shared_(std::make_shared<Shared>()) {
  Found number = numeric(host);
  if (!number.addresses.empty())
    shared_->set(std::move(number));
  else if (!shared_->bell)
    shared_->set({{}, text("no descriptor is left to ask for host ", host)});
  else
    ask(host, service);
}

const Found* Lookup::found() const { return shared_->known ? &shared_->found : nullptr; }
int Lookup::bell() const { return shared_->bell.get(); }

const Lookup& Lookups::of(const std::string& host) {
  return on_.try_emplace(host, host, service_).first->second;
}

Found Lookups::take(const std::string& host) {
  const auto lookup = on_.extract(host);
  return *lookup.mapped().found();
}

}  // namespace weft::hosts
