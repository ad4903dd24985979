#include "weft/text/jinja/print.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "weft/text/unicode.h"

namespace weft::jinja {

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  std::string digits;
  const std::string_view written(buffer, static_cast<std::size_t>(end - buffer));
  const auto mark = written.find('e');
  for (const char c : written.substr(0, mark))
    if (c >= '0' && c <= '9') digits += c;
  int exponent = std::atoi(std::string(written.substr(mark + 1)).c_str());
  const std::string sign = std::signbit(value) ? "-" : "";
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    std::string out = sign + digits.substr(0, 1) + (count > 1 ? "." + digits.substr(1) : "") + "e";
    out += exponent < 0 ? '-' : '+';
    exponent = std::abs(exponent);
    return out + (exponent < 10 ? "0" : "") + std::to_string(exponent);
  }
  if (exponent < 0) return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  if (exponent >= count - 1)
    return sign + digits + std::string(static_cast<std::size_t>(exponent - count + 1), '0') + ".0";
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

namespace {

void append_hex(std::string& out, std::uint32_t number, int digits) {
  constexpr const char* hex = "0123456789abcdef";
  for (int k = digits - 1; k >= 0; --k) out += hex[number >> (4 * k) & 15];
}

void append_escaped(std::string& out, char32_t code) {
  out += code < 0x100 ? "\\x" : code < 0x10000 ? "\\u" : "\\U";
  append_hex(out, code, code < 0x100 ? 2 : code < 0x10000 ? 4 : 8);
}

std::string in_quotes(std::string_view text) {
  const char quote =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  for (std::size_t at = 0; at < text.size();) {
    const auto rune = unicode::rune_at(text, at);
    const bool hidden = unicode::is_other(rune.code) || (rune.code != ' ' && unicode::is_space(rune.code));
    if (rune.code == static_cast<unsigned char>(quote) || rune.code == '\\') {
      out += '\\';
      out += static_cast<char>(rune.code);
    } else if (rune.code == '\n' || rune.code == '\r' || rune.code == '\t') {
      out += rune.code == '\n' ? "\\n" : rune.code == '\r' ? "\\r" : "\\t";
    } else if (hidden) {
      append_escaped(out, rune.code);
    } else {
      out += text.substr(at, rune.bytes);
    }
    at += rune.bytes;
  }
  return out + quote;
}

std::string listed(Work& work, const Values& items, const char* open, const char* close) {
  std::string out = open;
  for (std::size_t k = 0; k < items.size(); ++k) {
    if (k > 0) out += ", ";
    out += repr(work, items[k]);
  }
  return out + close;
}

std::string sequence_text(Work& work, const Sequence& list) {
  switch (list.form) {
    case Form::list:
      return listed(work, list.items, "[", "]");
    case Form::tuple:
    case Form::group:
      return listed(work, list.items, "(", list.items.size() == 1 ? ",)" : ")");
    case Form::keys:
      return listed(work, list.items, "dict_keys([", "])");
    case Form::values:
      return listed(work, list.items, "dict_values([", "])");
    case Form::items:
      return listed(work, list.items, "dict_items([", "])");
    case Form::range:
    case Form::stream:
      break;
  }
  work.refuse(list.form == Form::range ? "a range" : "a stream",
              " cannot be printed; the filter list makes a list");
}

std::string dict_text(Work& work, const Dict& dict) {
  std::string out = "{";
  for (const auto& [key, value] : dict.pairs) {
    if (out.size() > 1) out += ", ";
    out += repr(work, key) + ": " + repr(work, value);
  }
  return out + "}";
}

}  // namespace

std::string repr(Work& work, const Value& value) {
  work.spend(1);
  if (const Text* text = value.text()) {
    work.spend(static_cast<std::int64_t>(text->bytes.size()));
    return text->markup ? "Markup(" + in_quotes(text->bytes) + ")" : in_quotes(text->bytes);
  }
  if (value.undefined()) return "Undefined";
  return printed(work, value);
}

