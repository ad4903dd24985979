// One walk along the line; only what is wanted is kept.
#include "weft/data/python_json.h"

#include <algorithm>
#include <cstdint>

#include "weft/base/error.h"

namespace weft::data {
namespace {

constexpr int most_nested = 1000;  // as deep as Python goes

bool is_digit(char c) { return c >= '0' && c <= '9'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_high(std::uint32_t unit) { return unit >= 0xd800 && unit < 0xdc00; }
bool is_low(std::uint32_t unit) { return unit >= 0xdc00 && unit < 0xe000; }

void append(std::string& to, std::uint32_t code) {
  const auto byte = [&](std::uint32_t bits) { to += static_cast<char>(static_cast<unsigned char>(bits)); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      byte(0xe0 | code >> 12);
    } else {
      byte(0xf0 | code >> 18);
      byte(0x80 | (code >> 12 & 0x3f));
    }
    byte(0x80 | (code >> 6 & 0x3f));
  }
  byte(0x80 | (code & 0x3f));
}

/// A text, and whether half of a surrogate pair stands in it, which no tokenizer takes.
struct Text {
  std::string said;
  bool whole = true;
};

class JsonLineReader {
 public:
  JsonLineReader(std::string_view line, const std::vector<std::string>& keys)
      : line_(line), keys_(keys), values_(keys.size()) {}

  std::vector<std::vector<std::string>> read() {
    skip_space();
    if (at_ == line_.size()) fail(Kind::data, "not JSON: a blank line, expected an object");
    if (next() == '{')
      object();
    else
      value(0), not_an_object_ = true;
    skip_space();
    if (at_ < line_.size()) wrong("nothing behind the value");
    if (not_an_object_) fail(Kind::data, "not a JSON object");
    std::vector<std::vector<std::string>> out;
    for (std::size_t k = 0; k < keys_.size(); ++k) out.push_back(texts_of(k));
    return out;
  }

 private:
  enum class Is : std::uint8_t { missing, text, list, mixed_list, other };
  struct Value {
    Is is = Is::missing;
    std::vector<Text> texts;
  };

