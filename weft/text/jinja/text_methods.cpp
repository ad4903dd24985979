// What texts can do: Python's methods of str.
#include <algorithm>
#include <array>

#include "weft/text/jinja/strings.h"
#include "weft/text/unicode.h"

namespace weft::jinja {

namespace {

std::string_view self(const Call& call) { return call.self.text()->bytes; }

Value texts(const Call& call, const std::vector<std::string>& parts) {
  Values out;
  for (const std::string& part : parts) out.push_back(call.work.text(part));
  return call.work.list(std::move(out));
}

std::optional<std::string> letters(const Call& call) {
  return call.with.has(0) ? std::optional(call.with.text(0, "")) : std::nullopt;
}

Value strip(const Call& call, Ends ends) {
  return call.work.text(std::string(stripped(self(call), letters(call), ends)));
}

// By blanks, which count once however many they are.
std::vector<std::string> split_by_blanks(std::string_view text, std::int64_t most, bool from_right) {
  std::vector<std::string> out;
  const auto blank = [&](std::size_t at) { return is_blank(unicode::rune_at(text, at).code); };
  text = stripped(text, {}, {.left = !from_right, .right = from_right});
  while (!text.empty()) {
    if (most >= 0 && static_cast<std::int64_t>(out.size()) == most) {
      out.emplace_back(text);
      break;
    }
    std::size_t cut = from_right ? text.size() : 0;
    if (from_right) {
      while (cut > 0 && !blank(unicode::previous(text, cut))) cut = unicode::previous(text, cut);
      out.emplace_back(text.substr(cut));
      text = stripped(text.substr(0, cut), {}, {.left = false, .right = true});
    } else {
      while (cut < text.size() && !blank(cut)) cut += unicode::rune_at(text, cut).bytes;
      out.emplace_back(text.substr(0, cut));
      text = stripped(text.substr(cut), {}, {.left = true, .right = false});
    }
  }
  if (from_right) std::ranges::reverse(out);
  return out;
}

Value split(const Call& call, bool from_right) {
  const std::int64_t most = call.with.whole(1, -1);
  std::string_view text = self(call);
  call.work.spend(static_cast<std::int64_t>(text.size()), sizeof(std::string));
  if (!call.with.has(0)) return texts(call, split_by_blanks(text, most, from_right));
  const std::string by = call.with.text(0, "");
  if (by.empty()) call.work.refuse("split: there is nothing between the parts");
  std::vector<std::string> out;
  while (most < 0 || static_cast<std::int64_t>(out.size()) < most) {
    const std::size_t at = from_right ? text.rfind(by) : text.find(by);
    if (at == std::string_view::npos) break;
    out.emplace_back(from_right ? text.substr(at + by.size()) : text.substr(0, at));
    text = from_right ? text.substr(0, at) : text.substr(at + by.size());
  }
  out.emplace_back(text);
  if (from_right) std::ranges::reverse(out);
  return texts(call, out);
}

Value partition(const Call& call, bool from_right) {
  const std::string by = call.with.text(0, "");
  const std::string_view text = self(call);
  if (by.empty()) call.work.refuse("partition: there is nothing between the parts");
  const std::size_t at = from_right ? text.rfind(by) : text.find(by);
  Values out;
  const auto put = [&](std::string_view part) { out.push_back(call.work.text(std::string(part))); };
  if (at == std::string_view::npos) {
    put(from_right ? "" : text);
    put("");
    put(from_right ? text : "");
  } else {
    put(text.substr(0, at));
    put(by);
    put(text.substr(at + by.size()));
  }
  return call.work.sequence(Form::tuple, std::move(out));
}

// The part [start, end) that find, count and so on look at, in bytes.
struct Part {
  std::string_view text;
  std::int64_t before = 0;  // code points
  bool there = true;
};
Part part(const Call& call) {
  std::string_view text = self(call);
  if (!call.with.has(1) && !call.with.has(2)) return {.text = text};
  const std::int64_t length = length_of(text);
  const auto place = [&](std::size_t k, std::int64_t otherwise) {
    const std::int64_t at = call.with.whole(k, otherwise);
    return at < 0 ? std::max<std::int64_t>(at + length, 0) : at;
  };
  const std::int64_t from = place(1, 0), to = std::min(place(2, length), length);
  const auto byte = [&](std::int64_t point) {
    std::size_t at = 0;
    for (std::int64_t k = 0; k < point && at < text.size(); ++k) at += unicode::rune_at(text, at).bytes;
    return at;
  };
  if (from > to) return {.text = {}, .before = from, .there = from <= length && from <= to};
  return {.text = text.substr(byte(from), byte(to) - byte(from)), .before = from};
}

std::int64_t find(const Call& call, bool from_right) {
  const Part within = part(call);
  const std::string what = call.with.text(0, "");
  const std::size_t at = from_right ? within.text.rfind(what) : within.text.find(what);
  if (!within.there || at == std::string_view::npos) return -1;
  return within.before + length_of(within.text.substr(0, at));
}

std::int64_t index(const Call& call, bool from_right) {
  const std::int64_t at = find(call, from_right);
  if (at < 0) call.work.refuse("index: '", call.with.text(0, ""), "' is not there");
  return at;
}

Value count(const Call& call) {
  const Part within = part(call);
  const std::string what = call.with.text(0, "");
  if (!within.there) return std::int64_t{0};
  if (what.empty()) return length_of(within.text) + 1;
  std::int64_t found = 0;
  for (auto at = within.text.find(what); at != std::string_view::npos;
       at = within.text.find(what, at + what.size()))
    ++found;
  return found;
}

Value ends(const Call& call, bool (*at_end)(std::string_view, std::string_view)) {
  const Part within = part(call);
  const auto is = [&](const Value& one) {
    if (one.undefined()) call.work.refuse_undefined(one);
    if (one.text() == nullptr)
      call.work.refuse("startswith and endswith take a text, and no ", kind(one) + 2);
    return within.there && at_end(within.text, one.text()->bytes);
  };
  const Value& what = *call.with[0];
  if (what.sequence() != nullptr && what.sequence()->form == Form::tuple)
    return std::ranges::any_of(what.sequence()->items, is);
  return is(what);
}

Value join(const Call& call) {
  std::string out;
  bool first = true;
  if (call.with[0]->undefined()) call.work.refuse_undefined(*call.with[0]);
  for (const Value& one : call.work.walked(*call.with[0])) {
    if (one.undefined()) call.work.refuse_undefined(one);
    if (one.text() == nullptr) call.work.refuse("join: an item is ", kind(one), ", expected a text");
    if (!first) out += self(call);
    call.work.spend(static_cast<std::int64_t>(self(call).size() + one.text()->bytes.size()));
    out += one.text()->bytes;
    first = false;
  }
  return call.work.text(std::move(out));
}

// Spaces (or another letter) around it: `left` of those that are missing.
Value padded(const Call& call, bool both, bool left) {
  const std::int64_t missing = std::max<std::int64_t>(call.with.whole(0, 0) - length_of(self(call)), 0);
  const std::string fill = call.with.text(1, " ");
  if (length_of(fill) != 1) call.work.refuse("what fills a text is one letter, not '", fill, "'");
  call.work.spend(missing, fill.size());
  // Of an odd number Python puts one more on the left where the width is odd.
  const std::int64_t half = missing / 2 + (missing & call.with.whole(0, 0) & 1);
  const std::int64_t before = both ? half : left ? missing : 0;
  std::string out;
  for (std::int64_t k = 0; k < before; ++k) out += fill;
  out += self(call);
  for (std::int64_t k = before; k < missing; ++k) out += fill;
  return call.work.text(std::move(out));
}

Value zfill(const Call& call) {
  const std::string_view text = self(call);
  const std::int64_t missing = std::max<std::int64_t>(call.with.whole(0, 0) - length_of(text), 0);
  call.work.spend(missing, 1);
  const std::size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  return call.work.text(std::string(text.substr(0, sign)) +
                        std::string(static_cast<std::size_t>(missing), '0') + std::string(text.substr(sign)));
}

Value without(const Call& call, bool prefix) {
  std::string_view text = self(call);
  const std::string what = call.with.text(0, "");
  if (prefix && text.starts_with(what)) text.remove_prefix(what.size());
  if (!prefix && text.ends_with(what)) text.remove_suffix(what.size());
  return call.work.text(std::string(text));
}

bool is_letter_or_number(char32_t code) { return unicode::is_letter(code) || unicode::is_number(code); }

}  // namespace

Value format_method(const Call& call);  // jinja_format.cpp

const Known* text_method(std::string_view name) {
  static constexpr std::array methods{
      Known{"strip", "chars", [](const Call& c) { return strip(c, {}); }},
      Known{"lstrip", "chars", [](const Call& c) { return strip(c, {.left = true, .right = false}); }},
      Known{"rstrip", "chars", [](const Call& c) { return strip(c, {.left = false, .right = true}); }},
      Known{"split", "sep maxsplit", [](const Call& c) { return split(c, false); }},
      Known{"rsplit", "sep maxsplit", [](const Call& c) { return split(c, true); }},
      Known{"splitlines", "keepends",
            [](const Call& c) { return texts(c, lines_of(self(c), c.with.flag(0, false))); }},
      Known{"partition", "sep!", [](const Call& c) { return partition(c, false); }},
      Known{"rpartition", "sep!", [](const Call& c) { return partition(c, true); }},
      Known{"startswith", "prefix! start end",
            [](const Call& c) {
              return ends(c, [](std::string_view a, std::string_view b) { return a.starts_with(b); });
            }},
      Known{"endswith", "suffix! start end",
            [](const Call& c) {
              return ends(c, [](std::string_view a, std::string_view b) { return a.ends_with(b); });
            }},
      Known{"replace", "old! new! count",
            [](const Call& c) {
              return c.work.text(
                  replaced(c.work, self(c), c.with.text(0, ""), c.with.text(1, ""), c.with.whole(2, -1)));
            }},
      Known{"upper", "", [](const Call& c) { return c.work.text(upper(self(c))); }},
      Known{"lower", "", [](const Call& c) { return c.work.text(lower(self(c))); }},
      Known{"title", "", [](const Call& c) { return c.work.text(titled(self(c))); }},
      Known{"capitalize", "", [](const Call& c) { return c.work.text(capitalized(self(c))); }},
      Known{"swapcase", "", [](const Call& c) { return c.work.text(swapped(self(c))); }},
      Known{"find", "sub! start end", [](const Call& c) -> Value { return find(c, false); }},
      Known{"rfind", "sub! start end", [](const Call& c) -> Value { return find(c, true); }},
      Known{"index", "sub! start end", [](const Call& c) -> Value { return index(c, false); }},
      Known{"rindex", "sub! start end", [](const Call& c) -> Value { return index(c, true); }},
      Known{"count", "sub! start end", count},
      Known{"join", "iterable!", join},
      Known{"center", "width! fillchar", [](const Call& c) { return padded(c, true, true); }},
      Known{"ljust", "width! fillchar", [](const Call& c) { return padded(c, false, false); }},
      Known{"rjust", "width! fillchar", [](const Call& c) { return padded(c, false, true); }},
      Known{"zfill", "width!", zfill},
      Known{"removeprefix", "prefix!", [](const Call& c) { return without(c, true); }},
      Known{"removesuffix", "suffix!", [](const Call& c) { return without(c, false); }},
      Known{"islower", "", [](const Call& c) -> Value { return all_lower(self(c)); }},
      Known{"isupper", "", [](const Call& c) -> Value { return all_upper(self(c)); }},
      Known{"isspace", "", [](const Call& c) -> Value { return every(self(c), is_blank); }},
      Known{"isdigit", "", [](const Call& c) -> Value { return every(self(c), is_decimal); }},
      Known{"isdecimal", "", [](const Call& c) -> Value { return every(self(c), is_decimal); }},
      Known{"isnumeric", "", [](const Call& c) -> Value { return every(self(c), unicode::is_number); }},
      Known{"isalpha", "", [](const Call& c) -> Value { return every(self(c), unicode::is_letter); }},
      Known{"isalnum", "", [](const Call& c) -> Value { return every(self(c), is_letter_or_number); }},
      Known{"isascii", "",
            [](const Call& c) -> Value {
              return std::ranges::all_of(self(c),
                                         [](char byte) { return static_cast<unsigned char>(byte) < 0x80; });
            }},
      Known{"format", "*", format_method}};
  return known(methods, name);
}

}  // namespace weft::jinja
