// Some steps of a rank, shown to a profiler that runs beside its process.
#pragma once

#include <cstdint>
#include <string>

#include "weft/tensor/device.h"
#include "weft/train/config.h"

namespace weft {

/// It is shown whole steps, and nothing between them and the run's end: what was asked for before is done by
/// then, and so is the last of them.
class ProfilerWindow {
 public:
  ProfilerWindow(const ProfileConfig& asked, Device& device, int rank);
  ProfilerWindow(const ProfilerWindow&) = delete;
  ProfilerWindow& operator=(const ProfilerWindow&) = delete;
  ~ProfilerWindow() { close(); }
  /// Of a run of these steps. Why it shows none of them; empty where it does, or nobody asked.
  std::string begin(std::int64_t first, std::int64_t last);
  void before(std::int64_t step);
  void after(std::int64_t step);

 private:
  void close() noexcept;

  ProfileConfig asked_;
  Device& device_;
  std::int64_t last_ = 0;
  bool open_ = false;
};

}  // namespace weft
