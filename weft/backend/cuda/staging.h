// Copies between the host's ordinary memory and the GPU's, each way on a stream of its own, beside what
// computes.
//
// Bytes travel between a pinned page of the host and a page of the GPU's that is its twin. Between twin and
// tensor they are copied in the stream that computes, so a copy takes its turn there, as short as memory is
// fast, and the long way is nobody's turn:
//
//     up    host -> pinned page -(travels)-> twin -(computes)-> tensor
//     down  tensor -(computes)-> twin -(travels)-> pinned page -> host
//
// Where all pages are under way another one is made, up to `most`: then the host waits for the oldest. A step
// asks for less than that between two waits, so it does not wait here.
#pragma once

#include <gpu_notes.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "weft/backend/cuda/runtime.h"

namespace weft::cuda {

struct StagingPage {
  static constexpr std::size_t bytes = gpu::staging_page;
  Pinned here{bytes};
  Aside twin{bytes};
  Event travelled;          // all of one lies in the other
  Event passed;             // all of the twin has come from a tensor, or has gone to one
  void* to = nullptr;       // of the host, where it came down and nobody asked for it yet
  std::size_t held = 0;     // so many bytes
  std::uint64_t place = 0;  // in the device's order

  /// The host waits for what travels, and has it.
  void settle();
};

/// Pages that are used in turn.
class StagingRing {
 public:
  static constexpr std::size_t most = 32;
  /// The page that was used longest ago, with nothing in it; a new one where that is still under way. Twins
  /// are written in this stream.
  StagingPage& next(const Stream& writes);
  /// Every page, from the one that was used longest ago, so that each wait is for what comes next.
  template <class Visit>
  void each(const Visit& visit) const {
    for (std::size_t i = 1; i <= pages_.size(); ++i) visit(*pages_[(turn_ + i) % pages_.size()]);
  }

 private:
  std::vector<std::unique_ptr<StagingPage>> pages_;
  std::size_t turn_ = 0;
};

/// To the GPU. The host fills a page while those before travel, and returns when all bytes are in pages: what
/// it copied from is its own again. Short copies share a page.
class GoingUp {
 public:
  explicit GoingUp(const Stream& computes) : computes_(&computes) {}
  void copy(void* to, const void* from, std::int64_t bytes);
  void finish() const { travels_.finish(); }

 private:
  void send(std::byte* to, const std::byte* from, std::size_t bytes);

  const Stream* computes_;
  Stream travels_;
  StagingRing ring_;
  StagingPage* page_ = nullptr;
  std::size_t used_ = 0;  // bytes of the page
};

/// From the GPU. Bytes stay in their page until somebody asks for the place in the device's order that they
/// were given; a page that is wanted again hands over what it still holds.
class ComingDown {
 public:
  explicit ComingDown(const Stream& computes) : computes_(&computes) {}
  void copy(void* to, const void* from, std::int64_t bytes, std::uint64_t place);
  /// Hands over what came for places up to this one. The host waits for it.
  void hand_over(std::uint64_t place) const;
  void finish() const { travels_.finish(); }
  /// An event of it is behind all copies, and behind what was asked of the other stream before the last.
  const Stream& travels() const { return travels_; }

 private:
  void fetch(StagingPage& page, const std::byte* from) const;

  const Stream* computes_;
  Stream travels_;
  StagingRing ring_;
};

}  // namespace weft::cuda
