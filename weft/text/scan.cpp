// Scanners for the patterns everybody uses: GPT-2's, cl100k's family and o200k's family, without a regex
// engine.
#include <array>
#include <optional>

#include "weft/text/split.h"
#include "weft/text/unicode.h"

namespace weft {

namespace {

using unicode::Classes;

constexpr auto word = Classes::letter;
constexpr std::uint8_t not_symbol = Classes::letter | Classes::number | Classes::space;

// Reads classes of code points out of a text; what lies at the end has class `space` so that runs stop there,
// and no bytes so that nobody takes it for a space.
class ClassReader {
 public:
  ClassReader(std::string_view text, const Classes& classes) : text_(text), classes_(classes) {}

  struct ClassAt {
    std::uint8_t bits;
    std::uint8_t bytes;
  };
  [[nodiscard]] ClassAt see(std::size_t at) const {
    if (at >= text_.size()) return {0, 0};
    const auto byte = static_cast<unsigned char>(text_[at]);
    if (byte < 0x80) return {classes_.of_ascii(byte), 1};
    const unicode::Rune rune = unicode::rune_at(text_, at);
    return {classes_.of(rune.code), static_cast<std::uint8_t>(rune.bytes)};
  }
  [[nodiscard]] unsigned char byte(std::size_t at) const {
    return at < text_.size() ? static_cast<unsigned char>(text_[at]) : 0;
  }
  [[nodiscard]] std::size_t size() const { return text_.size(); }

  // The end of a run whose members have one of `bits`.
  [[nodiscard]] std::size_t run(std::size_t at, std::uint8_t bits) const {
    for (;;) {
      const ClassAt seen = see(at);
      if ((seen.bits & bits) == 0) return at;
      at += seen.bytes;
    }
  }
  // The end of a run of [^\s\p{L}\p{N}].
  [[nodiscard]] std::size_t run_symbols(std::size_t at) const {
    for (;;) {
      const ClassAt seen = see(at);
      if (seen.bytes == 0 || (seen.bits & not_symbol) != 0) return at;
      at += seen.bytes;
    }
  }
  [[nodiscard]] std::size_t run_newlines(std::size_t at, bool slashes) const {
    while (byte(at) == '\r' || byte(at) == '\n' || (slashes && byte(at) == '/')) ++at;
    return at;
  }

  // How long 's 't 're 've 'm 'll 'd is here; 0 where there is none.
  [[nodiscard]] std::size_t contraction(std::size_t at) const {
    if (byte(at) != '\'') return 0;
    const unsigned char one = byte(at + 1), two = byte(at + 2);
    if (one == 's' || one == 't' || one == 'm' || one == 'd') return 2;
    const bool long_one = (one == 'l' && two == 'l') || ((one == 'v' || one == 'r') && two == 'e');
    return long_one ? 3 : 0;
  }
  // The same in any case; U+017F folds to s.
  [[nodiscard]] std::size_t contraction_any_case(std::size_t at) const {
    if (byte(at) != '\'') return 0;
    const auto lower = [&](std::size_t k) { return static_cast<unsigned char>(byte(k) | 0x20); };
    if (byte(at + 1) == 0xc5 && byte(at + 2) == 0xbf) return 3;
    const unsigned char one = lower(at + 1), two = lower(at + 2);
    if (one == 's' || one == 't' || one == 'm' || one == 'd') return 2;
    const bool long_one = (one == 'l' && two == 'l') || ((one == 'v' || one == 'r') && two == 'e');
    return long_one ? 3 : 0;
  }

  // \s+(?!\S)|\s+ : all of the white space at the end, else all but its last code point, else that one.
  [[nodiscard]] std::size_t spaces(std::size_t at, std::size_t end) const {
    if (end == size()) return end;
    const std::size_t last = unicode::previous(text_, end);
    return last > at ? last : end;
  }
  // \s*[\r\n] : up to the last newline of a run of white space, if there is one.
  [[nodiscard]] std::optional<std::size_t> lines(std::size_t at, std::size_t end) const {
    for (std::size_t k = end; k > at; --k) {
      if (byte(k - 1) == '\n' || byte(k - 1) == '\r') return k;
    }
    return std::nullopt;
  }

