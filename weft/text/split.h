// Splitter: cuts a text into the pieces that are encoded alone, by a pattern.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

namespace weft {

/// Bytes [begin, end) of a text.
struct ByteRange {
  std::size_t begin = 0, end = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

/// Const and safe for many threads. The text must be valid UTF-8.
class Splitter {
 public:
  virtual ~Splitter() = default;
  /// Finds matches from `at` on, until `most` are found or the text ends, and returns where to go on (the
  /// text's size when done). What no match covers is not reported: the known patterns cover everything.
  virtual std::size_t split(std::string_view text, std::size_t at, std::size_t most,
                            std::vector<ByteRange>& pieces) const = 0;
  /// All matches of a text.
  [[nodiscard]] virtual std::vector<ByteRange> all(std::string_view text) const;
};

/// Whose regular expressions a pattern was written for: they differ in ^ and $.
enum class Dialect {
  rust,      // tiktoken: ^ and $ are the ends of the text
  oniguruma  // tokenizer.json: ^ and $ are the ends of lines
};

/// The pattern of GPT-2, which r50k and p50k share.
[[nodiscard]] std::string_view gpt2_pattern();
[[nodiscard]] std::string_view cl100k_pattern();
[[nodiscard]] std::string_view o200k_pattern();
/// Megatron's own, of `--tiktoken-pattern v1` and `v2`.
[[nodiscard]] std::string_view megatron_v1_pattern();
[[nodiscard]] std::string_view megatron_v2_pattern();

/// What becomes of matches of no bytes, as `^` has one: all() tells of them, but right behind another match.
enum class EmptyMatches { passed_over, told };

/// A hand-written scanner where the pattern is a known one, which never matches nothing, PCRE2 otherwise.
[[nodiscard]] std::unique_ptr<Splitter> make_splitter(std::string_view pattern, Dialect dialect,
                                                      EmptyMatches empty = EmptyMatches::passed_over);
/// PCRE2 always: the oracle of the scanners, and the matcher of normalizers' patterns.
[[nodiscard]] std::unique_ptr<Splitter> make_regex_splitter(std::string_view pattern, Dialect dialect,
                                                            EmptyMatches empty = EmptyMatches::passed_over);
/// Whether a pattern may match no bytes, as `^` does.
[[nodiscard]] bool may_match_nothing(std::string_view pattern, Dialect dialect);
/// Every spelling that has a scanner.
[[nodiscard]] std::vector<std::string_view> known_patterns();
/// The scanner of a known pattern, or nothing.
[[nodiscard]] std::unique_ptr<Splitter> make_scanner(std::string_view pattern);

}  // namespace weft
