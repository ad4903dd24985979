#include "weft/text/jinja/work.h"

#include <algorithm>

#include "weft/base/format.h"
#include "weft/text/unicode.h"

namespace weft::jinja {

namespace {

// Whatever walks into a value recurses: templates may not nest values as deep as the stack.
constexpr int deepest = 100;

int deepest_of(const Values& items) {
  int most = 0;
  for (const Value& one : items) most = std::max(most, depth(one));
  return most + 1;
}

}  // namespace

Work::~Work() {
  for (const auto& one : kept_) one->forget();
}

std::optional<Value> Space::part(Work& work, std::string_view name) const {
  work.spend(static_cast<std::int64_t>(parts_.size() / 16));
  for (const auto& [key, value] : parts_)
    if (key == name) return value;
  return {};
}

void Space::set(Work& work, std::string_view name, Value value) const {
  if (name.starts_with('_'))
    work.refuse("a namespace takes no '", name, "': names with _ in front are Python's own");
  work.spend(static_cast<std::int64_t>(parts_.size() / 16 + 1));
  for (auto& [key, old] : parts_) {
    if (key != name) continue;
    old = std::move(value);
    return;
  }
  parts_.emplace_back(name, std::move(value));
}

void Work::spend(std::int64_t count, std::size_t size) {
  if (count > 0 && size > 0 && static_cast<std::uint64_t>(count) > static_cast<std::uint64_t>(left_) / size)
    spend(left_ + 1);
  if (count > 0) spend(count * static_cast<std::int64_t>(size));
}

Value Work::text(std::string bytes, bool markup) {
  spend(static_cast<std::int64_t>(bytes.size()));
  return std::make_shared<const Text>(Text{std::move(bytes), markup});
}

Value Work::sequence(Form form, Values items) {
  spend(static_cast<std::int64_t>(items.size()), sizeof(Value));
  const int depth = deepest_of(items);
  if (depth > deepest) refuse("lists nest deeper than ", deepest, " levels");
  return std::make_shared<const Sequence>(Sequence{form, std::move(items), depth, 0});
}

Value Work::dict(std::vector<Pair> pairs) {
  spend(static_cast<std::int64_t>(pairs.size()), sizeof(Pair));
  Dict out;
  int most = 0;
  for (Pair& pair : pairs) {
    const Value& key = pair.first;
    if (key.dict() != nullptr || (key.sequence() != nullptr && key.sequence()->form == Form::list))
      refuse(kind(key), " cannot be a key");
    most = std::max({most, depth(key), depth(pair.second)});
    const Value* there = find(out, key);
    if (there == nullptr) {
      out.pairs.push_back(std::move(pair));
    } else {
      std::ranges::find_if(out.pairs, [&](const Pair& p) { return &p.second == there; })->second =
          std::move(pair.second);
    }
  }
  out.depth = most + 1;
  if (out.depth > deepest) refuse("dicts nest deeper than ", deepest, " levels");
  return std::make_shared<const Dict>(std::move(out));
}

const Value* Work::find(const Dict& dict, const Value& key) {
  if (const Text* text = key.text()) {
    spend(static_cast<std::int64_t>(dict.pairs.size() / 16));
    return dict.find(text->bytes);
  }
  for (const auto& [name, value] : dict.pairs)
    if (equal(name, key)) return &value;
  return nullptr;
}

bool Work::equal_lists(const Sequence& a, const Sequence& b) {
  const auto plain = [](Form form) { return form == Form::group ? Form::tuple : form; };
  if (&a == &b) return true;
  if (a.form == Form::stream || plain(a.form) != plain(b.form) || a.items.size() != b.items.size())
    return false;
  for (std::size_t k = 0; k < a.items.size(); ++k)
    if (!equal(a.items[k], b.items[k])) return false;
  return true;
}

bool Work::equal_dicts(const Dict& a, const Dict& b) {
  if (&a == &b) return true;
  return a.pairs.size() == b.pairs.size() && std::ranges::all_of(a.pairs, [&](const Pair& pair) {
           const Value* other = find(b, pair.first);
           return other != nullptr && equal(pair.second, *other);
         });
}

bool Work::equal(const Value& a, const Value& b) {
  spend(1);
  if (is_whole(a) && is_whole(b)) return as_whole(a) == as_whole(b);
  if (is_number(a) && is_number(b)) return as_double(a) == as_double(b);
  if (a.held.index() != b.held.index()) return false;
  if (a.undefined() || a.none()) return true;
  if (const Text* text = a.text()) return text->bytes == b.text()->bytes;
  if (const Sequence* list = a.sequence()) return equal_lists(*list, *b.sequence());
  if (const Dict* dict = a.dict()) return equal_dicts(*dict, *b.dict());
  return a.object() == b.object();
}

void Work::refuse_undefined(const Value& value) const {
  const auto& why = std::get<Undefined>(value.held).why;
  refuse(why != nullptr ? *why : "something is undefined");
}

Values Work::walked(const Value& value) {
  if (value.undefined()) return {};
  if (const Sequence* list = value.sequence()) {
    spend(static_cast<std::int64_t>(list->items.size()));
    if (list->form != Form::stream) return list->items;
    const auto from = list->items.begin() + static_cast<std::ptrdiff_t>(list->taken);
    list->taken = list->items.size();
    return {from, list->items.end()};
  }
  Values out;
  if (const Dict* dict = value.dict()) {
    for (const auto& [key, unused] : dict->pairs) out.push_back(key);
    spend(static_cast<std::int64_t>(out.size()));
    return out;
  }
  const Text* letters = value.text();
  if (letters == nullptr) refuse(kind(value), " cannot be walked over");
  for (std::size_t at = 0; at < letters->bytes.size();) {
    const auto size = unicode::rune_at(letters->bytes, at).bytes;
    spend(sizeof(Text));
    out.push_back(text(letters->bytes.substr(at, size)));
    at += size;
  }
  return out;
}

bool Work::less(const Value& a, const Value& b) {
  if (a.undefined()) refuse_undefined(a);
  if (b.undefined()) refuse_undefined(b);
  if (is_whole(a) && is_whole(b)) return as_whole(a) < as_whole(b);
  if (is_number(a) && is_number(b)) return as_double(a) < as_double(b);
  // Bytes of UTF-8 stand in the order of their code points.
  if (a.text() != nullptr && b.text() != nullptr) return a.text()->bytes < b.text()->bytes;
  const Sequence *left = a.sequence(), *right = b.sequence();
  const auto ordered = [](const Sequence* list) {
    return list != nullptr && list->form != Form::stream && list->form != Form::values;
  };
  if (!ordered(left) || !ordered(right)) refuse(kind(a), " and ", kind(b), " have no order");
  for (std::size_t k = 0; k < std::min(left->items.size(), right->items.size()); ++k) {
    spend(1);
    if (!equal(left->items[k], right->items[k])) return less(left->items[k], right->items[k]);
  }
  return left->items.size() < right->items.size();
}

Taken::Taken(Work& work, std::string_view who, Arguments given, std::string_view parameters)
    : work_(work), who_(who) {
  std::vector<bool> needed;
  bool more = false;
  for (std::string_view left = parameters; !left.empty();) {
    std::string_view name = left.substr(0, left.find(' '));
    left.remove_prefix(std::min(left.size(), name.size() + 1));
    if (name == "*") {
      more = true;
      continue;
    }
    needed.push_back(name.ends_with('!'));
    if (needed.back()) name.remove_suffix(1);
    names_.push_back(name);
  }
  at_.resize(names_.size());
  for (std::size_t k = 0; k < given.plain.size(); ++k) {
    if (k < at_.size()) {
      at_[k] = std::move(given.plain[k]);
    } else if (more) {
      rest_.plain.push_back(std::move(given.plain[k]));
    } else {
      work.refuse(who, " takes ", at_.size(), at_.size() == 1 ? " argument" : " arguments", " and was given ",
                  given.plain.size());
    }
  }
  for (auto& [name, value] : given.named) {
    const auto place = std::ranges::find(names_, name);
    const auto k = static_cast<std::size_t>(place - names_.begin());
    if (place == names_.end() && !more) work.refuse(who, " takes no argument '", name, "'");
    if (place == names_.end()) {
      rest_.named.emplace_back(name, std::move(value));
    } else {
      if (at_[k]) work.refuse(who, " was given '", name, "' twice");
      at_[k] = std::move(value);
    }
  }
  for (std::size_t k = 0; k < names_.size(); ++k)
    if (needed[k] && !at_[k]) work.refuse(who, " was not given its '", names_[k], "'");
}

std::int64_t Taken::whole(std::size_t k, std::int64_t otherwise) const {
  if (!has(k)) return otherwise;
  if (at_[k]->undefined()) work_.refuse_undefined(*at_[k]);
  if (!is_whole(*at_[k]))
    work_.refuse(who_, ": '", names_[k], "' is ", kind(*at_[k]), ", expected a whole number");
  return as_whole(*at_[k]);
}

bool Taken::flag(std::size_t k, bool otherwise) const { return at_[k] ? truth(*at_[k]) : otherwise; }

std::string Taken::text(std::size_t k, std::string_view otherwise) const {
  if (!has(k)) return std::string(otherwise);
  if (at_[k]->undefined()) work_.refuse_undefined(*at_[k]);
  if (at_[k]->text() == nullptr)
    work_.refuse(who_, ": '", names_[k], "' is ", kind(*at_[k]), ", expected a text");
  return at_[k]->text()->bytes;
}

}  // namespace weft::jinja
