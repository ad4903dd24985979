// "%s" % value and "{}".format(value), as far as templates use them.
#include <algorithm>
#include <cmath>

#include "weft/text/jinja/operators.h"
#include "weft/text/jinja/print.h"
#include "weft/text/jinja/strings.h"
#include "weft/text/unicode.h"

namespace weft::jinja {

namespace {

// What stands between % and its letter, or behind the : in braces.
struct Layout {
  bool left = false, right = false, center = false, zeros = false, plus = false, commas = false;
  std::int64_t width = 0, digits = -1;
  std::string fill = " ";
  char letter = 's';
};

std::int64_t number_at(Work& work, std::string_view pattern, std::size_t& at) {
  std::int64_t out = 0;
  for (; at < pattern.size() && pattern[at] >= '0' && pattern[at] <= '9'; ++at) {
    out = out * 10 + (pattern[at] - '0');
    if (out > 10000) work.refuse("format: a width of more than 10000");
  }
  return out;
}

std::string with_commas(const std::string& number) {
  const std::size_t begin = number.starts_with('-') || number.starts_with('+') ? 1 : 0;
  std::size_t end = std::min(number.find('.'), number.size());
  std::string out = number;
  while (end > begin + 3) out.insert(end -= 3, ",");
  return out;
}

std::string laid_out(Work& work, std::string text, const Layout& layout, bool number) {
  if (layout.commas) text = with_commas(text);
  const std::int64_t missing = layout.width - length_of(text);
  if (missing <= 0) return text;
  work.spend(missing, layout.fill.size());
  const bool right = layout.right || (number && !layout.left && !layout.center);
  std::string before, behind;
  const std::int64_t front = layout.center ? missing / 2 : right ? missing : 0;
  for (std::int64_t k = 0; k < missing; ++k)
    (k < front ? before : behind) += layout.zeros ? "0" : layout.fill;
  const std::size_t sign = layout.zeros && (text.starts_with('-') || text.starts_with('+')) ? 1 : 0;
  return text.substr(0, sign) + before + text.substr(sign) + behind;
}

std::string digits_of(Work& work, const Value& value, const Layout& layout) {
  const char pattern[] = {'%', '.', '*', layout.letter, 0};
  const int digits = static_cast<int>(layout.digits < 0 ? 6 : layout.digits);
  if (digits > 100) work.refuse("format: more than 100 digits behind the point");
  char buffer[500];
  const int size = std::snprintf(buffer, sizeof buffer, pattern, digits, as_double(value));
  return {buffer, static_cast<std::size_t>(size)};
}

std::string whole_text(const Value& value, char letter) {
  const std::int64_t number = as_whole(value);
  if (letter != 'x' && letter != 'X') return std::to_string(number);
  char buffer[32];
  const auto size = number < 0 ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
  std::snprintf(buffer, sizeof buffer, letter == 'x' ? "%s%lx" : "%s%lX", number < 0 ? "-" : "",
                static_cast<unsigned long>(size));
  return buffer;
}

std::string formatted(Work& work, const Value& value, const Layout& layout) {
  constexpr std::string_view wholes = "dixX", reals = "feEgG";
  const char letter = layout.letter;
  std::string out;
  if (letter == 's' || letter == 'r') {
    out = letter == 's' ? printed(work, value) : repr(work, value);
    if (layout.digits >= 0) {
      std::size_t end = 0;
      for (std::int64_t k = 0; k < layout.digits && end < out.size(); ++k)
        end += unicode::rune_at(out, end).bytes;
      out.resize(end);
    }
    return laid_out(work, std::move(out), layout, false);
  }
  if (value.undefined()) work.refuse_undefined(value);
  const bool whole = wholes.find(letter) != std::string_view::npos,
             real = reals.find(letter) != std::string_view::npos;
  if (!whole && !real) work.refuse("weft formats nothing as '", letter, "'");
  if (!is_number(value)) work.refuse("format: ", kind(value), " cannot be written as '", letter, "'");
  if (whole && !is_whole(value)) {
    if (!std::isfinite(as_double(value)) || std::abs(as_double(value)) > 9e18)
      work.refuse("format: a number that is no whole one");
    out = whole_text(static_cast<std::int64_t>(as_double(value)), letter);
  } else {
    out = whole ? whole_text(value, letter) : digits_of(work, value, layout);
  }
  if (layout.plus && !out.starts_with('-')) out.insert(0, "+");
  return laid_out(work, std::move(out), layout, true);
}

class Percent {
 public:
  Percent(Work& work, std::string_view pattern, const Arguments& given)
      : work_(work), pattern_(pattern), given_(given) {}
  std::string run() {
    std::string out;
    while (at_ < pattern_.size()) {
      const std::size_t end = std::min(pattern_.find('%', at_), pattern_.size());
      out += pattern_.substr(at_, end - at_);
      at_ = end + 1;
      if (end == pattern_.size()) break;
      out += one();
    }
    if (!by_name_ && next_ < given_.plain.size() &&
        !(given_.plain.size() == 1 && given_.plain[0].dict() != nullptr))
      work_.refuse("format: ", given_.plain.size(), " values for a text that takes ", next_);
    return out;
  }

