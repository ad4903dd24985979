#include "weft/text/jinja/tokens.h"

#include <algorithm>
#include <array>

#include "weft/base/error.h"
#include "weft/text/unicode.h"

namespace weft::jinja {

namespace {

constexpr std::array<std::string_view, 6> pairs{"//", "**", "==", "!=", ">=", "<="};
constexpr std::string_view signs = "+-/*%~[](){}><=.:|,";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string with_plain_line_ends(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\r') {
      out += '\n';
      if (at + 1 < text.size() && text[at + 1] == '\n') ++at;
    } else {
      out += text[at];
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Cutter {
 public:
  Cutter(std::string source, std::string name) : source_(std::move(source)), name_(std::move(name)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) outside();
    push(TokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(Kind::data, name_, ": line ", line_, ": ", parts...);
  }
  void push(TokenKind kind, std::string word) { tokens_.push_back({kind, std::move(word), line_}); }
  // Goes on to `to`, and counts lines.
  void skip_to(std::size_t to) {
    to = std::min(to, source_.size());
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    at_ = to;
  }
  [[nodiscard]] bool starts(std::size_t at, std::string_view what) const {
    return std::string_view(source_).substr(std::min(at, source_.size())).starts_with(what);
  }
  [[nodiscard]] std::size_t behind_blanks(std::size_t at) const {
    for (unicode::Rune rune = unicode::rune_at(source_, at); rune.bytes > 0 && blank(rune.code);
         rune = unicode::rune_at(source_, at))
      at += rune.bytes;
    return at;
  }
  static bool blank(char32_t code) { return unicode::is_space(code) || (code >= 0x1c && code <= 0x1f); }

  // What stands before a tag, less the blanks that the tag takes away.
  [[nodiscard]] std::string_view kept(std::string_view text, char mark, bool value) const {
    if (mark == '-') {
      while (!text.empty()) {
        const std::size_t last = unicode::previous(text, text.size());
        if (!blank(unicode::rune_at(text, last).code)) break;
        text = text.substr(0, last);
      }
      return text;
    }
    if (mark == '+' || value) return text;
    const std::size_t line = text.rfind('\n') + 1;
    if ((line > 0 || line_begins_) && line < text.size() && behind_blanks_of(text, line) == text.size())
      return text.substr(0, line);
    return text;
  }
  static std::size_t behind_blanks_of(std::string_view text, std::size_t at) {
    while (at < text.size() && blank(unicode::rune_at(text, at).code)) at += unicode::rune_at(text, at).bytes;
    return at;
  }

  void data(std::size_t end, char mark, bool value) {
    const std::string_view text = kept(std::string_view(source_).substr(at_, end - at_), mark, value);
    if (!text.empty()) push(TokenKind::data, std::string(text));
    skip_to(end);
  }

  // Text up to the next tag, and the tag.
  void outside() {
    std::size_t open = at_;
    do open = source_.find('{', open);
    while (open != std::string::npos && !starts(open, "{%") && !starts(open, "{{") && !starts(open, "{#") &&
           ++open);
    if (open == std::string::npos) {
      push(TokenKind::data, source_.substr(at_));
      return skip_to(source_.size());
    }
    const char what = source_[open + 1];
    const char mark = open + 2 < source_.size() ? source_[open + 2] : ' ';
    const std::size_t inside = open + 2 + (mark == '-' || mark == '+' ? 1 : 0);
    data(open, mark, what == '{');
    line_begins_ = false;
    if (what == '#') return comment(inside);
    if (what == '%' && raw(inside)) return;
    push(what == '{' ? TokenKind::open_value : TokenKind::open_tag, "");
    skip_to(inside);
    within(what == '{');
  }

  // Behind the end of a tag that is not of a value: a line end goes, too.
  void after(std::size_t end, char mark) {
    if (mark == '-') end = behind_blanks(end);
    if (mark == ' ' && starts(end, "\n")) ++end;
    skip_to(end);
    line_begins_ = source_[at_ - 1] == '\n';
  }

  void comment(std::size_t inside) {
    const std::size_t end = source_.find("#}", inside);
    if (end == std::string::npos) refuse("a comment has no end #}");
    const char before = end > inside ? source_[end - 1] : ' ';
    after(end + 2, before == '-' || before == '+' ? before : ' ');
  }

  // {% raw %} … {% endraw %}: whether one begins here.
  bool raw(std::size_t inside) {
    std::size_t at = behind_blanks(inside);
    if (!starts(at, "raw")) return false;
    at = behind_blanks(at + 3);
    const bool tight = starts(at, "-%}");
    if (!tight && !starts(at, "%}")) return false;
    skip_to(tight ? behind_blanks(at + 3) : at + 2);
    for (std::size_t open = source_.find("{%", at_); open != std::string::npos;
         open = source_.find("{%", open + 2)) {
      const char mark = open + 2 < source_.size() ? source_[open + 2] : ' ';
      std::size_t end = behind_blanks(open + 2 + (mark == '-' || mark == '+' ? 1 : 0));
      if (!starts(end, "endraw")) continue;
      end = behind_blanks(end + 6);
      const char behind = starts(end, "-%}") ? '-' : starts(end, "+%}") ? '+' : ' ';
      if (behind == ' ' && !starts(end, "%}")) continue;
      data(open, mark, false);
      after(end + (behind == ' ' ? 2 : 3), behind);
      return true;
    }
    refuse("raw has no endraw");
  }

  // The end of the tag that begins here, if one does: `-` where blanks behind it go, `+` where none do.
  [[nodiscard]] char closes(bool value) const {
    if (!open_.empty()) return 0;
    const std::string_view close = value ? "}}" : "%}";
    if (starts(at_, close)) return ' ';
    if (starts(at_, "-") && starts(at_ + 1, close)) return '-';
    return !value && starts(at_, "+") && starts(at_ + 1, close) ? '+' : 0;
  }

  void within(bool value) {
    open_.clear();
    while (true) {
      skip_to(behind_blanks(at_));
      if (at_ >= source_.size()) refuse("a tag has no end ", value ? "}}" : "%}");
      if (const char mark = closes(value)) {
        push(value ? TokenKind::close_value : TokenKind::close_tag, "");
        const std::size_t end = at_ + (mark == ' ' ? 2 : 3);
        if (!value) return after(end, mark);
        skip_to(mark == '-' ? behind_blanks(end) : end);
        line_begins_ = source_[at_ - 1] == '\n';
        return;
      }
      token();
    }
  }

  void token() {
    const char c = source_[at_];
    if (is_digit(c)) return number();
    if (c == '"' || c == '\'') return text(c);
    if (const std::size_t end = behind_name(at_); end > at_) {
      push(TokenKind::name, source_.substr(at_, end - at_));
      return skip_to(end);
    }
    for (const std::string_view pair : pairs) {
      if (!starts(at_, pair)) continue;
      push(TokenKind::sign, std::string(pair));
      return skip_to(at_ + 2);
    }
    if (signs.find(c) == std::string_view::npos) refuse("'", shown(), "' is nothing that Jinja has here");
    balance(c);
    push(TokenKind::sign, std::string(1, c));
    skip_to(at_ + 1);
  }
  [[nodiscard]] std::string shown() const {
    return source_.substr(at_, unicode::rune_at(source_, at_).bytes);
  }

  void balance(char c) {
    constexpr std::string_view opens = "([{", closes = ")]}";
    if (opens.find(c) != std::string_view::npos) open_ += closes[opens.find(c)];
    if (closes.find(c) == std::string_view::npos) return;
    if (open_.empty()) refuse("'", c, "' closes nothing");
    if (open_.back() != c) refuse("'", c, "' where '", open_.back(), "' was expected");
    open_.pop_back();
  }

  [[nodiscard]] std::size_t behind_name(std::size_t at) const {
    for (auto rune = unicode::rune_at(source_, at); rune.bytes > 0; rune = unicode::rune_at(source_, at)) {
      if (rune.code != '_' && !unicode::is_word(rune.code)) break;
      at += rune.bytes;
    }
    return at;
  }

  [[nodiscard]] std::size_t behind_digits(std::size_t at) const {
    while (at < source_.size() && (is_digit(source_[at]) || (source_[at] == '_' && at + 1 < source_.size() &&
                                                             is_digit(source_[at + 1]))))
      ++at;
    return at;
  }
  [[nodiscard]] bool digit_at(std::size_t at) const { return at < source_.size() && is_digit(source_[at]); }

  // 12, 1_000, 1.5, 2e-3; what follows a dot, as in x.0.1, is whole.
  void number() {
    std::size_t end = behind_digits(at_);
    bool real = false;
    if (at_ == 0 || source_[at_ - 1] != '.') {
      if (starts(end, ".") && digit_at(end + 1)) {
        end = behind_digits(end + 1);
        real = true;
      }
      if (starts(end, "e") || starts(end, "E")) {
        const std::size_t power = end + (starts(end + 1, "-") || starts(end + 1, "+") ? 2 : 1);
        if (digit_at(power)) {
          end = behind_digits(power);
          real = true;
        }
      }
    }
    if (const std::size_t word = behind_name(end); word > end)
      refuse("'", source_.substr(at_, word - at_), "' is no number that weft reads");
    std::string digits = source_.substr(at_, end - at_);
    std::erase(digits, '_');
    if (!real && digits.size() > 1 && digits[0] == '0' && digits.find_first_not_of('0') != std::string::npos)
      refuse("'", digits, "' is no number that weft reads");
    push(real ? TokenKind::real : TokenKind::whole, std::move(digits));
    skip_to(end);
  }

  void text(char quote) {
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) refuse("a text has no end ", quote);
    push(TokenKind::text, meant(std::string_view(source_).substr(at_ + 1, end - at_ - 1)));
    skip_to(end + 1);
  }

  // \n, \x41, \u20ac and so on, as Python reads them; a backslash before anything else stays.
  [[nodiscard]] std::string meant(std::string_view text) const {
    constexpr std::string_view letters = "\\'\"abfnrtv", meanings = "\\'\"\a\b\f\n\r\t\v";
    std::string out;
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (text[at] != '\\') {
        out += text[at];
        continue;
      }
      const char c = text[++at];
      const auto which = letters.find(c);
      if (which != std::string_view::npos) {
        out += meanings[which];
      } else if (c == 'x' || c == 'u' || c == 'U') {
        const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        unicode::append(out, code(text.substr(at + 1, digits), digits, 16));
        at += digits;
      } else if (c >= '0' && c <= '7') {
        std::size_t digits = 1;
        while (digits < 3 && at + digits < text.size() && text[at + digits] >= '0' &&
               text[at + digits] <= '7')
          ++digits;
        unicode::append(out, code(text.substr(at, digits), digits, 8));
        at += digits - 1;
      } else if (c == 'N') {
        refuse("weft knows no \\N{…} in a text");
      } else if (c != '\n') {
        out += '\\';
        out += c;
      }
    }
    return out;
  }
  [[nodiscard]] char32_t code(std::string_view digits, std::size_t wanted, std::uint32_t base) const {
    constexpr std::string_view all = "0123456789abcdef";
    std::uint64_t out = 0;
    bool good = digits.size() == wanted;
    for (const char c : digits) {
      const auto digit = all.find(c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c);
      good = good && digit < base;
      out = out * base + digit;
    }
    if (!good || out > 0x10ffff || (out >= 0xd800 && out < 0xe000))
      refuse("'\\", digits, "' in a text is no character");
    return static_cast<char32_t>(out);
  }

  std::string source_, name_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_begins_ = true;  // nothing stands on this line before `at_`
  std::string open_;         // what closes the brackets that are open
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view jinja, const std::string& name) {
  if (!unicode::valid(jinja)) fail(Kind::data, name, ": is no UTF-8");
  return Cutter(with_plain_line_ends(jinja), name).run();
}

}  // namespace weft::jinja
