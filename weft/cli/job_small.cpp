#include "weft/cli/job_small.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/flags.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* left_out[] = {"train_batch_size",
                                    "train_micro_batch_size_per_gpu",
                                    "gradient_accumulation_steps",
                                    "curriculum_learning",
                                    "data_efficiency",
                                    "tensorboard",
                                    "csv_monitor",
                                    "wandb",
                                    "comet",
                                    "flops_profiler"};

/// Of the words, the one that holds the file's path, and where in it that begins.
struct PathPlace {
  std::size_t word, from;
};
std::vector<PathPlace> places(const std::vector<std::string>& words) {
  std::vector<PathPlace> out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = std::min(words[i].find('='), words[i].size());
    if (!words[i].starts_with("--") || dashed(words[i].substr(2, equals - 2)) != "deepspeed-config") continue;
    if (equals < words[i].size())
      out.push_back({i, equals + 1});
    else if (i + 1 < words.size())
      out.push_back({i + 1, 0});
  }
  return out;
}

fs::path found(const fs::path& said, const fs::path& job_file) {
  const fs::path beside = job_file.parent_path() / said.filename();
  for (const fs::path& path : {said, beside})
    if (std::error_code none; fs::is_regular_file(path, none)) return path;
  fail(Kind::usage, "job run: --small keeps what ", said.string(),
       " says of layout and precision, and it is neither there nor ", beside.string());
}

}  // namespace

SmallFile small_deepspeed(std::vector<std::string>& words, const fs::path& job_file, const fs::path& folder) {
  const std::vector<PathPlace> named = places(words);
  if (named.empty()) return {};
  std::string& word = words[named.back().word];  // the last one counts
  const fs::path path = found(word.substr(named.back().from), job_file);
  word.replace(named.back().from, std::string::npos, path.string());
  auto json = nlohmann::ordered_json::parse(read_file(path), nullptr, false, true);
  if (!json.is_object()) return {};
  for (const char* key : left_out) json.erase(key);
  SmallFile out{folder / path.filename(), json.dump(1) + "\n"};
  word.replace(named.back().from, std::string::npos, out.path.string());
  return out;
}

}  // namespace weft::cli
