#include "weft/backend/cuda/staging.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace weft::cuda {
namespace {

constexpr std::size_t page_bytes = StagingPage::bytes;

void ask_copy(const Stream& stream, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  check(cudaMemcpyAsync(to, from, bytes, kind, stream.get()), "a copy");
}

/// Calls copy(bytes done, bytes of this piece).
template <class Copy>
void in_pieces(std::int64_t bytes, const Copy& copy) {
  const auto all = std::size_t(bytes);
  for (std::size_t done = 0; done < all; done += page_bytes) copy(done, std::min(all - done, page_bytes));
}

}  // namespace

void StagingPage::settle() {
  travelled.wait();
  if (void* const host = std::exchange(to, nullptr)) std::memcpy(host, here.data(), held);
}

StagingPage& StagingRing::next(const Stream& writes) {
  const std::size_t oldest = pages_.empty() ? 0 : (turn_ + 1) % pages_.size();
  if (pages_.empty() || (pages_.size() < most && !pages_[oldest]->travelled.reached())) {
    if (!pages_.empty()) ++turn_;
    const auto made = pages_.insert(pages_.begin() + std::ptrdiff_t(turn_), std::make_unique<StagingPage>());
    gpu::Lent{(*made)->twin.data(), std::int64_t(page_bytes)}(writes.get());
  } else {
    turn_ = oldest;
    pages_[turn_]->settle();
  }
  return *pages_[turn_];
}

void GoingUp::copy(void* to, const void* from, std::int64_t bytes) {
  in_pieces(bytes, [&](std::size_t done, std::size_t piece) {
    send(static_cast<std::byte*>(to) + done, static_cast<const std::byte*>(from) + done, piece);
  });
}

// The host has seen that the page has travelled, but not that tensors have what lay in the twin.
void GoingUp::send(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t line = 256;
  if (!page_ || used_ + bytes > page_bytes) {
    page_ = &ring_.next(travels_);
    page_->passed.hold(travels_);
    used_ = 0;
  }
  std::byte *const here = page_->here.data() + used_, *const twin = page_->twin.data() + used_;
  used_ = std::min(page_bytes, (used_ + bytes + line - 1) / line * line);
  std::memcpy(here, from, bytes);
  ask_copy(travels_, twin, here, bytes, cudaMemcpyHostToDevice);
  page_->travelled.record(travels_);
  page_->travelled.hold(*computes_);
  ask_copy(*computes_, to, twin, bytes, cudaMemcpyDeviceToDevice);
  page_->passed.record(*computes_);
}

void ComingDown::copy(void* to, const void* from, std::int64_t bytes, std::uint64_t place) {
  in_pieces(bytes, [&](std::size_t done, std::size_t piece) {
    StagingPage& page = ring_.next(*computes_);
    page.to = static_cast<std::byte*>(to) + done;
    page.held = piece;
    page.place = place;
    fetch(page, static_cast<const std::byte*>(from) + done);
  });
}

// The host has seen that the page has travelled, so the twin may be written again.
void ComingDown::fetch(StagingPage& page, const std::byte* from) const {
  ask_copy(*computes_, page.twin.data(), from, page.held, cudaMemcpyDeviceToDevice);
  page.passed.record(*computes_);
  page.passed.hold(travels_);
  ask_copy(travels_, page.here.data(), page.twin.data(), page.held, cudaMemcpyDeviceToHost);
  page.travelled.record(travels_);
}

void ComingDown::hand_over(std::uint64_t place) const {
  ring_.each([&](StagingPage& page) {
    if (page.to && page.place <= place) page.settle();
  });
}

}  // namespace weft::cuda
