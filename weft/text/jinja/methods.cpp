// value.name, value[key] and value[from:to]: what values have in them.
#include <algorithm>
#include <array>

#include "weft/text/jinja/print.h"
#include "weft/text/jinja/strings.h"
#include "weft/text/unicode.h"

namespace weft::jinja {

namespace {

const Dict& dict(const Call& call) { return *call.self.dict(); }

Value view(const Call& call, Form form) {
  Values out;
  for (const auto& [key, value] : dict(call).pairs) {
    if (form == Form::items) {
      out.push_back(call.work.sequence(Form::tuple, {key, value}));
    } else {
      out.push_back(form == Form::keys ? key : value);
    }
  }
  return call.work.sequence(form, std::move(out));
}

Value get(const Call& call) {
  const Value* found = call.work.find(dict(call), *call.with[0]);
  if (found != nullptr) return *found;
  return call.with[1] ? *call.with[1] : Value(None{});
}

constexpr std::array dict_methods{Known{"items", "", [](const Call& c) { return view(c, Form::items); }},
                                  Known{"keys", "", [](const Call& c) { return view(c, Form::keys); }},
                                  Known{"values", "", [](const Call& c) { return view(c, Form::values); }},
                                  Known{"get", "key! default", get},
                                  Known{"copy", "", [](const Call& c) { return c.self; }}};

Value count_of(const Call& call) {
  std::int64_t found = 0;
  for (const Value& one : call.self.sequence()->items) found += call.work.equal(one, *call.with[0]) ? 1 : 0;
  return found;
}

Value index_of(const Call& call) {
  const Values& items = call.self.sequence()->items;
  for (std::size_t k = 0; k < items.size(); ++k)
    if (call.work.equal(items[k], *call.with[0])) return static_cast<std::int64_t>(k);
  call.work.refuse("index: ", kind(*call.with[0]), " is not in the list");
}

constexpr std::array list_methods{Known{"count", "value!", count_of}, Known{"index", "value!", index_of},
                                  Known{"copy", "", [](const Call& c) { return c.self; }}};

// What Python has and weft has not: else it would seem to be missing.
constexpr std::array<std::string_view, 8> other_text{
    "casefold", "encode", "expandtabs", "format_map", "isidentifier", "isprintable", "istitle", "translate"};
constexpr std::array<std::string_view, 10> other_number{"real",       "imag",      "numerator", "denominator",
                                                        "bit_length", "bit_count", "conjugate", "to_bytes",
                                                        "is_integer", "hex"};
// What would change a value: transformers' sandbox refuses it, too.
constexpr std::array<std::string_view, 5> changes_dict{"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::array<std::string_view, 8> changes_list{"append", "clear", "pop",    "reverse",
                                                       "insert", "sort",  "extend", "remove"};

template <class Names>
bool among(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != std::end(names);
}

bool is_list(const Sequence* list, bool tuple) {
  return list != nullptr &&
         (list->form == Form::list || (tuple && (list->form == Form::tuple || list->form == Form::group)));
}

const Known* method(const Value& value, std::string_view name) {
  if (value.text() != nullptr) return text_method(name);
  if (value.dict() != nullptr) return known(dict_methods, name);
  if (!is_list(value.sequence(), true)) return nullptr;
  const Known* found = known(list_methods, name);
  return found != nullptr && found->name == "copy" && !is_list(value.sequence(), false) ? nullptr : found;
}

// A part that is no item, if there is one.
std::optional<Value> part(Work& work, const Value& value, std::string_view name) {
  if (const Known* found = method(value, name)) return std::make_shared<const Function>(*found, value);
  const Sequence* list = value.sequence();
  if (list != nullptr && list->form == Form::group && (name == "grouper" || name == "list"))
    return list->items[name == "list" ? 1 : 0];
  if (value.object() != nullptr) return value.object()->part(work, name);
  if ((value.dict() != nullptr && among(changes_dict, name)) ||
      (is_list(list, false) && among(changes_list, name)))
    return Work::undefined(std::string(kind(value)) + " cannot be changed: templates have no '" +
                           std::string(name) + "'");
  if ((value.text() != nullptr && among(other_text, name)) || (is_number(value) && among(other_number, name)))
    work.refuse("weft has no '", name, "' of ", kind(value));
  return {};
}

Value missing(const Value& value, std::string_view name) {
  return Work::undefined(std::string(kind(value)) + " has no '" + std::string(name) + "'");
}

Value at(Work& work, const Value& value, std::int64_t place) {
  const Text* text = value.text();
  const Sequence* list = value.sequence();
  const bool indexed = list != nullptr && (is_list(list, true) || list->form == Form::range);
  if (text == nullptr && !indexed) return missing(value, std::to_string(place));
  const std::int64_t count = text != nullptr ? length_of(text->bytes) : std::ssize(list->items);
  const std::int64_t from = place < 0 ? place + count : place;
  if (from < 0 || from >= count) return missing(value, std::to_string(place));
  if (text == nullptr) return list->items[static_cast<std::size_t>(from)];
  std::size_t byte = 0;
  for (std::int64_t k = 0; k < from; ++k) byte += unicode::rune_at(text->bytes, byte).bytes;
  work.spend(static_cast<std::int64_t>(byte));
  return work.text(text->bytes.substr(byte, unicode::rune_at(text->bytes, byte).bytes));
}

}  // namespace

Value attribute(Work& work, const Value& value, std::string_view name) {
  if (value.undefined()) work.refuse_undefined(value);
  if (auto found = part(work, value, name)) return *found;
  const Value* found = value.dict() != nullptr ? value.dict()->find(name) : nullptr;
  return found != nullptr ? *found : missing(value, name);
}

Value item(Work& work, const Value& value, const Value& key) {
  if (value.undefined()) work.refuse_undefined(value);
  if (const Dict* dict = value.dict())
    if (const Value* found = work.find(*dict, key)) return *found;
  if (value.dict() == nullptr && is_whole(key)) return at(work, value, as_whole(key));
  if (const Text* name = key.text())
    if (auto found = part(work, value, name->bytes)) return *found;
  return missing(value, key.undefined() ? "" : printed(work, key));
}

namespace {

struct Places {
  std::int64_t from = 0, to = 0, step = 1;
};

// As Python counts: from the end where negative, and never beyond the ends.
Places places(Work& work, const Bounds& bounds, std::int64_t count) {
  const auto whole = [&](const Value& value, std::int64_t otherwise) {
    if (value.none()) return otherwise;
    if (value.undefined()) work.refuse_undefined(value);
    if (!is_whole(value)) work.refuse("a bound is ", kind(value), ", expected a whole number");
    return as_whole(value);
  };
  Places out{.step = whole(bounds.step, 1)};
  if (out.step == 0) work.refuse("a slice's step is 0");
  const bool back = out.step < 0;
  const auto place = [&](const Value& value, std::int64_t otherwise) {
    if (value.none()) return otherwise;
    std::int64_t at = whole(value, 0);
    if (at < 0) at = at + count;
    return std::clamp<std::int64_t>(at, back ? -1 : 0, back ? count - 1 : count);
  };
  out.from = place(bounds.from, back ? count - 1 : 0);
  out.to = place(bounds.to, back ? -1 : count);
  // A longer step ends as soon.
  out.step = std::clamp<std::int64_t>(out.step, -count - 1, count + 1);
  return out;
}

}  // namespace

Value slice(Work& work, const Value& value, const Bounds& bounds) {
  if (value.undefined()) work.refuse_undefined(value);
  const Text* text = value.text();
  const Sequence* list = value.sequence();
  if (text == nullptr && !is_list(list, true) && (list == nullptr || list->form != Form::range))
    work.refuse(kind(value), " has no part [from:to]");
  const std::u32string letters = text != nullptr ? unicode::decoded(text->bytes) : std::u32string();
  const Places at = places(work, bounds, text != nullptr ? std::ssize(letters) : std::ssize(list->items));
  std::string bytes;
  Values items;
  for (std::int64_t k = at.from; at.step > 0 ? k < at.to : k > at.to; k += at.step) {
    if (text != nullptr) {
      unicode::append(bytes, letters[static_cast<std::size_t>(k)]);
    } else {
      items.push_back(list->items[static_cast<std::size_t>(k)]);
    }
  }
  if (text != nullptr) {
    work.spend(std::ssize(text->bytes));
    return work.text(std::move(bytes), text->markup);
  }
  return work.sequence(list->form == Form::group ? Form::tuple : list->form, std::move(items));
}

}  // namespace weft::jinja
