// The indexed token files PREFIX.bin and PREFIX.idx, Megatron-LM's format: reading, with every length checked
// before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/file.h"

namespace weft::data {

/// How a token is stored; the values are the codes in the file.
enum class TokenType : std::uint8_t { u8 = 1, i8 = 2, i16 = 3, i32 = 4, i64 = 5, f64 = 6, f32 = 7, u16 = 8 };

std::size_t width(TokenType type);
std::string_view name(TokenType type);
/// u16 where a vocabulary is known and below 65500, else i32: the rule of the format's own tools.
TokenType token_type_for(std::optional<std::int64_t> vocabulary);
/// The smallest and largest id a type holds exactly.
struct TokenRange {
  std::int64_t low, high;
};
TokenRange range(TokenType type);

/// Values in a file that nobody aligned (the header of an index takes 34 bytes).
template <class T>
class Packed {
 public:
  Packed() = default;
  explicit Packed(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::size_t size() const { return bytes_.size() / sizeof(T); }
  T operator[](std::size_t i) const {
    T value;
    std::memcpy(&value, bytes_.data() + i * sizeof(T), sizeof(T));
    return value;
  }
  void prefetch(std::size_t i) const { __builtin_prefetch(bytes_.data() + i * sizeof(T)); }

 private:
  std::span<const std::byte> bytes_;
};

/// What an index says, each part checked against the size of the file but not yet element by element.
struct TokenIndex {
  TokenType type = TokenType::i32;
  Packed<std::int32_t> lengths;    // tokens of each sequence
  Packed<std::int64_t> pointers;   // where in the .bin each sequence begins, in bytes
  Packed<std::int64_t> documents;  // the first sequence of each document, and the number of sequences
  Packed<std::int8_t> modes;       // 0 text, 1 image; empty where the file is read as text
};

enum class Modes { ignored, wanted };  // nothing in the file says whether it has any
/// Refuses bytes that are not a whole index of a data file of `bin_bytes`. `who` is the name said in
/// messages.
TokenIndex parse_index(std::span<const std::byte> bytes, std::int64_t bin_bytes, const std::string& who,
                       Modes modes = Modes::ignored);

/// One data set on disk, mapped. Opening costs the same whatever its size: counts, ends and the size of the
/// .bin are checked then, each sequence when it is read, and all of them by verify().
class TokenFile {
 public:
  enum class Access { mapped, read };  // read: one system call a sequence (--no-mmap-bin-files)
  struct Options {
    Access access = Access::mapped;
    Modes modes = Modes::ignored;
  };
  explicit TokenFile(std::string prefix) : TokenFile(std::move(prefix), Options{}) {}
  TokenFile(std::string prefix, Options options);

  const std::string& prefix() const { return prefix_; }
  TokenType type() const { return index_.type; }
  std::int64_t num_sequences() const { return static_cast<std::int64_t>(index_.lengths.size()); }
  std::int64_t num_documents() const { return static_cast<std::int64_t>(index_.documents.size()) - 1; }
  std::int64_t num_tokens() const { return bin_bytes_ / static_cast<std::int64_t>(width(index_.type)); }
  const TokenIndex& index() const { return index_; }

  /// Tokens of a sequence.
  std::int64_t length(std::int64_t sequence) const;
  std::int8_t mode(std::int64_t sequence) const;
  struct Sequences {
    std::int64_t begin, end;
  };
  Sequences document(std::int64_t number) const;
  /// Fills `to` with tokens of one sequence, beginning with its token `from`.
  void read(std::int64_t sequence, std::int64_t from, std::span<std::int32_t> to) const;
  /// The same as stored, whatever the type.
  std::span<const std::byte> raw(std::int64_t sequence) const;

  /// Walks the whole index: lengths not negative, pointers where lengths put them, document bounds in order.
  void verify() const;

 private:
  struct Extent {
    std::int64_t at;      // bytes
    std::int64_t length;  // tokens
  };
  Extent extent(std::int64_t sequence) const;

  std::string prefix_;
  Access access_;
  MappedFile index_file_;
  TokenIndex index_;
  std::int64_t bin_bytes_ = 0;
  std::optional<MappedFile> bin_;  // one of the two
  std::optional<File> bin_file_;
};

std::string index_path(std::string_view prefix);
std::string bin_path(std::string_view prefix);
bool token_file_exists(std::string_view prefix);

}  // namespace weft::data
