// What the doctor finds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "weft/backend/plain_calls.h"

namespace weft::cli {

/// warn: it works, slower than it could.
enum class Verdict : std::uint8_t { good, warn, bad };
std::string_view word(Verdict);

struct Finding {
  Verdict verdict;
  std::string what, sentence;
};

/// Whether a launcher left this process all processors.
Finding binding(int allowed, int online);
/// Which of our own loops run, and the best that this processor would run where the program has none of them.
Finding loops_here(std::string_view run, std::string_view lacks);
/// What the training of small models leaves to plain loops of doubles.
Finding plain_loops();
Finding plain_loops(const PlainCalls& calls);
/// NVIDIA's driver and the models that it knows of.
Finding gpus(const std::filesystem::path& proc = "/proc");
/// Where the program's kernels could run, and what is known of them.
Finding gpu_kernels();
std::string findings_text(std::span<const Finding>);
std::string findings_json(std::span<const Finding>);

}  // namespace weft::cli
