#include "weft/text/unicode.h"

#include <simdjson.h>
#include <utf8proc.h>

#include <cstdlib>
#include <map>
#include <memory>

#include "weft/base/error.h"

namespace weft::unicode {

namespace {

// Straight from the table: a splitter asks for every code point when it is made.
utf8proc_category_t category(char32_t code) {
  return static_cast<utf8proc_category_t>(
      utf8proc_get_property(static_cast<utf8proc_int32_t>(code))->category);
}

// The classes that follow from a general category.
constexpr std::array<std::uint8_t, 30> category_classes() {
  std::array<std::uint8_t, 30> bits{};
  for (const auto kind : {UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LT})
    bits[kind] = Classes::letter | Classes::upper;
  bits[UTF8PROC_CATEGORY_LL] = Classes::letter | Classes::lower;
  for (const auto kind : {UTF8PROC_CATEGORY_LM, UTF8PROC_CATEGORY_LO})
    bits[kind] = Classes::letter | Classes::upper | Classes::lower;
  for (const auto kind : {UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_MC, UTF8PROC_CATEGORY_ME})
    bits[kind] = Classes::upper | Classes::lower;
  for (const auto kind : {UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NL, UTF8PROC_CATEGORY_NO})
    bits[kind] = Classes::number;
  return bits;
}

std::uint8_t classify(char32_t code) {
  constexpr auto classes = category_classes();
  constexpr char32_t last_space = 0x3000;
  unsigned bits = classes[category(code)];
  if (code <= last_space && is_space(code)) bits |= Classes::space;
  if (code == '\r' || code == '\n') bits |= Classes::newline;
  return static_cast<std::uint8_t>(bits);
}

// How many bytes from `at` form one code point; 0 and the length of the maximal broken part otherwise.
struct Read {
  std::size_t good = 0, bad = 0;
};

Read read(std::string_view bytes, std::size_t at) {
  const auto byte = [&](std::size_t k) {
    return at + k < bytes.size() ? static_cast<unsigned>(static_cast<unsigned char>(bytes[at + k])) : 0x100u;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {.good = 1};
  if (lead < 0xc2 || lead > 0xf4) return {.bad = 1};
  const std::size_t wanted = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  // The second byte's range excludes overlong forms, surrogates and what lies above U+10FFFF.
  const unsigned low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < low || byte(1) > high) return {.bad = 1};
  for (std::size_t k = 2; k < wanted; ++k) {
    if (byte(k) < 0x80 || byte(k) > 0xbf) return {.bad = k};
  }
  return {.good = wanted};
}

}  // namespace

bool valid(std::string_view bytes) { return simdjson::validate_utf8(bytes.data(), bytes.size()); }

std::string repaired(std::string_view bytes, std::string_view replacement) {
  std::string out;
  out.reserve(bytes.size() + bytes.size() / 8);
  for (std::size_t at = 0; at < bytes.size();) {
    const Read one = read(bytes, at);
    if (one.good > 0) {
      out.append(bytes.substr(at, one.good));
    } else {
      out.append(replacement);
    }
    at += one.good + one.bad;
  }
  return out;
}

void append(std::string& out, char32_t code) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

std::u32string decoded(std::string_view utf8) {
  std::u32string out;
  out.reserve(utf8.size());
  for (std::size_t at = 0; at < utf8.size();) {
    const Rune rune = rune_at(utf8, at);
    out.push_back(rune.code);
    at += rune.bytes;
  }
  return out;
}

std::string normalized(std::string_view utf8, Form form) {
  const bool composed = form == Form::nfc || form == Form::nfkc;
  const bool compatible = form == Form::nfkc || form == Form::nfkd;
  const int options = UTF8PROC_STABLE | (composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                      (compatible ? UTF8PROC_COMPAT : 0);
  utf8proc_uint8_t* raw = nullptr;
  const auto length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(utf8.data()),
                   static_cast<utf8proc_ssize_t>(utf8.size()), &raw, static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> holder(raw, &std::free);
  if (length < 0) fail(Kind::data, "unicode: normalizing ", utf8.size(), " bytes: ", utf8proc_errmsg(length));
  return {reinterpret_cast<const char*>(raw), static_cast<std::size_t>(length)};
}

std::vector<Grapheme> graphemes(std::string_view utf8) {
  std::vector<Grapheme> parts;
  utf8proc_int32_t state = 0;
  char32_t before = 0;
  for (std::size_t at = 0; at < utf8.size();) {
    const Rune rune = rune_at(utf8, at);
    const bool breaks =
        at == 0 || utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before),
                                                    static_cast<utf8proc_int32_t>(rune.code), &state);
    if (breaks) parts.push_back({at, at});
    at += rune.bytes;
    parts.back().end = at;
    before = rune.code;
  }
  return parts;
}

