// Reads into one buffer of the call, keeps only frames that are not whole yet.
#include "weft/launch/wire.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "weft/base/error.h"

namespace weft::launch {
namespace {

constexpr std::size_t most_unread = 16 << 20;
constexpr int reads_a_turn = 16;  // who never stops speaking is not heard alone

}  // namespace

Wire::Wire(Loop& loop, Descriptor socket, std::size_t largest, Events events)
    : loop_(loop), socket_(std::move(socket)), largest_(largest), events_(std::move(events)) {
  loop_.watch(socket_.get(), EPOLLIN | EPOLLRDHUP, [this](std::uint32_t e) { on(e); });
}

Wire::~Wire() {
  loop_.forget(socket_.get());
  loop_.cancel(breaking_);
}

void Wire::broke(const std::string& why) {
  loop_.forget(socket_.get());
  if (breaking_ == 0)
    breaking_ = loop_.after(0, [this, why] {
      const auto broken = events_.broken;  // it may destroy us
      broken(why);
    });
}

void Wire::failed(int error) {
  error_ = error;
  broke(std::strerror(error));
}

void Wire::send(const Message& message) {
  if (breaking_ != 0) return;
  out_ += encode(message);
  push();
}

void Wire::push() {
  while (!out_.empty()) {
    const ssize_t done = ::send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && errno != EAGAIN) return failed(errno);
    if (done < 0) break;
    out_.erase(0, std::size_t(done));
  }
  if (out_.size() > most_unread) return broke("it does not read what it is sent");
  if (out_.empty()) out_.shrink_to_fit();
  if (writing_ == !out_.empty()) return;
  writing_ = !out_.empty();
  loop_.change(socket_.get(), EPOLLIN | EPOLLRDHUP | (writing_ ? std::uint32_t(EPOLLOUT) : 0u));
}

void Wire::on(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) push();
  for (int i = 0; i < reads_a_turn && breaking_ == 0; ++i)
    if (!read_some()) return;
}

/// False when nothing more is there, or the wire broke, or was destroyed.
bool Wire::read_some() {
  std::array<char, 16 << 10> buffer;
  const ssize_t got = recv(socket_.get(), buffer.data(), buffer.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got < 0) return failed(errno), false;
  if (got == 0) return broke("its connection was closed"), false;
  in_.append(buffer.data(), std::size_t(got));
  const std::weak_ptr<int> life = life_;
  try {
    while (const auto message = take_frame(in_, largest_)) {
      events_.heard(*message);
      if (life.expired() || breaking_ != 0) return false;
    }
  } catch (const Error& e) {
    broke(e.what());
    return false;
  }
  if (in_.empty()) in_.shrink_to_fit();
  return std::size_t(got) == buffer.size();
}

}  // namespace weft::launch
