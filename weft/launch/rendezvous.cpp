// Tries places, serves at its own while most come, and makes way where they do not.
#include "weft/launch/rendezvous.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <memory>
#include <utility>

namespace weft::launch {
namespace {

constexpr double name_patience = 10;  // seconds

}  // namespace

Rendezvous::Rendezvous(Loop& loop, const Terms& terms, std::vector<Endpoint> places, Events events)
    : loop_(loop),
      rules_(terms.rules),
      self_(terms.self),
      places_(std::move(places)),
      events_(std::move(events)),
      names_(terms.names) {
  const int wanted = self_.wanted_rank;
  for (std::size_t i = 0; i < places_.size(); ++i)
    if (wanted < 0 || wanted == int(i)) lookups_.emplace(i, hosts::Lookup(places_[i].host, names_));
  late_ = loop_.after(name_patience, [this] { meet(); });
  wait_for_names();
}

/// One after the other; all were asked at once.
void Rendezvous::wait_for_names() {
  loop_.forget(std::exchange(bell_, -1));
  for (const auto& [place, one] : lookups_) {
    if (one.found() != nullptr) continue;
    bell_ = one.bell();
    return loop_.watch(bell_, EPOLLIN, [this](std::uint32_t) { wait_for_names(); });
  }
  meet();
}

/// What is not known by now is not ours.
void Rendezvous::meet() {
  loop_.forget(std::exchange(bell_, -1));
  loop_.cancel(late_);
  if (ended_) return;
  one_place() ? meet_at_one() : meet_at_any();
  lookups_.clear();
}

Descriptor Rendezvous::listen(std::size_t place, Bind how) {
  const hosts::Found* host = lookups_.at(place).found();
  return listen_at(places_[place], how, host != nullptr ? *host : hosts::Found());
}

Rendezvous::~Rendezvous() {
  loop_.forget(bell_);
  loop_.cancel(late_);
  loop_.cancel(look_);
  loop_.cancel(leave_);
}

Client::Events Rendezvous::client_events() {
  return {.heard =
              [this](const Message& message) {
                if (!std::holds_alternative<Resigned>(message)) answered_ = true;
                events_.heard(message);
              },
          .cut_off =
              [this](const std::string& why) {
                if (ended_) return;
                // From the first place on; who just resigned, or waited where nobody answers, goes to the
                // next.
                if (at_ != mine_ && answered_) at_ = -1;
                events_.cut_off(why);
              },
          .given_up = events_.given_up,
          .names = names_};
}

void Rendezvous::serve(Descriptor listener) {
  server_.emplace(loop_, std::move(listener), rules_, Server::Options{});
  server_->on_say(events_.say);
}

void Rendezvous::meet_at_one() {
  Endpoint at = places_[0];
  const int wanted = self_.wanted_rank;
  Descriptor listener = wanted == 0    ? listen(0, Bind::here)
                        : wanted == -1 ? listen(0, Bind::if_ours)
                                       : Descriptor();
  if (listener) {
    serve(std::move(listener));
    at.port = server_->port();
  }
  client_.emplace(loop_, at, self_, rules_.patience, client_events());
}

void Rendezvous::meet_at_any() {
  const int wanted = self_.wanted_rank, places = int(places_.size());
  if (wanted >= 0 && wanted < places) ours_ = listen(std::size_t(mine_ = wanted), Bind::here);
  for (int i = 0; wanted < 0 && !ours_ && i < places; ++i)
    if ((ours_ = listen(std::size_t(i), Bind::if_ours))) mine_ = i;
  shut_door();
  self_.voter = mine_;
  Client::Events events = client_events();
  events.next = [this] { return next_place(); };
  // What we said last may reach it late, and until it has missed us for sure it may count us.
  events.lease = [this] {
    return mine_ < 0 || (at_ == mine_ && !somebody_works_) ? 0 : 4 * rules_.patience.beat;
  };
  client_.emplace(loop_, places_[0], self_, rules_.patience, std::move(events));
}

/// Who knocks hears that nobody coordinates here.
void Rendezvous::shut_door() {
  if (ours_) shut_.emplace(loop_, ours_.get(), [this](Descriptor guest) { turn_away(std::move(guest)); });
}

void Rendezvous::turn_away(Descriptor guest) {
  const auto held = std::make_shared<Descriptor>(std::move(guest));
  const std::string word = encode(Resigned{});
  static_cast<void>(send(held->get(), word.data(), word.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  loop_.after(1, [held] { held->reset(); });
}

const Endpoint& Rendezvous::next_place() {
  at_ = (at_ + 1) % int(places_.size());
  answered_ = false;
  if (at_ == mine_) coordinate();
  return places_[std::size_t(at_)];
}

void Rendezvous::coordinate() {
  if (server_) return;
  shut_.reset();
  serve(Descriptor(fcntl(ours_.get(), F_DUPFD_CLOEXEC, 0)));
  quorum_ = loop_.now();
  somebody_works_ = false;
  look_ = loop_.after(1, [this] { look_for_quorum(); });
}

void Rendezvous::look_for_quorum() {
  const auto now = loop_.now();
  if (ended_ || server_->coordinator().verdict()) return;
  if (server_->coordinator().quorum(seconds_of(now))) quorum_ = now;
  // The first places wait the shortest, so that two that wait for each other do not do so for ever.
  if (now - quorum_ > std::chrono::seconds(2 + mine_)) return resign();
  look_ = loop_.after(1, [this] { look_for_quorum(); });
}

/// Those who hear it go to another at once. Where somebody may still work who does not hear it, nobody does.
void Rendezvous::resign() {
  somebody_works_ = !server_->coordinator().nobody_works(seconds_of(loop_.now()));
  if (!somebody_works_) server_->resign();
  leave_ = loop_.after(0, [this] {
    server_.reset();
    shut_door();
  });
}

std::string Rendezvous::report() const {
  const bool ours = server_ && server_->coordinator().verdict();
  return ours ? server_->coordinator().verdict()->report : std::string();
}

void Rendezvous::end(double seconds, std::function<void()> act) {
  ended_ = true;
  // It cannot be destroyed here: one of its own words may be what we hear.
  leave_ = loop_.after(0, [this, seconds, act = std::move(act)] {
    if (client_) client_->close();
    const bool tells = server_ && server_->coordinator().verdict();
    tells ? server_->when_over(seconds, act) : act();
  });
}

}  // namespace weft::launch
