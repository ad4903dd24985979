// Patterns that have no scanner, matched by PCRE2 with the meaning the originals' engines give them.
#include <cstdint>
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

// PCRE2's \s under UCP also matches U+180E, which is no white space; the property says what the originals
// mean. \h and \H, hexadecimal digits in Oniguruma and horizontal space in PCRE2, are refused rather than
// confused.
std::string translated(std::string_view pattern, Dialect dialect) {
  std::string out;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != '\\' || at + 1 == pattern.size()) {
      out.push_back(pattern[at]);
      continue;
    }
    const char escaped = pattern[++at];
    if (escaped == 's' || escaped == 'S') {
      out.append(escaped == 's' ? "\\p{White_Space}" : "\\P{White_Space}");
    } else if ((escaped == 'h' || escaped == 'H') && dialect == Dialect::oniguruma) {
      fail(Kind::data, "pattern: \\", escaped, " at ", at - 1, " of '", pattern,
           "' means hexadecimal digits; write [0-9a-fA-F]");
    } else {
      out.append({'\\', escaped});
    }
  }
  return out;
}

class Regex final : public Splitter {
 public:
  Regex(std::string_view pattern, Dialect dialect) {
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

  std::size_t split(std::string_view text, std::size_t at, std::size_t most,
                    std::vector<Span>& pieces) const override {
    const std::unique_ptr<pcre2_match_data, FreeMatch> match(pcre2_match_data_create(1, nullptr));
    for (std::size_t found = 0; found < most && at < text.size();) {
      const int count = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                                    PCRE2_NO_UTF_CHECK, match.get(), limits_.get());
      if (count == PCRE2_ERROR_NOMATCH) return text.size();
      if (count < 0) fail(Kind::data, "pattern: at byte ", at, " of ", text.size(), ": ", message(count));
      const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(match.get());
      if (ends[1] > ends[0]) {
        pieces.push_back({ends[0], ends[1]});
        ++found;
        at = ends[1];
      } else {
        at = ends[1] + unicode::rune_at(text, ends[1]).bytes;
        if (ends[1] >= text.size()) return text.size();
      }
    }
    return at;
  }

 private:
  static std::string message(int error) {
    char buffer[256] = {};
    pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(buffer), sizeof buffer);
    return buffer;
  }

  std::unique_ptr<pcre2_code, FreeCode> code_;
  std::unique_ptr<pcre2_match_context, FreeLimits> limits_;
};

}  // namespace

std::vector<Span> Splitter::all(std::string_view text) const {
  std::vector<Span> pieces;
  for (std::size_t at = 0; at < text.size();) at = split(text, at, 4096, pieces);
  return pieces;
}

std::unique_ptr<Splitter> make_regex_splitter(std::string_view pattern, Dialect dialect) {
  return std::make_unique<Regex>(pattern, dialect);
}

std::unique_ptr<Splitter> make_splitter(std::string_view pattern, Dialect dialect) {
  if (auto scanner = make_scanner(pattern)) return scanner;
  return make_regex_splitter(pattern, dialect);
}

}  // namespace weft