 private:
  std::string_view text_;
  const Classes& classes_;
};

// '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
struct Gpt2 {
  [[nodiscard]] std::size_t next(const ClassReader& text, std::size_t at) const {
    if (const std::size_t bytes = text.contraction(at)) return at + bytes;
    std::size_t from = at;
    ClassReader::ClassAt seen = text.see(at);
    if (text.byte(at) == ' ') {
      const ClassReader::ClassAt after = text.see(at + 1);
      if (after.bytes > 0 && (after.bits & Classes::space) == 0) {
        from = at + 1;
        seen = after;
      }
    }
    if ((seen.bits & word) != 0) return text.run(from + seen.bytes, word);
    if ((seen.bits & Classes::number) != 0) return text.run(from + seen.bytes, Classes::number);
    if ((seen.bits & Classes::space) == 0) return text.run_symbols(from + seen.bytes);
    return text.spaces(at, text.run(at, Classes::space));
  }
};

enum class Contractions { none, any_case };
enum class Trailing { by_lines, whole };  // whole: \s++$ comes before \s*[\r\n]

struct Shape {
  int digits = 3;  // \p{N}{1,digits}
  Contractions contractions = Contractions::any_case;
  Trailing trailing = Trailing::by_lines;
};

std::size_t run_digits(const ClassReader& text, std::size_t at, int most) {
  for (int k = 0; k < most; ++k) {
    const ClassReader::ClassAt seen = text.see(at);
    if ((seen.bits & Classes::number) == 0) break;
    at += seen.bytes;
  }
  return at;
}

// ` ?[^\s\p{L}\p{N}]+[\r\n]*` where a symbol, or a space before one, was seen; `at` otherwise.
std::size_t symbols(const ClassReader& text, std::size_t at, bool slashes) {
  const std::size_t from = text.byte(at) == ' ' ? at + 1 : at;
  const std::size_t end = text.run_symbols(from);
  return end > from ? text.run_newlines(end, slashes) : at;
}

std::size_t white(const ClassReader& text, std::size_t at, Trailing trailing) {
  const std::size_t end = text.run(at, Classes::space);
  if (end == text.size() && trailing == Trailing::whole) return end;
  if (const auto line = text.lines(at, end)) return *line;
  return text.spaces(at, end);
}

// (contractions)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
struct Cl100k {
  Shape shape;
  [[nodiscard]] std::size_t next(const ClassReader& text, std::size_t at) const {
    if (shape.contractions == Contractions::any_case) {
      if (const std::size_t bytes = text.contraction_any_case(at)) return at + bytes;
    }
    const ClassReader::ClassAt seen = text.see(at);
    if ((seen.bits & word) != 0) return text.run(at + seen.bytes, word);
    if ((seen.bits & Classes::number) != 0) return run_digits(text, at, shape.digits);
    if ((seen.bits & Classes::newline) == 0) {
      const std::size_t from = at + seen.bytes;
      if (const std::size_t end = text.run(from, word); end > from) return end;
    }
    if (const std::size_t end = symbols(text, at, false); end > at) return end;
    return white(text, at, shape.trailing);
  }
};

// p?U*L+(contraction)?|p?U+L*(contraction)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
// with p = [^\r\n\p{L}\p{N}], U = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], L = [\p{Ll}\p{Lm}\p{Lo}\p{M}].
struct O200k {
  Shape shape;

  // The end of U*L+ from `at`; `at` where it does not match.
  [[nodiscard]] static std::size_t lower_word(const ClassReader& text, std::size_t at) {
    std::size_t up = at, last_end = at;
    for (;;) {
      const ClassReader::ClassAt seen = text.see(up);
      if ((seen.bits & Classes::upper) == 0) break;
      up += seen.bytes;
      if ((seen.bits & Classes::lower) != 0) last_end = up;
    }
    const std::size_t end = text.run(up, Classes::lower);
    // Where nothing of L follows, U* gives back until what it gave back is of L.
    return end > up ? end : last_end;
  }

