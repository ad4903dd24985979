// From text files to token files: many threads encode, the order of the input is kept, memory does not grow
// with the data.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/data/lines.h"
#include "weft/data/sentences.h"
#include "weft/data/token_file.h"
#include "weft/text/tokenizer.h"

namespace weft::data {

enum class InputKind {
  by_name,
  json,
  text
};  // by_name: .txt (.txt.gz, .txt.zst) is text, a document a line; anything else JSON lines
enum class BrokenLines { stop, skip };

struct PreprocessOptions {
  std::vector<std::string> input;  // files and patterns
  std::string output_prefix;
  std::vector<std::string> json_keys = {"text"};
  InputKind kind = InputKind::by_name;
  BrokenLines broken = BrokenLines::stop;
  bool append_eod = false;
  bool split_sentences = false;
  Newlines newlines = Newlines::dropped;
  int workers = 1;
  /// More than one: the documents come out as if dealt to so many files in turn which are joined afterwards,
  /// as Megatron does it.
  int partitions = 1;
  bool keep_sequential_samples =
      false;  // cut into consecutive parts instead, which is the order of the input
  std::optional<std::int64_t> max_documents = {};
};

struct PreprocessReport {
  std::int64_t documents = 0, sentences = 0, tokens = 0, broken = 0, bytes = 0;
  double seconds = 0;
  std::vector<std::string> prefixes;  // what was written
  std::vector<std::string> empty;     // files of the input without a line
  std::string first_broken;           // what was wrong with the first line that was skipped
};

/// Told now and then: what is done, and the share of the input that is read.
using Progress = std::function<void(const PreprocessReport& so_far, double share)>;

/// Writes PREFIX_KEY_document (or _sentence) for each key. Fails before it starts where the options do not
/// fit together.
PreprocessReport preprocess(const PreprocessOptions& options, const Tokenizer& tokenizer,
                            const Progress& progress = {});

/// Encodes the first documents without writing anything: for finding a good number of workers.
PreprocessReport rehearse_preprocess(const PreprocessOptions& options, const Tokenizer& tokenizer);

}  // namespace weft::data
