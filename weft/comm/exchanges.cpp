#include "weft/comm/exchanges.h"

namespace weft {

std::byte* Exchange::scratch(std::int64_t bytes) {
  scratch_.emplace_back(std::size_t(bytes));
  return scratch_.back().data();
}

bool Exchange::advance() {
  while (batch_->arrived()) {
    if (next_phase_ == phases_.size()) return true;
    phases_[next_phase_++](*this);
  }
  return false;
}

std::shared_ptr<Exchange> Exchanges::begin(std::shared_ptr<Exchange> exchange) {
  const auto mine = turn();
  must_be_whole();
  try {
    if (!exchange->advance()) under_way_.push_back(exchange);
  } catch (...) {
    break_with(std::current_exception());
    throw;
  }
  return exchange;
}

bool Exchanges::advance_all(const Exchange& wanted) {
  bool found = false;
  for (auto at = under_way_.begin(); at != under_way_.end();) {
    const bool done = (*at)->advance();
    found = found || (at->get() == &wanted && !done);
    at = done ? under_way_.erase(at) : std::next(at);
  }
  return !found;
}

bool Exchanges::arrived(const Exchange& wanted) {
  const auto mine = turn();
  must_be_whole();
  return advance_all(wanted);
}

void Exchanges::break_with(std::exception_ptr cause) {
  under_way_.clear();
  if (!broken_) broken_ = std::move(cause);
}

void Exchanges::drop(std::exception_ptr cause) {
  const auto mine = turn();
  break_with(std::move(cause));
}

void Exchanges::check(Mail& mail) {
  const auto mine = turn();
  must_be_whole();
  try {
    mail.check();
  } catch (...) {
    break_with(std::current_exception());
    throw;
  }
}

void Exchanges::finish(const Exchange& exchange, Mail& mail) {
  try {
    if (arrived(exchange)) return;
    const Waiting waiting(watched(), exchange.about());
    for (int rounds = 0; !arrived(exchange); ++rounds) mail.rest(rounds);
  } catch (...) {
    drop(std::current_exception());
    throw;
  }
}

}  // namespace weft