std::string printed(Work& work, const Value& value) {
  if (value.undefined()) return "";
  if (value.none()) return "None";
  if (const bool* flag = std::get_if<bool>(&value.held)) return *flag ? "True" : "False";
  if (is_whole(value)) return std::to_string(as_whole(value));
  if (is_number(value)) return float_text(as_double(value));
  if (const Text* text = value.text()) {
    work.spend(static_cast<std::int64_t>(text->bytes.size()));
    return text->bytes;
  }
  if (const Sequence* list = value.sequence()) return sequence_text(work, *list);
  if (const Dict* dict = value.dict()) return dict_text(work, *dict);
  work.refuse(kind(value), " cannot be printed");
}

namespace {

void append_json_text(std::string& out, std::string_view text, bool ascii) {
  constexpr std::string_view named = "\"\\\n\r\t\b\f", letters = "\"\\nrtbf";
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, bytes] = unicode::rune_at(text, at);
    const auto which = code < 0x80 ? named.find(static_cast<char>(code)) : std::string_view::npos;
    if (which != std::string_view::npos) {
      out += '\\';
      out += letters[which];
    } else if (code < 0x20 || (ascii && code > 0x7e && code < 0x10000)) {
      out += "\\u";
      append_hex(out, code, 4);
    } else if (ascii && code >= 0x10000) {
      out += "\\u";
      append_hex(out, 0xd800 + ((code - 0x10000) >> 10), 4);
      out += "\\u";
      append_hex(out, 0xdc00 + ((code - 0x10000) & 0x3ff), 4);
    } else {
      out += text.substr(at, bytes);
    }
    at += bytes;
  }
  out += '"';
}

struct JsonWriter {
  Work& work;
  const JsonStyle& style;
  std::string out = {};

  void line(int level) {
    work.spend(static_cast<std::int64_t>(style.between.size() + style.behind_key.size()));
    if (!style.lines) return;
    work.spend(level + 1, style.indent.size() + 1);
    out += '\n';
    for (int k = 0; k < level; ++k) out += style.indent;
  }
  void scalar(const Value& value) {
    const bool* flag = std::get_if<bool>(&value.held);
    if (value.none()) {
      out += "null";
    } else if (flag != nullptr) {
      out += *flag ? "true" : "false";
    } else if (is_number(value) && !is_whole(value) && !std::isfinite(as_double(value))) {
      out += std::isnan(as_double(value)) ? "NaN" : as_double(value) > 0 ? "Infinity" : "-Infinity";
    } else if (is_number(value)) {
      out += printed(work, value);
    } else {
      work.refuse("tojson: ", kind(value), " is nothing that JSON has");
    }
  }
  void list(const Values& items, int level) {
    if (items.empty()) {
      out += "[]";
      return;
    }
    out += '[';
    for (std::size_t k = 0; k < items.size(); ++k) {
      if (k > 0) out += style.between;
      line(level + 1);
      write(items[k], level + 1);
    }
    line(level);
    out += ']';
  }
  void key(const Value& value) {
    if (const Text* text = value.text()) return append_json_text(out, text->bytes, style.ascii);
    out += '"';
    scalar(value);
    out += '"';
  }
  void dict(const Dict& dict, int level) {
    if (dict.pairs.empty()) {
      out += "{}";
      return;
    }
    std::vector<Pair> pairs = dict.pairs;
    if (style.sorted)
      std::ranges::stable_sort(pairs,
                               [&](const Pair& a, const Pair& b) { return work.less(a.first, b.first); });
    out += '{';
    for (std::size_t k = 0; k < pairs.size(); ++k) {
      if (k > 0) out += style.between;
      line(level + 1);
      key(pairs[k].first);
      out += style.behind_key;
      write(pairs[k].second, level + 1);
    }
    line(level);
    out += '}';
  }
  void write(const Value& value, int level) {
    work.spend(1);
    const Sequence* items = value.sequence();
    if (const Text* text = value.text()) {
      work.spend(static_cast<std::int64_t>(text->bytes.size()));
      append_json_text(out, text->bytes, style.ascii);
    } else if (items != nullptr &&
               (items->form == Form::list || items->form == Form::tuple || items->form == Form::group)) {
      list(items->items, level);
    } else if (value.dict() != nullptr) {
      dict(*value.dict(), level);
    } else {
      scalar(value);
    }
  }
};

}  // namespace

std::string json_text(Work& work, const Value& value, const JsonStyle& style) {
  JsonWriter writer{work, style};
  writer.write(value, 0);
  return std::move(writer.out);
}

}  // namespace weft::jinja
