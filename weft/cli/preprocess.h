// The flags of weft preprocess, and what its parts share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/data/preprocess.h"
#include "weft/text/open.h"

namespace weft::cli {

struct PreprocessFlags {
  data::PreprocessOptions work;
  TokenizerOptions tokenizer;
  std::string tokenizer_name;
  std::string broken_lines = "stop", input_format = "auto", lang = "english";
  bool keep_newlines = false;
  bool find_optimal_num_workers = false;
  std::vector<int> workers_to_check = {16, 32, 64};
  std::int64_t max_documents = 100000;
  std::int64_t log_interval = 1000;
  bool merge = false, multimodal = false, json = false;
  int cut = 0;
  std::string inspect;
  std::int64_t documents = 3;
};

/// --inspect PREFIX: counts, a histogram of lengths, the first documents, as text where a tokenizer is given.
void inspect_data(const PreprocessFlags& flags);
/// The tokenizer that the flags name, or nothing.
std::unique_ptr<Tokenizer> tokenizer_of(const PreprocessFlags& flags);

}  // namespace weft::cli