  [[nodiscard]] std::size_t words(const ClassReader& text, std::size_t at) const {
    const ClassReader::ClassAt seen = text.see(at);
    const bool prefix = seen.bytes > 0 && (seen.bits & (word | Classes::number | Classes::newline)) == 0;
    const std::size_t inner = at + seen.bytes;
    if (prefix) {
      if (const std::size_t end = lower_word(text, inner); end > inner) return end;
    }
    if (const std::size_t end = lower_word(text, at); end > at) return end;
    if (prefix) {
      if (const std::size_t end = text.run(inner, Classes::upper); end > inner) return end;
    }
    return text.run(at, Classes::upper);
  }

  [[nodiscard]] std::size_t next(const ClassReader& text, std::size_t at) const {
    if (const std::size_t end = words(text, at); end > at) {
      return shape.contractions == Contractions::any_case ? end + text.contraction_any_case(end) : end;
    }
    if ((text.see(at).bits & Classes::number) != 0) return run_digits(text, at, shape.digits);
    if (const std::size_t end = symbols(text, at, true); end > at) return end;
    return white(text, at, shape.trailing);
  }
};

template <class Rule>
class Scanner final : public Splitter {
 public:
  explicit Scanner(Rule rule) : rule_(rule) {}

  std::size_t split(std::string_view text, std::size_t at, std::size_t most,
                    std::vector<ByteRange>& pieces) const override {
    const ClassReader reader(text, classes_);
    for (std::size_t found = 0; found < most && at < text.size(); ++found) {
      const std::size_t end = rule_.next(reader, at);
      pieces.push_back({at, end});
      at = end;
    }
    return at;
  }

 private:
  Rule rule_;
  Classes classes_;
};

struct Known {
  std::string_view pattern;
  enum class Rule { gpt2, cl100k, o200k } rule;
  Shape shape = {};
};

// The same language is written in several ways; each spelling here was met in a tokenizer people use.
constexpr std::array<Known, 10> known{{
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)", Known::Rule::gpt2},
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", Known::Rule::gpt2},
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", Known::Rule::gpt2},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)",
     Known::Rule::cl100k,
     {.digits = 3, .contractions = Contractions::any_case, .trailing = Trailing::whole}},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     Known::Rule::cl100k},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     Known::Rule::cl100k,
     {.digits = 1}},
    {R"([^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
     Known::Rule::cl100k,
     {.digits = 1, .contractions = Contractions::none}},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     Known::Rule::o200k},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     Known::Rule::o200k,
     {.digits = 1, .contractions = Contractions::none}},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     Known::Rule::o200k,
     {.digits = 3, .contractions = Contractions::none}},
}};

}  // namespace

std::string_view gpt2_pattern() { return known[1].pattern; }
std::string_view cl100k_pattern() { return known[3].pattern; }
std::string_view o200k_pattern() { return known[7].pattern; }
std::string_view megatron_v1_pattern() { return known[6].pattern; }
std::string_view megatron_v2_pattern() { return known[8].pattern; }

std::vector<std::string_view> known_patterns() {
  std::vector<std::string_view> patterns;
  for (const Known& one : known) patterns.push_back(one.pattern);
  return patterns;
}

std::unique_ptr<Splitter> make_scanner(std::string_view pattern) {
  for (const Known& one : known) {
    if (one.pattern != pattern) continue;
    switch (one.rule) {
      case Known::Rule::gpt2:
        return std::make_unique<Scanner<Gpt2>>(Gpt2{});
      case Known::Rule::cl100k:
        return std::make_unique<Scanner<Cl100k>>(Cl100k{one.shape});
      case Known::Rule::o200k:
        return std::make_unique<Scanner<O200k>>(O200k{one.shape});
    }
  }
  return nullptr;
}

}  // namespace weft
