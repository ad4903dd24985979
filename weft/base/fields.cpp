#include "weft/base/fields.h"

#include <charconv>
#include <limits>

#include "weft/base/error.h"

namespace weft {
namespace {

template <class Number>
void read_number(std::string_view from, Number& to, std::string_view expected) {
  const char* end = from.data() + from.size();
  const auto [stop, wrong] = std::from_chars(from.data(), end, to);
  if (wrong == std::errc::result_out_of_range)
    fail(Kind::usage, "'", from, "' is out of range: at most ", std::numeric_limits<Number>::max());
  if (wrong != std::errc{} || stop != end) fail(Kind::usage, "'", from, "' is not ", expected);
}

template <class Number>
std::string digits(Number value) {
  char buffer[40];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

}  // namespace

std::string_view name(Origin who) {
  switch (who) {
    case Origin::built_in:
      return "built-in";
    case Origin::derived:
      return "derived";
    case Origin::file:
      return "file";
    case Origin::checkpoint:
      return "checkpoint";
    case Origin::command_line:
      return "command line";
  }
  return "unknown";
}

void read_word(std::string_view from, bool& to) {
  if (from != "true" && from != "false") fail(Kind::usage, "'", from, "' is neither true nor false");
  to = from == "true";
}
void read_word(std::string_view from, int& to) { read_number(from, to, "a whole number"); }
void read_word(std::string_view from, std::int64_t& to) { read_number(from, to, "a whole number"); }
void read_word(std::string_view from, std::uint64_t& to) {
  read_number(from, to, "a whole number, 0 or more");
}
void read_word(std::string_view from, double& to) { read_number(from, to, "a number"); }

std::size_t choose(std::string_view from, std::span<const std::string_view> choices) {
  std::string all;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (choices[i] == from) return i;
    all += text(i == 0 ? "" : i + 1 < choices.size() ? ", " : " or ", choices[i]);
  }
  fail(Kind::usage, "'", from, "' is not one of ", all);
}

std::string write_word(bool value) { return value ? "true" : "false"; }
std::string write_word(int value) { return digits(value); }
std::string write_word(std::int64_t value) { return digits(value); }
std::string write_word(std::uint64_t value) { return digits(value); }
std::string write_word(double value) { return digits(value); }
std::string write_word(const std::string& value) { return value; }

void detail::one_word(std::span<const std::string> from) {
  if (from.size() != 1) fail(Kind::usage, "expected one value, found ", from.size());
}

// Words that are no numbers are for whoever reads them as what they should be.
void Field::check(std::span<const std::string> from) const {
  for (const std::string& word : from) {
    double value = 0;
    const char* end = word.data() + word.size();
    const auto [stop, wrong] = std::from_chars(word.data(), end, value);
    if (stop != end || (wrong == std::errc{} && legal_->holds(value))) continue;
    const std::string range = words(*legal_);
    fail(Kind::usage, "'", word, "' is not a ", kind() == FieldKind::integer ? "whole" : "finite", " number",
         range.empty() ? "" : " ", range);
  }
}

// What a checkpoint holds was checked when it was given.
void Field::read(std::span<const std::string> from, Origin who) {
  if (legal_ && (who == Origin::file || who == Origin::command_line)) check(from);
  take(from);
  origin_ = who;
}

Field* Fields::find(std::string_view path) const {
  for (const auto& field : fields_)
    if (field->path() == path) return field.get();
  return nullptr;
}

Field& Fields::at(std::string_view path) const {
  if (Field* field = find(path)) return *field;
  fail(Kind::internal, "fields: no field is called ", path);
}

}  // namespace weft
