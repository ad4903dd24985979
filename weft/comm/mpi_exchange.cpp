// Testing, not blocking: a rank that waits must still serve the words that its peers wait for.
#include "weft/comm/mpi_exchange.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "weft/base/error.h"

namespace weft {
namespace {

constexpr std::int64_t largest_message = std::int64_t{1} << 30;  // MPI counts in int

// Ranks may outnumber processors: after a while of asking, others get the processor.
void rest(int rounds) {
  if (rounds < 64) return;
  if (rounds < 512)
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(std::chrono::microseconds(40));
}

}  // namespace

void check_mpi(int code, const char* word) {
  if (code == MPI_SUCCESS) return;
  std::string said(MPI_MAX_ERROR_STRING, ' ');
  int length = 0;
  MPI_Error_string(code, said.data(), &length);
  fail(Kind::comm, "mpi: ", word, ": ", said.substr(0, std::size_t(length)));
}

void Exchange::send(const void* from, std::int64_t bytes, int to) {
  for (std::int64_t at = 0; at < bytes; at += largest_message) {
    const int count = int(std::min(largest_message, bytes - at));
    messages_.push_back({to, -1});
    requests_.emplace_back();
    check_mpi(MPI_Isend(static_cast<const std::byte*>(from) + at, count, MPI_BYTE, to, tag_, circle_,
                        &requests_.back()),
              word_);
  }
}

void Exchange::receive(void* to, std::int64_t bytes, int from) {
  for (std::int64_t at = 0; at < bytes; at += largest_message) {
    const int count = int(std::min(largest_message, bytes - at));
    messages_.push_back({from, count});
    requests_.emplace_back();
    check_mpi(
        MPI_Irecv(static_cast<std::byte*>(to) + at, count, MPI_BYTE, from, tag_, circle_, &requests_.back()),
        word_);
  }
}

std::byte* Exchange::scratch(std::int64_t bytes) {
  scratch_.emplace_back(std::size_t(bytes));
  return scratch_.back().data();
}

void Exchange::check_arrived(const std::vector<MPI_Status>& statuses) const {
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    if (messages_[i].expected < 0) continue;
    int bytes = 0;
    MPI_Get_count(&statuses[i], MPI_BYTE, &bytes);
    if (bytes != messages_[i].expected)
      fail(Kind::comm, word_, ": ", messages_[i].expected, " bytes are expected from rank ",
           messages_[i].peer, ", which sends ", bytes);
  }
}

bool Exchange::advance() {
  while (true) {
    if (!requests_.empty()) {
      int done = 0;
      statuses_.resize(requests_.size());
      check_mpi(MPI_Testall(int(requests_.size()), requests_.data(), &done, statuses_.data()), word_);
      if (!done) return false;
      check_arrived(statuses_);
      requests_.clear();
      messages_.clear();
    }
    if (next_phase_ == phases_.size()) return true;
    phases_[next_phase_++](*this);
  }
}

std::shared_ptr<Exchange> Exchanges::begin(std::shared_ptr<Exchange> exchange) {
  if (!exchange->advance()) under_way_.push_back(exchange);
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

void Exchanges::finish(const Exchange& exchange) {
  for (int rounds = 0; !advance_all(exchange); ++rounds) rest(rounds);
}

}  // namespace weft
