// Patterns that have no scanner, matched by PCRE2 with the meaning the originals' engines give them.
#include <cstdint>
#include <optional>
#include <string>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "weft/base/error.h"
#include "weft/text/split.h"
#include "weft/text/unicode.h"

namespace weft {

namespace {

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatch {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeLimits {
  void operator()(pcre2_match_context* limits) const { pcre2_match_context_free(limits); }
};

// What the originals mean by \s and \w: PCRE2's \s also matches U+180E, and its \w of 10.42 knows no marks.
constexpr std::string_view space = R"(\p{White_Space})";
std::string_view word_of(Dialect dialect) {
  return dialect == Dialect::rust ? R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d})"
                                  : R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";
}

// An escape as PCRE2 must read it. \h and \H, hexadecimal digits in Oniguruma and horizontal space in PCRE2,
// are refused rather than confused.
std::string escape(char letter, bool in_class, std::size_t at, std::string_view pattern, Dialect dialect) {
  const std::string_view word = word_of(dialect);
  if (letter == 's') return std::string(space);
  if (letter == 'S') return R"(\P{White_Space})";
  if (letter == 'w') return in_class ? std::string(word) : text("[", word, "]");
  if (letter == 'W' && !in_class) return text("[^", word, "]");
  if (letter == 'W')
    fail(Kind::data, "pattern: \\W inside brackets at ", at, " of '", pattern, "' is not supported");
  if ((letter == 'h' || letter == 'H') && dialect == Dialect::oniguruma) {
    fail(Kind::data, "pattern: \\", letter, " at ", at, " of '", pattern,
         "' means hexadecimal digits; write [0-9a-fA-F]");
  }
  return {'\\', letter};
}

// To Oniguruma X{1,3}+ is X{1,3} again and again, to the others an X{1,3} that gives nothing back.
bool repeats_interval(std::string_view pattern, std::size_t close, Dialect dialect) {
  const auto open = pattern.rfind('{', close);
  return dialect == Dialect::oniguruma && pattern.substr(close).starts_with("}+") &&
         open != std::string_view::npos && close > open + 1 &&
         pattern.substr(open + 1, close - open - 1).find_first_not_of("0123456789,") ==
             std::string_view::npos;
}

std::string translated(std::string_view pattern, Dialect dialect) {
  std::string out;
  bool in_class = false;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] == '\\' && at + 1 < pattern.size()) {
      out += escape(pattern[at + 1], in_class, at, pattern, dialect);
      ++at;
      continue;
    }
    if (!in_class && pattern[at] == '}' && repeats_interval(pattern, at, dialect)) {
      const auto interval = pattern.substr(pattern.rfind('{', at), at - pattern.rfind('{', at));
      if (!interval.starts_with("{1,")) {
        fail(Kind::data, "pattern: ", interval, "}+ at ", at, " of '", pattern, "' is not supported");
      }
      out.resize(out.size() - interval.size());
      continue;  // X{1,n} again and again is X+, and the + comes next
    }
    if (pattern[at] == '[') in_class = true;
    if (pattern[at] == ']') in_class = false;
    out.push_back(pattern[at]);
  }
  return out;
}

class Regex final : public Splitter {
 public:
  Regex(std::string_view pattern, Dialect dialect, EmptyMatches empty) : empty_(empty) {
    const std::string source = translated(pattern, dialect);
    const std::uint32_t options =
        PCRE2_UTF | PCRE2_UCP | (dialect == Dialect::oniguruma ? PCRE2_MULTILINE : PCRE2_DOLLAR_ENDONLY);
    int error = 0;
    PCRE2_SIZE where = 0;
    if (!unicode::valid(pattern)) fail(Kind::data, "pattern: is not UTF-8");
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.data()), source.size(), options, &error,
                              &where, nullptr));
    if (code_ == nullptr) fail(Kind::data, "pattern: '", pattern, "': ", message(error), " at ", where);
    // Without JIT matching is slower, never different.
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
    limits_.reset(pcre2_match_context_create(nullptr));
    pcre2_set_match_limit(limits_.get(), 50'000'000);
  }

  bool may_match_nothing() const {
    std::uint32_t may = 0;
    pcre2_pattern_info(code_.get(), PCRE2_INFO_MATCHEMPTY, &may);
    return may != 0;
  }

  std::size_t split(std::string_view text, std::size_t at, std::size_t most,
                    std::vector<ByteRange>& pieces) const override {
    const Match memory(pcre2_match_data_create(1, nullptr));
    for (std::size_t found = 0; found < most && at < text.size();) {
      const std::optional<ByteRange> match = next(text, at, memory);
      if (!match || match->begin == text.size()) return text.size();
      at = behind(text, *match);
      if (match->begin == match->end) continue;
      pieces.push_back(*match);
      ++found;
    }
    return at;
  }

  std::vector<ByteRange> all(std::string_view text) const override {
    if (empty_ == EmptyMatches::passed_over || text.empty()) return Splitter::all(text);
    const Match memory(pcre2_match_data_create(1, nullptr));
    std::vector<ByteRange> found;
    for (std::size_t at = 0; at <= text.size();) {
      const std::optional<ByteRange> match = next(text, at, memory);
      if (!match) break;
      at = behind(text, *match);
      const bool behind_another = !found.empty() && found.back().end == match->end;
      if (match->begin < match->end || !behind_another) found.push_back(*match);
    }
    return found;
  }

 private:
  using Match = std::unique_ptr<pcre2_match_data, FreeMatch>;

  std::optional<ByteRange> next(std::string_view text, std::size_t at, const Match& memory) const {
    const int count = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                                  PCRE2_NO_UTF_CHECK, memory.get(), limits_.get());
    if (count == PCRE2_ERROR_NOMATCH) return std::nullopt;
    if (count < 0) fail(Kind::data, "pattern: at byte ", at, " of ", text.size(), ": ", message(count));
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(memory.get());
    return ByteRange{ends[0], ends[1]};
  }
  /// Where to look for the next: behind what matched nothing a character is left out.
  static std::size_t behind(std::string_view text, const ByteRange& match) {
    if (match.begin < match.end) return match.end;
    return match.end < text.size() ? match.end + unicode::rune_at(text, match.end).bytes : text.size() + 1;
  }
  static std::string message(int error) {
    char buffer[256] = {};
    pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(buffer), sizeof buffer);
    return buffer;
  }

  std::unique_ptr<pcre2_code, FreeCode> code_;
  std::unique_ptr<pcre2_match_context, FreeLimits> limits_;
  EmptyMatches empty_;
};

}  // namespace

std::vector<ByteRange> Splitter::all(std::string_view text) const {
  std::vector<ByteRange> pieces;
  for (std::size_t at = 0; at < text.size();) at = split(text, at, 4096, pieces);
  return pieces;
}

std::unique_ptr<Splitter> make_regex_splitter(std::string_view pattern, Dialect dialect, EmptyMatches empty) {
  return std::make_unique<Regex>(pattern, dialect, empty);
}

bool may_match_nothing(std::string_view pattern, Dialect dialect) {
  return Regex(pattern, dialect, EmptyMatches::told).may_match_nothing();
}

std::unique_ptr<Splitter> make_splitter(std::string_view pattern, Dialect dialect, EmptyMatches empty) {
  // A scanner follows Rust's reading, which Oniguruma's leaves in one point.
  bool same = true;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] == '}') same = same && !repeats_interval(pattern, at, dialect);
  }
  if (auto scanner = same ? make_scanner(pattern) : nullptr) return scanner;
  return make_regex_splitter(pattern, dialect, empty);
}

}  // namespace weft
