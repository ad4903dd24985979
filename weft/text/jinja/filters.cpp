// Filters of texts and numbers, and the table of all.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "weft/text/jinja/filters.h"
#include "weft/text/jinja/operators.h"
#include "weft/text/jinja/print.h"
#include "weft/text/jinja/strings.h"
#include "weft/text/unicode.h"

namespace weft::jinja {

namespace {

// Filters of texts take whatever prints.
std::string self(const Call& call) { return printed(call.work, call.self); }

Value trimmed(const Call& call) {
  const auto letters = call.with.has(0) ? std::optional(call.with.text(0, "")) : std::nullopt;
  return call.work.text(std::string(stripped(self(call), letters, {})));
}

Value titled(const Call& call) {
  constexpr std::string_view between = "-({[<";
  std::string out, word;
  const auto put = [&] {
    out += capitalized(word);
    word.clear();
  };
  const std::string text = self(call);
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, bytes] = unicode::rune_at(text, at);
    word += text.substr(at, bytes);
    at += bytes;
    if (is_blank(code) || (code < 0x80 && between.find(static_cast<char>(code)) != std::string_view::npos))
      put();
  }
  put();
  return call.work.text(std::move(out));
}

Value replace(const Call& call) {
  const auto text = [&](std::size_t k) { return printed(call.work, *call.with[k]); };
  return call.work.text(replaced(call.work, self(call), text(0), text(1), call.with.whole(2, -1)));
}

Value indented(const Call& call) {
  if (call.self.undefined()) call.work.refuse_undefined(call.self);
  if (call.self.text() == nullptr) call.work.refuse("indent: ", kind(call.self), ", expected a text");
  std::string by;
  if (call.with[0] && call.with[0]->text() != nullptr) {
    by = call.with[0]->text()->bytes;
  } else {
    const std::int64_t width = std::max<std::int64_t>(call.with.whole(0, 4), 0);
    call.work.spend(width);
    by.assign(static_cast<std::size_t>(width), ' ');
  }
  const auto lines = lines_of(call.self.text()->bytes + "\n");
  std::string out = call.with.flag(1, false) ? by : "";
  for (std::size_t k = 0; k < lines.size(); ++k) {
    call.work.spend(static_cast<std::int64_t>(by.size() + lines[k].size()));
    if (k > 0) out += '\n';
    if (k > 0 && (call.with.flag(2, false) || !lines[k].empty())) out += by;
    out += lines[k];
  }
  return call.work.text(std::move(out), call.self.text()->markup);
}

Value truncated(const Call& call) {
  const std::string text = self(call), end = call.with.text(2, "...");
  const std::int64_t length = call.with.whole(0, 255), leeway = call.with.whole(3, 5);
  if (length < length_of(end) || leeway < 0)
    call.work.refuse("truncate: a length of ", length, " has no room");
  if (length_of(text) <= length + leeway) return call.work.text(text);
  std::size_t cut = 0;
  for (std::int64_t k = length_of(end); k < length; ++k) cut += unicode::rune_at(text, cut).bytes;
  std::string out = text.substr(0, cut);
  if (!call.with.flag(1, false)) out.resize(std::min(out.rfind(' '), out.size()));
  return call.work.text(out + end);
}

Value words(const Call& call) {
  std::int64_t count = 0;
  bool inside = false;
  for (const char32_t code : unicode::decoded(self(call))) {
    const bool letter = unicode::is_word(code);
    count += letter && !inside ? 1 : 0;
    inside = letter;
  }
  return count;
}

Value escape(const Call& call) {
  if (call.self.text() != nullptr && call.self.text()->markup) return call.self;
  return call.work.text(escaped(self(call)), true);
}

Value url(const Call& call) {
  constexpr const char* hex = "0123456789ABCDEF";
  constexpr std::string_view plain = "_.-~/";
  if (call.self.dict() != nullptr || call.self.sequence() != nullptr)
    call.work.refuse("urlencode: weft writes texts only");
  std::string out;
  for (const char c : self(call)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && (std::isalnum(byte) != 0 || plain.find(c) != std::string_view::npos)) {
      out += c;
    } else {
      out += {'%', hex[byte >> 4], hex[byte & 15]};
    }
  }
  return call.work.text(std::move(out));
}

Value json(const Call& call) {
  JsonStyle style{.ascii = call.with.flag(0, false), .sorted = call.with.flag(3, false)};
  if (call.with.has(1)) {
    style.lines = true;
    style.between = ",";
    if (call.with[1]->text() != nullptr) {
      style.indent = call.with[1]->text()->bytes;
    } else {
      const std::int64_t width = std::max<std::int64_t>(call.with.whole(1, 0), 0);
      call.work.spend(width);
      style.indent.assign(static_cast<std::size_t>(width), ' ');
    }
  }
  if (call.with.has(2)) {
    const Values two = call.work.walked(*call.with[2]);
    if (two.size() != 2 || two[0].text() == nullptr || two[1].text() == nullptr)
      call.work.refuse("tojson: separators are not two texts");
    style.between = two[0].text()->bytes;
    style.behind_key = two[1].text()->bytes;
  }
  return call.work.text(json_text(call.work, call.self, style));
}

// What Python's int() and float() read: blanks around and _ between digits are fine.
std::optional<double> real_in(std::string_view text) {
  std::string plain(stripped(text, {}, {}));
  const bool under = plain.starts_with('_') || plain.ends_with('_') || plain.find("__") != std::string::npos;
  std::erase(plain, '_');
  if (plain.starts_with('+') && !plain.starts_with("+-")) plain.erase(0, 1);
  double out = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), out);
  if (under || plain.empty() || error != std::errc() || end != plain.data() + plain.size()) return {};
  return out;
}

