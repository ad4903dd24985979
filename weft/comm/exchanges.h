// Words of one process that are under way as messages.
#pragma once

#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "weft/base/pulse.h"
#include "weft/comm/mail.h"

namespace weft {

/// One word of one rank. Phases follow each other when all messages of the one before have arrived; what they
/// touch is held by what they capture.
class Exchange {
 public:
  using Phase = std::function<void(Exchange&)>;
  Exchange(std::unique_ptr<Mail::Batch> batch, const Pulse::Wait& about)
      : batch_(std::move(batch)), about_(about) {}

  void send(const void* from, std::int64_t bytes, int to) { batch_->send(from, bytes, to); }
  void receive(void* to, std::int64_t bytes, int from) { batch_->receive(to, bytes, from); }
  /// Room for what others send, kept until the word is done.
  std::byte* scratch(std::int64_t bytes);
  void then(Phase phase) { phases_.push_back(std::move(phase)); }
  /// Goes on as far as it can without waiting; true when all is done.
  bool advance();
  const Pulse::Wait& about() const { return about_; }

 private:
  std::unique_ptr<Mail::Batch> batch_;
  Pulse::Wait about_;
  std::vector<Phase> phases_;
  std::size_t next_phase_ = 0;
  std::vector<std::vector<std::byte>> scratch_;
};

/// All words of this process. Ranks may finish words in different orders, so waiting for one moves the
/// others. A thread that saves speaks beside the one that trains, over another circle: the mail is one
/// thread's at a time.
class Exchanges {
 public:
  explicit Exchanges(Pulse* pulse) : pulse_(pulse) {}
  std::shared_ptr<Exchange> begin(std::shared_ptr<Exchange> exchange);
  void finish(const Exchange& exchange, Mail& mail);
  /// Fails where a rank is known to be gone, though no word of ours waits for it.
  void check(Mail& mail);
  /// After a failure no word is finished any more: all later ones, of any thread, fail with the first cause.
  /// What words hold goes now, before the device that made it.
  void drop(std::exception_ptr cause);
  /// For what the mail does apart from words.
  std::unique_lock<std::mutex> turn() { return std::unique_lock(mutex_); }
  Pulse* pulse() const { return pulse_; }

 private:
  void must_be_whole() const {
    if (broken_) std::rethrow_exception(broken_);
  }
  void break_with(std::exception_ptr cause);
  bool arrived(const Exchange& wanted);
  bool advance_all(const Exchange& wanted);
  /// A pulse says where the thread that trains waits, and not where another one does.
  Pulse* watched() const { return std::this_thread::get_id() == trains_ ? pulse_ : nullptr; }
  Pulse* pulse_;
  std::thread::id trains_ = std::this_thread::get_id();
  std::mutex mutex_;
  std::list<std::shared_ptr<Exchange>> under_way_;
  std::exception_ptr broken_;
};

}  // namespace weft