  [[noreturn]] void wrong(const char* expected) const {
    fail(Kind::data, "not JSON: column ", at_ + 1, ": expected ", expected);
  }
  char next() const { return at_ < line_.size() ? line_[at_] : '\0'; }
  bool take(char c) {
    if (at_ == line_.size() || line_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view word) {
    if (!line_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void skip_space() {
    while (at_ < line_.size() && std::string_view(" \t\n\r").find(line_[at_]) != std::string_view::npos)
      ++at_;
  }

  // The outermost one.
  void object() {
    if (++at_; skip_space(), take('}')) return;
    do {
      const Text key = key_and_colon();
      const auto wanted = std::find(keys_.begin(), keys_.end(), key.said);
      if (wanted == keys_.end() || !key.whole)
        value(1);
      else
        values_[std::size_t(wanted - keys_.begin())] = wanted_value();
      skip_space();
    } while (take(','));
    if (!take('}')) wrong("',' or '}'");
  }

  Text key_and_colon() {
    skip_space();
    if (next() != '"') wrong("a name in quotes");
    Text key = string();
    skip_space();
    if (!take(':')) wrong("':'");
    skip_space();
    return key;
  }

  Value wanted_value() {
    if (next() == '"') return {Is::text, {string()}};
    if (next() != '[') return value(1), Value{Is::other, {}};
    Value out{Is::list, {}};
    if (++at_; skip_space(), take(']')) return out;
    do {
      skip_space();
      if (next() == '"') {
        out.texts.push_back(string());
      } else {
        value(2);
        out.is = Is::mixed_list;
      }
      skip_space();
    } while (take(','));
    if (!take(']')) wrong("',' or ']'");
    return out;
  }

  // Anything, passed over.
  void value(int depth) {
    if (depth > most_nested) fail(Kind::data, "not JSON: nested more than ", most_nested, " levels deep");
    const char c = next();
    if (c == '"') {
      (void)string();
    } else if (c == '{' || c == '[') {
      ++at_;
      inside(c == '{', depth);
    } else if (!take("null") && !take("true") && !take("false") && !take("NaN") && !take("Infinity") &&
               !take("-Infinity")) {
      number();
    }
  }

  void inside(bool object, int depth) {
    const char end = object ? '}' : ']';
    if (skip_space(); take(end)) return;
    do {
      if (object) (void)key_and_colon();
      skip_space();
      value(depth + 1);
      skip_space();
    } while (take(','));
    if (!take(end)) wrong(object ? "',' or '}'" : "',' or ']'");
  }

  void number() {
    std::size_t end = at_;
    const auto digits = [&] {
      const std::size_t first = end;
      while (end < line_.size() && is_digit(line_[end])) ++end;
      return end > first;
    };
    const auto is = [&](std::string_view any) {
      return end < line_.size() && any.find(line_[end]) != std::string_view::npos;
    };
    if (is("-")) ++end;
    if (is("0"))
      ++end;
    else if (!digits())
      wrong("a value");
    at_ = end;
    if (is(".") && (++end, digits())) at_ = end;
    end = at_;
    if (is("eE")) {
      if (++end; is("+-")) ++end;
      if (digits()) at_ = end;
    }
  }

  Text string() {
    Text out;
    const std::size_t begin = at_++;
    std::uint32_t high = 0;  // the first half of a pair whose second may follow
    const auto no_pair = [&] {
      if (high != 0) out.whole = false;
      high = 0;
    };
    for (;;) {
      if (at_ == line_.size()) {
        at_ = begin;
        wrong("an end of the text that begins here");
      }
      const char c = line_[at_];
      if (c == '"') break;
      if (static_cast<unsigned char>(c) < 0x20) wrong("no control character within a text");
      if (c != '\\') {
        no_pair();
        out.said += c;
        ++at_;
        continue;
      }
      if (line_.substr(at_).starts_with("\\u")) {
        const std::uint32_t unit = code_unit();
        if (high != 0 && is_low(unit)) {
          append(out.said, 0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00));
          high = 0;
          continue;
        }
        no_pair();
        if (is_high(unit))
          high = unit;
        else if (is_low(unit))
          out.whole = false;
        else
          append(out.said, unit);
        continue;
      }
      no_pair();
      out.said += escaped();
    }
    no_pair();
    ++at_;
    return out;
  }

  char escaped() {
    constexpr std::string_view letters = "\"\\/bfnrt", means = "\"\\/\b\f\n\r\t";
    const std::size_t found = at_ + 1 < line_.size() ? letters.find(line_[at_ + 1]) : std::string_view::npos;
    if (found == std::string_view::npos) wrong("one of \" \\ / b f n r t u behind the backslash");
    at_ += 2;
    return means[found];
  }

  std::uint32_t code_unit() {
    std::uint32_t unit = 0;
    for (std::size_t i = at_ + 2; i < at_ + 6; ++i) {
      const int digit = i < line_.size() ? hex_digit(line_[i]) : -1;
      if (digit < 0) wrong("four hexadecimal digits behind \\u");
      unit = unit * 16 + std::uint32_t(digit);
    }
    at_ += 6;
    return unit;
  }

  std::vector<std::string> texts_of(std::size_t k) const {
    const Value& value = values_[k];
    const std::string& key = keys_[k];
    if (value.is == Is::missing) fail(Kind::data, "no key \"", key, "\"");
    if (value.is == Is::mixed_list)
      fail(Kind::data, "key \"", key, "\" is a list with something else than texts");
    if (value.is == Is::other) fail(Kind::data, "key \"", key, "\" is neither a text nor a list of texts");
    std::vector<std::string> out;
    for (const Text& text : value.texts) {
      if (!text.whole)
        fail(Kind::data, "key \"", key,
             "\" holds half of a surrogate pair (\\ud800 to \\udfff), which is no character");
      out.push_back(text.said);
    }
    return out;
  }

  std::string_view line_;
  const std::vector<std::string>& keys_;
  std::vector<Value> values_;
  std::size_t at_ = 0;
  bool not_an_object_ = false;
};

}  // namespace

std::vector<std::vector<std::string>> texts_as_python_reads(std::string_view line,
                                                            const std::vector<std::string>& keys) {
  if (line.starts_with("\xEF\xBB\xBF"))
    fail(Kind::data, "not JSON: begins with a byte-order mark; write the file without one");
  return JsonLineReader(line, keys).read();
}

}  // namespace weft::data
