// What the driver says of GPUs, and what this program can do with them.
#include <fstream>
#include <map>

#include "weft/backend/gpus.h"
#include "weft/base/format.h"
#include "weft/cli/doctor.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;

/// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.12  Wed Sep 20 …": the word of digits and dots.
std::string version_of_driver(const fs::path& proc) {
  std::ifstream in(proc / "driver/nvidia/version");
  for (std::string word; in >> word;)
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos)
      return word;
  return "";
}

/// "Model: \t NVIDIA H100 80GB HBM3": how many of each.
std::map<std::string, int> models_known(const fs::path& proc) {
  std::map<std::string, int> out;
  std::error_code none;
  for (const auto& gpu : fs::directory_iterator(proc / "driver/nvidia/gpus", none)) {
    std::ifstream in(gpu.path() / "information");
    for (std::string line; std::getline(in, line);) {
      if (!line.starts_with("Model:")) continue;
      const auto first = line.find_first_not_of(" \t", 6);
      if (first != std::string::npos) ++out[line.substr(first, line.find_last_not_of(" \t\r") + 1 - first)];
    }
  }
  return out;
}

std::string kernels_here(const GpusHere& here) {
  if (here.built_with.empty()) return here.missing;
  std::string out = text("built with ", here.built_with);
  out += here.missing.empty() ? text("; from GPU to GPU: ", line_library()) : text(", but ", here.missing);
  for (int i = 0; i < here.count(); ++i) {
    const GpuHere& gpu = here.all[std::size_t(i)];
    out += text("; cuda:", i, " has compute capability ", gpu.major, ".", gpu.minor, ", ", gpu.units,
                " multiprocessors and ", human_bytes(free_on_gpu(i)), " free");
  }
  return out;
}

}  // namespace

Finding gpus(const fs::path& proc) {
  const std::string driver = version_of_driver(proc);
  if (driver.empty()) return {Verdict::good, "GPUs", "no driver of NVIDIA's is loaded"};
  std::vector<std::string> found;
  for (const auto& [model, count] : models_known(proc)) found.push_back(text(count, " x ", model));
  return {Verdict::good, "GPUs",
          text("driver ", driver, ", ", found.empty() ? "which knows of none" : join(found, ", "))};
}

Finding gpu_kernels() {
  return {
      Verdict::good, "GPU kernels",
      kernels_here(gpus_here()) +
          "; every kernel runs on an emulator in the tests and compiles for sm_80, sm_90a and sm_100a; of "
          "GPUs one H100 has run them for us, alone (docs/gpu.md)"};
}

}  // namespace weft::cli