std::optional<std::int64_t> whole_in(std::string_view text, int base) {
  std::string plain(stripped(text, {}, {}));
  const bool under = plain.starts_with('_') || plain.ends_with('_') || plain.find("__") != std::string::npos;
  std::erase(plain, '_');
  if (plain.starts_with('+') && !plain.starts_with("+-")) plain.erase(0, 1);
  if (base == 16 && (plain.starts_with("0x") || plain.starts_with("0X"))) plain.erase(0, 2);
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), out, base);
  if (under || plain.empty() || error != std::errc() || end != plain.data() + plain.size()) return {};
  return out;
}

Value whole(const Call& call) {
  const Value otherwise = call.with[0] ? *call.with[0] : Value(std::int64_t{0});
  const std::int64_t base = call.with.whole(1, 10);
  if (base < 2 || base > 36) call.work.refuse("int: a base of ", base);
  if (call.self.undefined()) call.work.refuse_undefined(call.self);
  if (is_whole(call.self)) return as_whole(call.self);
  std::optional<double> real;
  if (const Text* text = call.self.text()) {
    if (const auto number = whole_in(text->bytes, static_cast<int>(base))) return *number;
    real = real_in(text->bytes);
  } else if (is_number(call.self)) {
    real = as_double(call.self);
  }
  if (!real || !std::isfinite(*real)) return otherwise;
  if (std::abs(*real) >= 9.2e18) call.work.refuse("a whole number outgrows 64 bits");
  return static_cast<std::int64_t>(*real);
}

Value real(const Call& call) {
  if (call.self.undefined()) call.work.refuse_undefined(call.self);
  if (is_number(call.self)) return as_double(call.self);
  const auto number = call.self.text() != nullptr ? real_in(call.self.text()->bytes) : std::nullopt;
  if (number) return *number;
  return call.with[0] ? *call.with[0] : Value(0.0);
}

// As Python rounds: what is written with so many digits and is nearest, of two the even.
double rounded(double value, std::int64_t digits) {
  if (!std::isfinite(value) || digits > 300) return value;
  if (digits < 0) {
    const double unit = std::pow(10.0, static_cast<double>(-digits));
    return std::nearbyint(value / unit) * unit;
  }
  char buffer[700];
  std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(digits), value);
  return std::strtod(buffer, nullptr);
}

Value round_to(const Call& call) {
  const std::int64_t digits = call.with.whole(0, 0);
  const std::string method = call.with.text(1, "common");
  if (call.self.undefined()) call.work.refuse_undefined(call.self);
  if (!is_number(call.self)) call.work.refuse("round: ", kind(call.self), ", expected a number");
  if (method == "common") {
    if (is_whole(call.self) && digits >= 0) return as_whole(call.self);
    const double out = rounded(as_double(call.self), digits);
    return is_whole(call.self) ? Value(static_cast<std::int64_t>(out)) : Value(out);
  }
  if (method != "ceil" && method != "floor") call.work.refuse("round: a method '", method, "'");
  const double unit = std::pow(10.0, static_cast<double>(digits)), value = as_double(call.self) * unit;
  return (method == "ceil" ? std::ceil(value) : std::floor(value)) / unit;
}

Value absolute(const Call& call) {
  if (call.self.undefined()) call.work.refuse_undefined(call.self);
  if (!is_number(call.self)) call.work.refuse("abs: ", kind(call.self), ", expected a number");
  if (is_whole(call.self))
    return as_whole(call.self) < 0 ? negative(call.work, call.self) : Value(as_whole(call.self));
  return std::abs(as_double(call.self));
}

Value otherwise(const Call& call) {
  const bool missing = call.self.undefined() || (call.with.flag(1, false) && !truth(call.self));
  if (!missing) return call.self;
  return call.with[0] ? *call.with[0] : call.work.text("");
}

constexpr std::array filters{
    Known{"trim", "chars", trimmed},
    Known{"upper", "", [](const Call& c) { return c.work.text(upper(self(c))); }},
    Known{"lower", "", [](const Call& c) { return c.work.text(lower(self(c))); }},
    Known{"title", "", titled},
    Known{"capitalize", "", [](const Call& c) { return c.work.text(capitalized(self(c))); }},
    Known{"replace", "old! new! count", replace},
    Known{"indent", "width first blank", indented},
    Known{"truncate", "length killwords end leeway", truncated},
    Known{"wordcount", "", words},
    Known{"center", "width",
          [](const Call& c) -> Value {
            const Value text = c.work.text(self(c));
            return run(c.work, *text_method("center"), text, {.plain = {c.with.whole(0, 80)}, .named = {}});
          }},
    Known{"escape", "", escape},
    Known{"e", "", escape},
    Known{"forceescape", "", [](const Call& c) { return c.work.text(escaped(self(c)), true); }},
    Known{"safe", "", [](const Call& c) { return c.work.text(self(c), true); }},
    Known{"string", "",
          [](const Call& c) { return c.self.text() != nullptr ? c.self : c.work.text(self(c)); }},
    Known{"urlencode", "", url},
    Known{"format", "*", [](const Call& c) { return percent(c.work, self(c), c.with.rest()); }},
    Known{"tojson", "ensure_ascii indent separators sort_keys", json},
    Known{"int", "default base", whole},
    Known{"float", "default", real},
    Known{"round", "precision method", round_to},
    Known{"abs", "", absolute},
    Known{"default", "default_value boolean", otherwise},
    Known{"d", "default_value boolean", otherwise}};

}  // namespace

const Known* filter_named(std::string_view name) {
  const Known* found = known(filters, name);
  return found != nullptr ? found : list_filter_named(name);
}

}  // namespace weft::jinja
