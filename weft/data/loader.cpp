// Reading one step ahead.
#include "weft/data/loader.h"

#include <span>
#include <utility>

namespace weft::data {

Loader::Loader(std::shared_ptr<const Dataset> dataset, std::unique_ptr<Sampler> sampler,
               std::int64_t consumed)
    : dataset_(std::move(dataset)), sampler_(std::move(sampler)), consumed_(consumed) {}

Loader::~Loader() {
  if (ahead_.valid()) ahead_.wait();
}

Loader::Step Loader::read(std::int64_t consumed, const Turn& turn) const {
  Step step{consumed, turn, {}};
  const std::vector<std::int64_t> samples = sampler_->at(consumed, turn);
  const auto micro = static_cast<std::size_t>(turn.micro_batch);
  for (std::size_t at = 0; at < samples.size(); at += micro) {
    step.batches.push_back(collect(*dataset_, std::span(samples).subspan(at, micro)));
  }
  return step;
}

std::vector<HostBatch> Loader::next(const Turn& turn) {
  std::future<Step> ahead = std::move(ahead_);
  const bool guessed = ahead.valid() && ahead_from_ == consumed_ && ahead_turn_ == turn;
  if (ahead.valid() && !guessed) ahead.wait();  // its failure, if any, is of a step that nobody asked for
  Step step = guessed ? ahead.get() : read(consumed_, turn);
  consumed_ += turn.global_batch;
  ahead_from_ = consumed_;
  ahead_turn_ = turn;
  ahead_ = std::async(std::launch::async, [this, from = consumed_, turn] { return read(from, turn); });
  return std::move(step.batches);
}

}  // namespace weft::data
