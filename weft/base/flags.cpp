#include "weft/base/flags.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "weft/base/error.h"
#include "weft/base/nearest.h"

namespace weft {
namespace {

bool is_number(std::string_view word) {
  double value = 0;
  const char* end = word.data() + word.size();
  return std::from_chars(word.data(), end, value).ptr == end;
}

// argparse takes "-5", "-" and anything with a space in it for values; no flag begins with a digit, so
// "-5,0" is one too.
bool is_flag(std::string_view word) {
  if (word.size() < 2 || word[0] != '-' || word.find(' ') != std::string_view::npos) return false;
  return !is_number(word) && std::isdigit(static_cast<unsigned char>(word[1])) == 0;
}

struct Bounds {
  std::size_t least, most;
};

Bounds bounds(Arity arity) {
  constexpr auto many = std::string::npos;
  switch (arity) {
    case Arity::none:
      return {0, 0};
    case Arity::one:
      return {1, 1};
    case Arity::two:
      return {2, 2};
    case Arity::maybe_one:
      return {0, 1};
    case Arity::any:
      return {0, many};
    case Arity::some:
      return {1, many};
  }
  return {0, 0};
}

std::string expected(Arity arity) {
  if (arity == Arity::some) return "at least one value";
  return arity == Arity::two ? "two values" : "a value";
}

[[noreturn]] void unknown(std::span<const Flag> known, std::string_view typed) {
  std::vector<std::string> owned;
  for (const Flag& flag : known)
    if (flag.may_be_cut) owned.push_back(dashed(flag.name));
  const std::vector<std::string_view> names(owned.begin(), owned.end());
  const std::string_view close = nearest(dashed(typed), names);
  fail(Kind::usage, "--", typed, " is not a flag", close.empty() ? "" : text(", did you mean --", close));
}

class FlagReader {
 public:
  FlagReader(std::span<const Flag> known, std::span<const std::string_view> words)
      : known_(known), words_(words) {}
  Split read() {
    while (at_ < words_.size()) {
      const std::string_view word = words_[at_++];
      if (word == "--")
        while (at_ < words_.size()) out_.others.emplace_back(words_[at_++]);
      else if (is_flag(word))
        flag(word);
      else
        out_.others.emplace_back(word);
    }
    return std::move(out_);
  }

 private:
  void flag(std::string_view word) {
    const std::string_view bare = word.substr(std::min(word.find_first_not_of('-'), word.size()));
    const auto equals = bare.find('=');
    Given given{find_flag(known_, bare.substr(0, equals)), {}};
    const Flag& known = known_[given.flag];
    const auto [least, most] = bounds(known.arity);
    if (equals != std::string_view::npos) {
      if (most == 0)
        fail(Kind::usage, "--", known.name, " is a switch and takes no value, found ", bare.substr(equals));
      given.words.emplace_back(bare.substr(equals + 1));
    } else {
      while (at_ < words_.size() && given.words.size() < most && words_[at_] != "--" && !is_flag(words_[at_]))
        given.words.emplace_back(words_[at_++]);
    }
    if (given.words.size() < least)
      fail(Kind::usage, "--", known.name, " needs ", expected(known.arity), ", found ", found(given));
    out_.flags.push_back(std::move(given));
  }

  // Where too few words followed: how many, or what stands in their place.
  std::string found(const Given& given) const {
    if (!given.words.empty()) return text(given.words.size());
    if (at_ == words_.size()) return "the end of the line";
    const bool looks_so = !words_[at_].starts_with("--");
    return looks_so ? text(words_[at_], ", which looks like a flag: write --", known_[given.flag].name, "=",
                           words_[at_])
                    : text("the flag ", words_[at_]);
  }

  std::span<const Flag> known_;
  std::span<const std::string_view> words_;
  std::size_t at_ = 0;
  Split out_;
};

}  // namespace

std::string dashed(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

std::size_t find_flag(std::span<const Flag> known, std::string_view typed) {
  const std::string wanted = dashed(typed);
  std::vector<std::size_t> begun;
  for (std::size_t i = 0; i < known.size(); ++i) {
    const std::string name = dashed(known[i].name);
    if (name == wanted) return i;
    if (!wanted.empty() && known[i].may_be_cut && name.starts_with(wanted)) begun.push_back(i);
  }
  if (begun.empty()) unknown(known, typed);
  if (begun.size() == 1) return begun[0];
  std::string all;
  for (const std::size_t i : begun) all += text(all.empty() ? "--" : ", --", known[i].name);
  fail(Kind::usage, "--", typed, " may mean ", all);
}

Split split_flags(std::span<const Flag> known, std::span<const std::string_view> words) {
  return FlagReader(known, words).read();
}

std::string flag_of(const Field& field) {
  std::string out = text("--", dashed(field.path()));
  std::replace(out.begin(), out.end(), '.', '-');
  return out;
}

std::string value_name(const Field& field) {
  std::string one;
  if (field.kind() == FieldKind::boolean && !field.list()) return "";
  if (field.kind() == FieldKind::integer) one = "N";
  if (field.kind() == FieldKind::real) one = "X";
  if (field.kind() == FieldKind::text) one = "TEXT";
  for (const std::string_view choice : field.choices()) one += text(one.empty() ? "" : "|", choice);
  return field.list() ? text(one, " ...") : one;
}

std::string help_with_default(const Field& field) {
  std::string value;
  for (const std::string& word : field.write()) value += text(value.empty() ? "" : " ", word);
  const bool off = field.kind() == FieldKind::boolean && value == "false";
  const bool follows = value == "0";  // a zero that means "as the others say" is no news
  return value.empty() || off || follows ? field.help() : text(field.help(), " (default ", value, ")");
}

std::vector<std::string> read_flags(Fields& fields, std::span<const std::string_view> words) {
  std::vector<std::string> names;
  std::vector<Field*> targets;
  for (const auto& field : fields.all()) {
    const std::string name = flag_of(*field).substr(2);
    names.push_back(name);
    targets.push_back(field.get());
    if (value_name(*field).empty()) {
      names.push_back(text("no-", name));
      targets.push_back(field.get());
    }
  }
  std::vector<Flag> known;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool is_switch = value_name(*targets[i]).empty();
    known.push_back({.name = names[i],
                     .arity = is_switch            ? Arity::none
                              : targets[i]->list() ? Arity::some
                                                   : Arity::one});
  }
  Split split = split_flags(known, words);
  for (Given& given : split.flags) {
    const std::string& name = names[given.flag];
    Field& field = *targets[given.flag];
    if (known[given.flag].arity == Arity::none)
      given.words = {flag_of(field) == text("--", name) ? "true" : "false"};
    try {
      field.read(given.words, Origin::command_line);
    } catch (const Error& e) {
      fail(Kind::usage, "--", name, ": ", e.what());
    }
  }
  return std::move(split.others);
}

}  // namespace weft
