#include "weft/launch/server.h"

#include <algorithm>

#include "weft/base/error.h"

namespace weft::launch {
namespace {

constexpr std::size_t largest_frame = 16 << 10;
constexpr double refused_patience = 1;

}  // namespace

Server::Server(Loop& loop, Descriptor listener, const Rules& rules, Options options)
    : loop_(loop),
      listener_(std::move(listener)),
      options_(options),
      beat_seconds_(rules.patience.beat),
      coordinator_(
          rules, now(), [this](int id, const Message& m) { send(id, m); },
          [this](const std::string& line) {
            if (say_) say_(line);
          }),
      door_(
          loop_, listener_.get(), [this](Descriptor socket) { take_in(std::move(socket)); },
          [this, most = 2 * std::size_t(rules.nodes.most) + 4096] { return guests_.size() < most; }) {
  tick();
  beat();
}

Server::~Server() {
  for (const std::uint64_t time : {tick_, beat_, over_}) loop_.cancel(time);
  for (auto& [id, guest] : guests_) loop_.cancel(guest.patience);
}

double Server::now() const { return seconds_of(loop_.now()); }

void Server::send(int id, const Message& message) {
  const auto found = guests_.find(id);
  if (found == guests_.end()) return;
  Guest& guest = found->second;
  guest.wire->send(message);
  if (!std::holds_alternative<Refused>(message)) return;
  // The coordinator has done with it; it gets a moment to read why.
  if (guest.joined) --joined_;
  guest.joined = false;
  guest.refused = true;
  loop_.cancel(guest.patience);
  guest.patience = loop_.after(refused_patience, [this, id] { drop(id, "it was refused"); });
}

void Server::take_in(Descriptor socket) {
  const int id = next_++;
  Guest& guest = guests_[id];
  guest.wire =
      std::make_unique<Wire>(loop_, std::move(socket), largest_frame,
                             Wire::Events{.heard = [this, id](const Message& m) { heard(id, m); },
                                          .broken = [this, id](const std::string& why) { drop(id, why); }});
  guest.patience = loop_.after(options_.join_patience, [this, id] { drop(id, "it never joined"); });
}

void Server::heard(int id, const Message& message) {
  Guest& guest = guests_[id];
  if (guest.refused) return;
  if (const auto* join = std::get_if<Join>(&message); join && !guest.joined) {
    guest.joined = true;
    ++joined_;
    loop_.cancel(guest.patience);
    coordinator_.joined(id, *join, now());
  } else if (guest.joined) {
    coordinator_.heard(id, message, now());
  } else {
    fail(Kind::comm, "launch: it speaks before it joins");
  }
  tick();
}

void Server::drop(int id, const std::string& why) {
  const auto found = guests_.find(id);
  if (found == guests_.end()) return;
  loop_.cancel(found->second.patience);
  const bool joined = found->second.joined;
  guests_.erase(found);
  if (joined) --joined_;
  if (joined) coordinator_.gone(id, why, now());
  tick();
}

void Server::tick() {
  const double time = now();
  // A word may have changed when something is due; whether it is due is asked only then.
  if (coordinator_.next() <= time) coordinator_.tick(time);
  loop_.cancel(tick_);
  check_over();
  if (coordinator_.verdict()) return;
  tick_ = loop_.after(std::max(0.001, coordinator_.next() - time), [this] { tick(); });
}

void Server::beat() {
  for (auto& [id, guest] : guests_)
    if (guest.joined) guest.wire->send(Beat{});
  beat_ = loop_.after(beat_seconds_, [this] { beat(); });
}

void Server::resign() {
  for (auto& [id, guest] : guests_)
    if (guest.joined) guest.wire->send(Resigned{});
}

void Server::when_over(double seconds, std::function<void()> act) {
  when_over_ = std::move(act);
  over_ = loop_.after(seconds, [this] {
    const auto over = std::move(when_over_);
    when_over_ = nullptr;
    if (over) over();
  });
  check_over();
}

/// Agents go when they have heard the verdict.
void Server::check_over() {
  if (!when_over_ || joined_ > 0) return;
  loop_.cancel(over_);
  over_ = loop_.after(0, std::exchange(when_over_, nullptr));
}

std::size_t Server::bytes_held() const {
  std::size_t out = 0;
  for (const auto& [id, guest] : guests_) out += sizeof(guest) + sizeof(Wire) + guest.wire->bytes_held();
  return out;
}

}  // namespace weft::launch
