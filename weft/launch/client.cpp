// Connect, join, beat, and all over again.
#include "weft/launch/client.h"

#include <algorithm>
#include <utility>

#include "weft/base/error.h"

namespace weft::launch {
namespace {

constexpr std::size_t largest_frame = 16 << 20;  // the peers of 65,536 nodes
constexpr double longest_wait = 1;
constexpr double between_places = 0.1;
constexpr double least_patience = 0.05, short_patience = 2, long_patience = 10;  // seconds to connect

Loop::Clock::duration seconds(double count) {
  return std::chrono::duration_cast<Loop::Clock::duration>(
      std::chrono::duration<double>(std::min(count, 1e9)));
}

}  // namespace

Client::Client(Loop& loop, Endpoint endpoint, Join join, const Patience& patience, Events events)
    : loop_(loop),
      endpoint_(std::move(endpoint)),
      join_(std::move(join)),
      patience_(patience),
      events_(std::move(events)),
      lookups_(events_.names),
      give_up_at_(loop_.now() + seconds(patience.join)) {
  retry_ = loop_.after(0, [this] { connect(); });
}

Client::~Client() { close(); }

void Client::close() {
  loop_.cancel(retry_);
  loop_.cancel(beat_);
  loop_.cancel(hurry_);
  loop_.forget(bell_);
  if (connecting_) loop_.forget(connecting_.get());
  connecting_.reset();
  wire_.reset();
}

void Client::connect() {
  if (events_.next) endpoint_ = events_.next();
  // A machine that is gone does not refuse, nor does a name server; and one place of several is not worth a
  // long wait.
  const double left = std::chrono::duration<double>(give_up_at_ - loop_.now()).count();
  hurry_ = loop_.after(std::clamp(left, least_patience, events_.next ? short_patience : long_patience),
                       [this] { too_late(); });
  const hosts::Lookup& host = lookups_.of(endpoint_.host);
  if (host.found() != nullptr) return reach();
  bell_ = host.bell();
  loop_.watch(bell_, EPOLLIN, [this](std::uint32_t) { reach(); });
}

void Client::reach() {
  loop_.forget(std::exchange(bell_, -1));
  std::string why;
  connecting_ = connect_to(lookups_.take(endpoint_.host), endpoint_.port, why, turn_++);
  if (!connecting_) return failed(why);
  loop_.watch(connecting_.get(), EPOLLOUT, [this](std::uint32_t) { connected(); });
}

void Client::too_late() {
  const bool unknown = bell_ >= 0;
  loop_.forget(std::exchange(bell_, -1));
  if (connecting_) loop_.forget(connecting_.get());
  connecting_.reset();
  failed(unknown ? text("host ", endpoint_.host, " is not known yet: no name server answers")
                 : "it does not answer");
}

void Client::failed(const std::string& why) {
  loop_.cancel(hurry_);
  if (loop_.now() >= give_up_at_)
    return events_.given_up(text("launch: nobody answers at ", endpoint_.host, " port ", endpoint_.port,
                                 " for ", patience_.join, " s: ", why,
                                 events_.next ? "; are most of the places of --rdzv-endpoint there?"
                                              : "; is the agent with --node-rank 0 there?"));
  retry_ = loop_.after(wait_, [this] { connect(); });
  wait_ = std::min(longest_wait, 2 * wait_);
}

void Client::connected() {
  loop_.forget(connecting_.get());
  loop_.cancel(hurry_);
  const std::string wrong = failure_of(connecting_);
  if (!wrong.empty()) {
    connecting_.reset();
    return failed(wrong);
  }
  wait_ = events_.next ? between_places : 0.02;
  silent_beats_ = 0;
  last_beat_ = loop_.now();
  if (join_.address.empty()) join_.address = address_of(connecting_);
  wire_ = std::make_unique<Wire>(loop_, std::move(connecting_), largest_frame,
                                 Wire::Events{.heard =
                                                  [this](const Message& m) {
                                                    silent_beats_ = 0;
                                                    listen_to(m);
                                                  },
                                              .broken = [this](const std::string& why) { lost(why); }});
  wire_->send(join_);
  loop_.cancel(beat_);
  beat_ = loop_.after(patience_.beat, [this] { beat(); });
}

void Client::listen_to(const Message& message) {
  if (const auto* begin = std::get_if<Begin>(&message)) {
    begun_ = true;
    join_.round = begin->round;
    join_.restarts = begin->restarts;
  }
  if (std::holds_alternative<Resigned>(message)) resigned_ = true;
  events_.heard(message);
}

void Client::beat() {
  const auto now = loop_.now();
  // Held up ourselves, we read nothing; that is not the other side's silence.
  if (now - last_beat_ > seconds(2 * patience_.beat)) silent_beats_ = 0;
  last_beat_ = now;
  if (wire_ && ++silent_beats_ > patience_.missed_beats) return lost("it is silent");
  if (wire_) wire_->send(Beat{});
  beat_ = loop_.after(patience_.beat, [this] { beat(); });
}

void Client::lost(const std::string& why) {
  wire_.reset();
  loop_.cancel(beat_);
  // Whoever never began anything does not make us wait longer for one who does.
  if (begun_ || !events_.next) give_up_at_ = loop_.now() + seconds(patience_.join);
  const double lease = events_.lease && !resigned_ ? events_.lease() : 0;
  begun_ = resigned_ = false;
  retry_ = loop_.after(std::max(wait_, lease), [this] { connect(); });
  events_.cut_off(why);
}

void Client::tell(const Message& message) {
  if (wire_) wire_->send(message);
}

}  // namespace weft::launch