 private:
  [[nodiscard]] char now() const { return at_ < pattern_.size() ? pattern_[at_] : '\0'; }

  Value named() {
    const std::size_t end = pattern_.find(')', at_);
    if (end == std::string_view::npos) work_.refuse("format: '%(' without ')'");
    const std::string name(pattern_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    by_name_ = true;
    for (const auto& [key, value] : given_.named)
      if (key == name) return value;
    const Dict* dict = given_.plain.size() == 1 ? given_.plain[0].dict() : nullptr;
    const Value* found = dict != nullptr ? dict->find(name) : nullptr;
    if (found == nullptr) work_.refuse("format: there is no '", name, "'");
    return *found;
  }

  std::string one() {
    if (now() == '%') {
      ++at_;
      return "%";
    }
    std::optional<Value> value;
    if (now() == '(') value = named();
    Layout layout{.right = true};
    for (; std::string_view("-+0 #").find(now()) != std::string_view::npos && now() != '\0'; ++at_) {
      if (now() == ' ' || now() == '#') work_.refuse("weft has no flag '", now(), "' in a format");
      layout.left = layout.left || now() == '-';
      layout.plus = layout.plus || now() == '+';
      layout.zeros = layout.zeros || now() == '0';
    }
    layout.right = !layout.left;
    layout.width = number_at(work_, pattern_, at_);
    if (now() == '.') layout.digits = number_at(work_, pattern_, ++at_);
    if (now() == '\0') work_.refuse("format: '%' without a letter");
    layout.letter = now();
    ++at_;
    layout.zeros = layout.zeros && !layout.left && layout.letter != 's' && layout.letter != 'r';
    if (!value) {
      if (next_ >= given_.plain.size()) work_.refuse("format: too few values");
      value = given_.plain[next_++];
    }
    return formatted(work_, *value, layout);
  }

  Work& work_;
  std::string_view pattern_;
  const Arguments& given_;
  std::size_t at_ = 0, next_ = 0;
  bool by_name_ = false;
};

// [[fill]align][+][0][width][,][.digits][letter]
Layout layout_of(Work& work, std::string_view spec, const Value& value) {
  Layout out{.letter = 0};
  std::size_t at = 0;
  const auto align = [&](char c) {
    out.left = c == '<';
    out.right = c == '>';
    out.center = c == '^';
    return out.left || out.right || out.center;
  };
  const std::size_t first = spec.empty() ? 0 : unicode::rune_at(spec, 0).bytes;
  if (spec.size() > first && first > 0 && align(spec[first])) {
    out.fill = spec.substr(0, first);
    at = first + 1;
  } else if (!spec.empty() && align(spec[0])) {
    at = 1;
  }
  const auto take = [&](char c) {
    const bool there = at < spec.size() && spec[at] == c;
    at += there ? 1 : 0;
    return there;
  };
  out.plus = take('+');
  out.zeros = take('0');
  out.width = number_at(work, spec, at);
  out.commas = take(',');
  if (take('.')) out.digits = number_at(work, spec, at);
  if (at < spec.size()) out.letter = spec[at++];
  if (at < spec.size()) work.refuse("weft knows no format '", spec, "'");
  if (out.letter == 0) out.letter = is_whole(value) && !value.flag() ? 'd' : 's';
  if (out.letter == 's' && is_number(value) && !value.flag() &&
      (out.digits >= 0 || out.plus || out.commas || out.zeros))
    work.refuse("weft knows no format '", spec, "' of a number without a letter behind it");
  if (out.letter == 's' && is_number(value) && !value.flag() && !out.left && !out.center) out.right = true;
  return out;
}

class Braces {
 public:
  Braces(Work& work, std::string_view pattern, const Arguments& given)
      : work_(work), pattern_(pattern), given_(given) {}
  std::string run() {
    std::string out;
    for (std::size_t at = 0; at < pattern_.size(); ++at) {
      const char c = pattern_[at];
      if (c != '{' && c != '}') {
        out += c;
      } else if (at + 1 < pattern_.size() && pattern_[at + 1] == c) {
        out += c;
        ++at;
      } else {
        const std::size_t end = c == '{' ? pattern_.find('}', at) : std::string_view::npos;
        if (end == std::string_view::npos) work_.refuse("format: '", c, "' stands alone");
        out += field(pattern_.substr(at + 1, end - at - 1));
        at = end;
      }
    }
    return out;
  }

