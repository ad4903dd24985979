// DeepSpeed's file of a job that is tried small.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace weft::cli {

struct SmallFile {
  std::filesystem::path path;
  std::string content;  // empty: the job names no such file, or one that is no JSON, which its reader refuses
};

/// The file that `words` name with --deepspeed_config, without batches, lengths that grow and what writes
/// files: it is to lie in `folder`, and the words name it there. Looked for beside the job's own file too;
/// fails with Kind::usage where it is in neither place.
SmallFile small_deepspeed(std::vector<std::string>& words, const std::filesystem::path& job_file,
                          const std::filesystem::path& folder);

}  // namespace weft::cli