bool is_letter(char32_t code) {
  const auto kind = category(code);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_number(char32_t code) {
  const auto kind = category(code);
  return kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO;
}

bool is_space(char32_t code) {
  return (code >= 9 && code <= 13) || code == 0x20 || code == 0x85 || code == 0xa0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 || code == 0x202f ||
         code == 0x205f || code == 0x3000;
}

bool is_mark(char32_t code) {
  const auto kind = category(code);
  return kind >= UTF8PROC_CATEGORY_MN && kind <= UTF8PROC_CATEGORY_ME;
}

bool is_nonspacing_mark(char32_t code) { return category(code) == UTF8PROC_CATEGORY_MN; }

bool is_punctuation(char32_t code) {
  const auto kind = category(code);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

bool is_other(char32_t code) {
  const auto kind = category(code);
  return kind == UTF8PROC_CATEGORY_CN || (kind >= UTF8PROC_CATEGORY_CC && kind <= UTF8PROC_CATEGORY_CO);
}

bool is_word(char32_t code) {
  const auto kind = category(code);
  return is_letter(code) || is_mark(code) || kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL ||
         kind == UTF8PROC_CATEGORY_PC || (code >= 0x24b6 && code <= 0x24e9) ||
         (code >= 0x1f130 && code <= 0x1f149) || (code >= 0x1f150 && code <= 0x1f169) ||
         (code >= 0x1f170 && code <= 0x1f189) || code == 0x200c || code == 0x200d;
}

bool is_cjk(char32_t code) {
  // As Hugging Face has it: U+2B820 to U+2B91F are left out, which the first BERT had.
  return (code >= 0x4e00 && code <= 0x9fff) || (code >= 0x3400 && code <= 0x4dbf) ||
         (code >= 0x20000 && code <= 0x2a6df) || (code >= 0x2a700 && code <= 0x2b73f) ||
         (code >= 0x2b740 && code <= 0x2b81f) || (code >= 0x2b920 && code <= 0x2ceaf) ||
         (code >= 0xf900 && code <= 0xfaff) || (code >= 0x2f800 && code <= 0x2fa1f);
}

void append_lower(std::string& out, char32_t code) {
  if (code == 0x130) {
    out.append("i\xcc\x87");
  } else {
    append(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
  }
}

Classes::Classes() {
  using Page = std::array<std::uint8_t, 256>;
  std::map<Page, std::uint16_t> known;
  const Page* last = nullptr;  // most pages are like the one before
  for (std::uint32_t page = 0; page < page_of_.size(); ++page) {
    Page bits{};
    // Planes 4 to 13 hold nothing, planes 15 and 16 are private: no class, and no time spent asking.
    const bool inhabited = page < 0x400 || (page >= 0xe00 && page < 0xe02);
    for (std::uint32_t low = 0; inhabited && low < 256; ++low) bits[low] = classify(page << 8 | low);
    if (last != nullptr && bits == *last) {
      page_of_[page] = page_of_[page - 1];
      continue;
    }
    const auto [at, fresh] = known.try_emplace(bits, static_cast<std::uint16_t>(pages_.size()));
    if (fresh) pages_.push_back(bits);
    page_of_[page] = at->second;
    last = &at->first;
  }
  for (std::uint32_t code = 0; code < 128; ++code) ascii_[code] = of(code);
}

}  // namespace weft::unicode
