// One thread and a ring of what it has to do: the steady state asks the heap for nothing.
#include "weft/optim/fetched.h"

#include "weft/base/error.h"

namespace weft {

Fetcher::Fetcher(const Device& computes, std::size_t most) : reads_(most) {
  if (computes.holds_numbers() && most > 0) reader_ = std::thread([this] { read_all(); });
}

Fetcher::~Fetcher() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (reader_.joinable()) reader_.join();
}

Fetcher::Ticket Fetcher::ask(const Tensor& to, const Tensor& from) {
  const std::scoped_lock lock(mutex_);
  if (!reader_.joinable()) return 0;
  if (asked_ - done_ == reads_.size())
    fail(Kind::internal, "fetch: ", reads_.size(), " reads are under way, and another one is asked for");
  reads_[asked_ % reads_.size()] = {to, from};
  changed_.notify_all();
  return ++asked_;
}

void Fetcher::wait(Ticket ticket) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ != nullptr || done_ >= ticket; });
  if (error_) std::rethrow_exception(error_);
}

void Fetcher::settle(Ticket ticket) noexcept {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= ticket; });
}

// After a read that failed the others are over too: nobody trusts what they would bring.
void Fetcher::read_all() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || done_ < asked_; });
    if (stop_) return;
    Read read = std::move(reads_[done_ % reads_.size()]);
    lock.unlock();
    std::exception_ptr failed;
    try {
      if (!error_)
        static_cast<const FileMemory&>(read.from.device())
            .read(read.to.address(), *read.from.storage(), read.from.offset() * size_of(read.from.dtype()),
                  read.from.bytes());
    } catch (...) {
      failed = std::current_exception();
    }
    read = {};  // before whoever waits gives the memory away
    lock.lock();
    if (failed) error_ = failed;
    ++done_;
    changed_.notify_all();
  }
}

}  // namespace weft
