#include "weft/data/loader.h"

#include <utility>

namespace weft::data {

Loader::Loader(std::shared_ptr<const Dataset> dataset, std::unique_ptr<Sampler> sampler,
               std::int64_t consumed)
    : dataset_(std::move(dataset)),
      sampler_(std::move(sampler)),
      consumed_(consumed),
      thread_([this] { read_ahead(); }) {}

Loader::~Loader() {
  static_cast<void>(settled());
  order(Ahead::no_more);
  thread_.join();
}

void Loader::read(std::int64_t consumed, const SampleTurn& turn, LoadedStep& into) {
  into.consumed = consumed;
  into.turn = turn;
  numbers_.clear();
  sampler_->list(consumed, turn, numbers_);
  const auto micro = static_cast<std::size_t>(turn.micro_batch);
  into.batches.resize(numbers_.size() / micro);
  for (std::size_t i = 0; i < into.batches.size(); ++i)
    collect(*dataset_, std::span(numbers_).subspan(i * micro, micro), sample_, into.batches[i]);
}

void Loader::read_ahead() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return state_ == Ahead::wanted || state_ == Ahead::no_more; });
    if (state_ == Ahead::no_more) return;
    lock.unlock();
    Ahead outcome = Ahead::ready;
    try {
      read(ahead_.consumed, ahead_.turn, ahead_);
    } catch (...) {
      failure_ = std::current_exception();
      outcome = Ahead::failed;
    }
    lock.lock();
    state_ = outcome;
    changed_.notify_all();
  }
}

Loader::Ahead Loader::settled() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return state_ != Ahead::wanted; });
  return state_;
}

void Loader::order(Ahead what) {
  const std::lock_guard lock(mutex_);
  state_ = what;
  changed_.notify_all();
}

bool Loader::guessed(const SampleTurn& turn) {
  return settled() != Ahead::nothing && ahead_.consumed == consumed_ && ahead_.turn == turn;
}

void Loader::read_next(const SampleTurn& turn) {
  ahead_.consumed = consumed_;
  ahead_.turn = turn;
  order(Ahead::wanted);
}

std::exception_ptr Loader::trouble_ahead(const SampleTurn& turn) {
  if (!guessed(turn)) {
    failure_ = nullptr;
    read_next(turn);
    static_cast<void>(settled());
  }
  return failure_;
}

std::span<const HostBatch> Loader::next(const SampleTurn& turn) {
  const bool is_read = guessed(turn);
  order(Ahead::nothing);
  // A failure is of no concern where it is of a step that nobody asked for.
  const std::exception_ptr failure = std::exchange(failure_, nullptr);
  if (is_read && failure) std::rethrow_exception(failure);
  if (is_read)
    std::swap(now_, ahead_);
  else
    read(consumed_, turn, now_);
  consumed_ += turn.global_batch;
  read_next(turn);
  return now_.batches;
}

}  // namespace weft::data
