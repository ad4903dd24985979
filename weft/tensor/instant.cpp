#include "weft/tensor/instant.h"

#include <utility>

namespace weft {

Instant& Instant::operator=(Instant&& other) noexcept {
  std::swap(knows_, other.knows_);
  std::swap(note_, other.note_);
  std::swap(at_, other.at_);
  return *this;
}

double Instant::since(const Instant& earlier) const {
  if (knows_) return knows_->seconds_between(earlier.note_, note_);
  return std::chrono::duration<double>(at_ - earlier.at_).count();
}

void Spent::add(Stretch stretch) {
  going_.push_back(std::move(stretch));
  count_what_is_over();
}

double Spent::seconds() {
  count_what_is_over();
  return seconds_;
}

void Spent::count_what_is_over() {
  for (; !going_.empty() && going_.front().to.over(); going_.pop_front())
    seconds_ += going_.front().to.since(going_.front().from);
}

}  // namespace weft
