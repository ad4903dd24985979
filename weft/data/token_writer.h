// Writing PREFIX.bin and PREFIX.idx, in constant memory; joining and cutting data sets.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/base/file.h"
#include "weft/data/token_file.h"

namespace weft::data {

/// Writes beside the final names (PREFIX.bin.partial, …) and gives the names in finish(), the index last, so
/// a run that is killed never leaves something that looks like a data set. A new writer of the same prefix
/// removes what a killed one left; so does a destructor.
class TokenWriter {
 public:
  struct Options {
    TokenType type = TokenType::i32;
    Modes modes = Modes::ignored;  // wanted: the index gets a mode for each sequence
  };
  TokenWriter(std::string prefix, Options options, const FileSystem& files = disk());
  ~TokenWriter();
  TokenWriter(const TokenWriter&) = delete;
  TokenWriter& operator=(const TokenWriter&) = delete;

  /// A whole document of several sequences; an empty one is only a repeated boundary.
  void add_document(std::span<const std::int32_t> tokens, std::span<const std::int32_t> lengths,
                    std::span<const std::int8_t> modes = {});
  /// Every document of another data set of the same type, behind what is there.
  void append(const TokenFile& other);
  /// The documents [begin, end) of another data set.
  void append_documents(const TokenFile& other, std::int64_t begin, std::int64_t end);
  void finish();

  std::int64_t num_documents() const { return num_documents_; }
  std::int64_t num_sequences() const { return num_sequences_; }
  std::int64_t num_tokens() const { return num_tokens_; }

 private:
  class Stream;  // a partial file with a buffer

  void put_tokens(std::span<const std::int32_t> tokens);
  void put_sequence(std::int64_t length, std::int8_t mode);
  void end_document();
  void write_index(File& out);

  std::string prefix_;
  Options options_;
  const FileSystem& files_;
  std::unique_ptr<Stream> bin_, lengths_, documents_, modes_;
  std::int64_t num_documents_ = 0;
  std::int64_t num_sequences_ = 0;
  std::int64_t num_tokens_ = 0;
};

/// One data set out of several, in the order given. All must have the first one's type.
void merge(std::span<const std::string> prefixes, const std::string& output, Modes modes = Modes::ignored);
/// The data sets in a folder, sorted by name: every file there must be one half of a pair.
std::vector<std::string> prefixes_in(const std::string& folder);
/// PREFIX cut by documents into `parts` of nearly equal count: OUTPUT_0, OUTPUT_1, …
void split(const std::string& prefix, int parts, const std::string& output);

}  // namespace weft::data
