// A checkpoint's directory as a reader finds it: complete and consistent, or refused by name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "weft/checkpoint/index.h"
#include "weft/checkpoint/safetensors.h"

namespace weft::checkpoint {

inline constexpr const char* complete_name = "COMPLETE";

/// What the COMPLETE mark says: the index's name and hash. It is written last, so a directory that has it has
/// everything.
std::string complete_text(const std::string& index_name, const Hash& index);

/// An opened checkpoint. Files are mapped when they are first asked for, and their headers checked against
/// the index.
class OpenStep {
 public:
  /// Fails with Kind::data where the mark is missing, or mark, index, facts or a file's size are not what was
  /// written. Tensors' bytes are not read.
  explicit OpenStep(std::filesystem::path directory);

  const std::filesystem::path& directory() const { return directory_; }
  const std::string& index_name() const { return index_name_; }
  const Index& index() const { return index_; }
  const Hash& index_hash() const { return index_hash_; }
  /// JSON.
  const std::string& facts() const { return facts_; }
  /// Where an attached file lies, "tokenizer" and "vocab.json", after its hash was compared; empty where
  /// there is none.
  std::filesystem::path attached(std::string_view folder, std::string_view name) const;
  /// Compares the hash of every attached file.
  void check_attached() const;
  /// Of all files, without index, facts and mark.
  std::int64_t bytes() const;

  /// The block's bytes, after their hash was compared.
  std::span<const std::byte> read(const std::string& tensor, const Stored& stored, const Block& block);

 private:
  const TensorFile& file(std::size_t number);
  void check(const AttachedFact& file) const;
  void must_measure(const std::string& name, std::int64_t bytes) const;

  std::filesystem::path directory_;
  std::string index_name_;
  Index index_;
  Hash index_hash_;
  std::string facts_;
  std::map<std::size_t, TensorFile> files_;
};

struct Verified {
  std::int64_t tensors = 0, blocks = 0, bytes = 0;
};
/// Reads every byte and compares every hash; fails at the first damage, naming it.
Verified verify(const std::filesystem::path& directory);

}  // namespace weft::checkpoint