 private:
  std::string field(std::string_view field) {
    const std::size_t colon = std::min(field.find(':'), field.size());
    const std::string_view spec = colon < field.size() ? field.substr(colon + 1) : std::string_view();
    if (spec.find('{') != std::string_view::npos) work_.refuse("weft knows no format '", spec, "'");
    const std::string_view whole = field.substr(0, colon);
    const std::size_t mark = std::min(whole.find('!'), whole.size());
    const std::string_view turn = whole.substr(mark);
    if (!turn.empty() && turn != "!r" && turn != "!s") work_.refuse("weft knows no format '", turn, "'");
    Value value = part(whole.substr(0, mark));
    if (!turn.empty()) value = work_.text(turn == "!r" ? repr(work_, value) : printed(work_, value));
    return formatted(work_, value, layout_of(work_, spec, value));
  }

  // "", "0", "name", "name.part", "name[key]"
  Value part(std::string_view path) {
    const std::string_view first = path.substr(0, path.find_first_of(".["));
    Value out = first.empty() ? plain(next_++) : named(first);
    for (std::string_view left = path.substr(first.size()); !left.empty();) {
      const bool bracket = left[0] == '[';
      const std::size_t end = bracket ? left.find(']') : std::min(left.find_first_of(".[", 1), left.size());
      if (end == std::string_view::npos) work_.refuse("format: '[' without ']'");
      const std::string_view key = left.substr(1, end - 1);
      const bool whole =
          bracket && !key.empty() && key.find_first_not_of("0123456789") == std::string_view::npos;
      std::size_t at = 0;
      out = whole     ? item(work_, out, number_at(work_, key, at))
            : bracket ? item(work_, out, work_.text(std::string(key)))
                      : attribute(work_, out, key);
      if (out.undefined()) work_.refuse_undefined(out);
      left.remove_prefix(bracket ? end + 1 : end);
    }
    return out;
  }
  Value plain(std::size_t k) {
    if (k >= given_.plain.size()) work_.refuse("format: too few values");
    return given_.plain[k];
  }
  Value named(std::string_view name) {
    if (name.find_first_not_of("0123456789") == std::string_view::npos) {
      std::size_t at = 0;
      return plain(static_cast<std::size_t>(number_at(work_, name, at)));
    }
    for (const auto& [key, value] : given_.named)
      if (key == name) return value;
    work_.refuse("format: there is no '", name, "'");
  }

  Work& work_;
  std::string_view pattern_;
  const Arguments& given_;
  std::size_t next_ = 0;
};

}  // namespace

Value percent(Work& work, std::string_view pattern, const Arguments& given) {
  return work.text(Percent(work, pattern, given).run());
}

Value braces(Work& work, std::string_view pattern, const Arguments& given) {
  return work.text(Braces(work, pattern, given).run());
}

Value format_method(const Call& call) { return braces(call.work, call.self.text()->bytes, call.with.rest()); }

}  // namespace weft::jinja
