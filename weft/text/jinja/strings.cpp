#include "weft/text/jinja/strings.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "weft/text/unicode.h"

namespace weft::jinja {

bool is_blank(char32_t code) { return unicode::is_space(code) || (code >= 0x1c && code <= 0x1f); }

std::int64_t length_of(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

std::string_view stripped(std::string_view text, const std::optional<std::string>& letters, Ends ends) {
  const std::u32string wanted = letters ? unicode::decoded(*letters) : std::u32string();
  const auto goes = [&](char32_t code) {
    return letters ? wanted.find(code) != std::u32string::npos : is_blank(code);
  };
  while (ends.left && !text.empty()) {
    const auto rune = unicode::rune_at(text, 0);
    if (!goes(rune.code)) break;
    text.remove_prefix(rune.bytes);
  }
  while (ends.right && !text.empty()) {
    const std::size_t last = unicode::previous(text, text.size());
    if (!goes(unicode::rune_at(text, last).code)) break;
    text = text.substr(0, last);
  }
  return text;
}

std::vector<std::string> lines_of(std::string_view text, bool with_ends) {
  constexpr std::u32string_view ends = U"\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029";
  std::vector<std::string> out;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto rune = unicode::rune_at(text, at);
    const std::size_t line = at;
    at += rune.bytes;
    if (ends.find(rune.code) == std::u32string_view::npos) continue;
    if (rune.code == '\r' && at < text.size() && text[at] == '\n') ++at;
    out.emplace_back(text.substr(begin, (with_ends ? at : line) - begin));
    begin = at;
  }
  if (begin < text.size()) out.emplace_back(text.substr(begin));
  return out;
}

namespace {

utf8proc_category_t category(char32_t code) {
  return static_cast<utf8proc_category_t>(
      utf8proc_get_property(static_cast<utf8proc_int32_t>(code))->category);
}
bool is_upper(char32_t code) {
  return category(code) == UTF8PROC_CATEGORY_LU || category(code) == UTF8PROC_CATEGORY_LT;
}
bool is_lower(char32_t code) { return category(code) == UTF8PROC_CATEGORY_LL; }
bool has_case(char32_t code) { return is_upper(code) || is_lower(code); }

// Capitals of more than one letter, of those that people write.
void append_upper(std::string& out, char32_t code) {
  struct Long {
    char32_t code;
    const char* upper;
  };
  constexpr std::array longs{Long{0xdf, "SS"},    Long{0x149, "\u02bcN"}, Long{0xfb00, "FF"},
                             Long{0xfb01, "FI"},  Long{0xfb02, "FL"},     Long{0xfb03, "FFI"},
                             Long{0xfb04, "FFL"}, Long{0xfb05, "ST"},     Long{0xfb06, "ST"}};
  for (const Long& one : longs) {
    if (one.code != code) continue;
    out += one.upper;
    return;
  }
  unicode::append(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(code))));
}

void append_title(std::string& out, char32_t code) {
  std::string upper;
  append_upper(upper, code);
  if (length_of(upper) == 1) {
    unicode::append(out, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(code))));
  } else {
    const auto first = unicode::rune_at(upper, 0).bytes;
    out += upper.substr(0, first);
    out += lower(upper.substr(first));
  }
}

}  // namespace

std::string lower(std::string_view text) {
  constexpr char32_t sigma = 0x3a3;
  std::string out;
  bool letter_before = false;
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, bytes] = unicode::rune_at(text, at);
    at += bytes;
    const bool letter_behind = at < text.size() && has_case(unicode::rune_at(text, at).code);
    if (code == sigma && letter_before && !letter_behind) {
      out += "ς";
    } else {
      unicode::append_lower(out, code);
    }
    letter_before = has_case(code);
  }
  return out;
}

std::string upper(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, bytes] = unicode::rune_at(text, at);
    append_upper(out, code);
    at += bytes;
  }
  return out;
}

std::string capitalized(std::string_view text) {
  if (text.empty()) return {};
  const auto [code, bytes] = unicode::rune_at(text, 0);
  std::string out;
  append_title(out, code);
  return out + lower(text.substr(bytes));
}

// str.title: a capital at the beginning of every run of letters.
std::string titled(std::string_view text) {
  std::string out;
  bool inside = false;
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, bytes] = unicode::rune_at(text, at);
    inside ? unicode::append_lower(out, code) : append_title(out, code);
    inside = has_case(code);
    at += bytes;
  }
  return out;
}

std::string swapped(std::string_view text) {
  std::string out;
  for (const char32_t code : unicode::decoded(text))
    is_upper(code) ? unicode::append_lower(out, code) : append_upper(out, code);
  return out;
}

namespace {

bool all_of_case(std::string_view text, bool (*wanted)(char32_t)) {
  bool some = false;
  for (const char32_t code : unicode::decoded(text)) {
    if (has_case(code) && !wanted(code)) return false;
    some = some || wanted(code);
  }
  return some;
}

}  // namespace

bool every(std::string_view text, bool (*wanted)(char32_t)) {
  return !text.empty() && std::ranges::all_of(unicode::decoded(text), wanted);
}

bool is_decimal(char32_t code) { return category(code) == UTF8PROC_CATEGORY_ND; }
bool all_lower(std::string_view text) { return all_of_case(text, is_lower); }
bool all_upper(std::string_view text) { return all_of_case(text, is_upper); }

std::string replaced(Work& work, std::string_view text, std::string_view old, std::string_view by,
                     std::int64_t count) {
  std::string out;
  std::size_t from = 0;
  const auto take = [&](std::size_t to) {
    work.spend(static_cast<std::int64_t>(to - from + by.size() + 1));
    out += text.substr(from, to - from);
    from = to;
  };
  if (old.empty()) {  // between all letters
    for (std::size_t at = 0; count != 0 && at <= text.size(); --count) {
      take(at);
      out += by;
      at += at < text.size() ? unicode::rune_at(text, at).bytes : 1;
    }
  } else {
    for (std::size_t at = text.find(old); count != 0 && at != std::string_view::npos;
         at = text.find(old, from), --count) {
      take(at);
      out += by;
      from += old.size();
    }
  }
  return out += text.substr(from);
}

}  // namespace weft::jinja
