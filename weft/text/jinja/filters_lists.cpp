// Filters of lists and dicts.
#include <algorithm>
#include <array>

#include "weft/base/format.h"
#include "weft/text/jinja/filters.h"
#include "weft/text/jinja/operators.h"
#include "weft/text/jinja/print.h"
#include "weft/text/jinja/strings.h"
#include "weft/text/unicode.h"

namespace weft::jinja {

namespace {

Values items(const Call& call) { return call.work.walked(call.self); }

Value length(const Call& call) {
  if (call.self.undefined()) return std::int64_t{0};
  if (const Text* text = call.self.text()) return length_of(text->bytes);
  if (const Dict* dict = call.self.dict()) return std::ssize(dict->pairs);
  const Sequence* list = call.self.sequence();
  if (list == nullptr || list->form == Form::stream)
    call.work.refuse("length: ", kind(call.self), " has none");
  return std::ssize(list->items);
}

// "a.b.0": each part's item in what the part before gave.
Value at_path(Work& work, Value of, const Value& path) {
  if (path.text() == nullptr) return item(work, of, path);
  for (const std::string_view part : split(path.text()->bytes, '.')) {
    const bool number =
        !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == std::string::npos;
    of = item(work, of,
              number ? Value(static_cast<std::int64_t>(std::stoll(std::string(part))))
                     : work.text(std::string(part)));
  }
  return of;
}

Value plain_case(Work& work, const Value& value) {
  return value.text() != nullptr ? work.text(lower(value.text()->bytes)) : value;
}

// What items are ordered by: themselves or parts of them, all letters small unless case matters.
Value key_of(const Call& call, const Value& item, const std::optional<Value>& path, bool with_case) {
  const Value out = path && !path->none() ? at_path(call.work, item, *path) : item;
  return with_case ? out : plain_case(call.work, out);
}

std::vector<Pair> keyed(const Call& call, const Values& items, const std::optional<Value>& path,
                        bool with_case) {
  std::vector<Pair> out;
  for (const Value& one : items) out.emplace_back(key_of(call, one, path, with_case), one);
  return out;
}

void order(const Call& call, std::vector<Pair>& pairs, bool falling) {
  call.work.spend(std::ssize(pairs) * 8);
  std::ranges::stable_sort(pairs, [&](const Pair& a, const Pair& b) {
    return falling ? call.work.less(b.first, a.first) : call.work.less(a.first, b.first);
  });
}

Value seconds(const Call& call, std::vector<Pair>& pairs) {
  Values out;
  for (Pair& pair : pairs) out.push_back(std::move(pair.second));
  return call.work.list(std::move(out));
}

Value sorted(const Call& call) {  // reverse case_sensitive attribute
  const auto& path = call.with[2];
  Values keys = items(call);
  std::vector<Pair> pairs;
  for (Value& one : keys) {
    if (path && path->text() != nullptr && path->text()->bytes.find(',') != std::string::npos) {
      Values several;
      for (const std::string_view each : split(path->text()->bytes, ','))
        several.push_back(key_of(call, one, call.work.text(std::string(each)), call.with.flag(1, false)));
      pairs.emplace_back(call.work.list(std::move(several)), std::move(one));
    } else {
      Value key = key_of(call, one, path, call.with.flag(1, false));
      pairs.emplace_back(std::move(key), std::move(one));
    }
  }
  order(call, pairs, call.with.flag(0, false));
  return seconds(call, pairs);
}

Value dict_sorted(const Call& call) {  // case_sensitive by reverse
  if (call.self.undefined()) call.work.refuse_undefined(call.self);
  if (call.self.dict() == nullptr) call.work.refuse("dictsort: ", kind(call.self), ", expected a dict");
  const std::string by = call.with.text(1, "key");
  if (by != "key" && by != "value") call.work.refuse("dictsort: by '", by, "', expected key or value");
  std::vector<Pair> pairs;
  for (const auto& [key, value] : call.self.dict()->pairs) {
    const Value& what = by == "key" ? key : value;
    pairs.emplace_back(call.with.flag(0, false) ? what : plain_case(call.work, what),
                       call.work.sequence(Form::tuple, {key, value}));
  }
  order(call, pairs, call.with.flag(2, false));
  return seconds(call, pairs);
}

Value unique(const Call& call) {  // case_sensitive attribute
  Values seen, out;
  for (const auto& [key, one] : keyed(call, items(call), call.with[1], call.with.flag(0, false))) {
    if (std::ranges::any_of(seen,
                            [&, &mine = key](const Value& other) { return call.work.equal(other, mine); }))
      continue;
    seen.push_back(key);
    out.push_back(one);
  }
  return call.work.sequence(Form::stream, std::move(out));
}

Value extreme(const Call& call, bool greatest) {  // case_sensitive attribute
  const auto pairs = keyed(call, items(call), call.with[1], call.with.flag(0, false));
  if (pairs.empty()) return Work::undefined("an empty list has no least and no greatest");
  const Pair* best = &pairs[0];
  for (const Pair& one : pairs)
    if (greatest ? call.work.less(best->first, one.first) : call.work.less(one.first, best->first))
      best = &one;
  return best->second;
}

Value grouped(const Call& call) {  // attribute default case_sensitive
  std::vector<Pair> pairs;
  for (Value& one : items(call)) {
    Value key = at_path(call.work, one, *call.with[0]);
    if (key.undefined() && call.with.has(1)) key = *call.with[1];
    pairs.emplace_back(key, std::move(one));
  }
  const auto plain = [&](const Value& key) {
    return call.with.flag(2, false) ? key : plain_case(call.work, key);
  };
  call.work.spend(std::ssize(pairs) * 8);
  std::ranges::stable_sort(
      pairs, [&](const Pair& a, const Pair& b) { return call.work.less(plain(a.first), plain(b.first)); });
  Values out, group;
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    group.push_back(pairs[k].second);
    if (k + 1 < pairs.size() && call.work.equal(plain(pairs[k].first), plain(pairs[k + 1].first))) continue;
    const Value& first = pairs[k + 1 - group.size()].first;
    const Value list = call.work.list(std::exchange(group, {}));
    out.push_back(call.work.sequence(Form::group, {first, list}));
  }
  return call.work.list(std::move(out));
}

Value joined(const Call& call) {  // d attribute
  const std::string between = call.with[0] ? printed(call.work, *call.with[0]) : "";
  std::string out;
  bool first = true;
  for (const Value& one : items(call)) {
    if (!first) {
      call.work.spend(std::ssize(between));
      out += between;
    }
    out += printed(call.work, call.with.has(1) ? at_path(call.work, one, *call.with[1]) : one);
    first = false;
  }
  return call.work.text(std::move(out));
}

Value first(const Call& call) {
  const Sequence* list = call.self.sequence();
  if (list != nullptr && list->form == Form::stream)
    return list->taken < list->items.size() ? list->items[list->taken++]
                                            : Work::undefined("an empty stream has no first");
  const Values all = items(call);
  return all.empty() ? Work::undefined("an empty list has no first item") : all.front();
}

Value last(const Call& call) {
  if (call.self.undefined()) call.work.refuse_undefined(call.self);
  const Sequence* list = call.self.sequence();
  if (list != nullptr && list->form == Form::stream) call.work.refuse("last: a stream knows no last item");
  const Values all = items(call);
  return all.empty() ? Work::undefined("an empty list has no last item") : all.back();
}

Value reversed(const Call& call) {
  Values all = items(call);
  std::ranges::reverse(all);
  if (call.self.text() == nullptr) return call.work.sequence(Form::stream, std::move(all));
  std::string out;
  for (const Value& one : all) out += bytes_of(one);
  return call.work.text(std::move(out));
}

Value total(const Call& call) {  // attribute start
  Value out = call.with[1] ? *call.with[1] : Value(std::int64_t{0});
  for (const Value& one : items(call))
    out = binary(call.work, "+", out, call.with.has(0) ? at_path(call.work, one, *call.with[0]) : one);
  return out;
}

Value batches(const Call& call) {  // linecount fill_with
  const std::int64_t size = call.with.whole(0, 0);
  if (size < 1) call.work.refuse("batch: lines of ", size);
  Values out, line;
  const auto put = [&] { out.push_back(call.work.list(std::exchange(line, {}))); };
  for (Value& one : items(call)) {
    if (std::ssize(line) == size) put();
    line.push_back(std::move(one));
  }
  if (!line.empty() && call.with.has(1)) {
    call.work.spend(size, sizeof(Value));
    line.resize(static_cast<std::size_t>(size), *call.with[1]);
  }
  if (!line.empty()) put();
  return call.work.sequence(Form::stream, std::move(out));
}

Value slices(const Call& call) {  // slices fill_with
  const Values all = items(call);
  const std::int64_t count = call.with.whole(0, 0), size = std::ssize(all);
  if (count < 1) call.work.refuse("slice: ", count, " slices");
  call.work.spend(count, sizeof(Value));
  Values out;
  for (std::int64_t k = 0, at = 0; k < count; ++k) {
    const std::int64_t here = size / count + (k < size % count ? 1 : 0);
    Values part(all.begin() + at, all.begin() + at + here);
    if (call.with.has(1) && k >= size % count) part.push_back(*call.with[1]);
    at += here;
    out.push_back(call.work.list(std::move(part)));
  }
  return call.work.sequence(Form::stream, std::move(out));
}

Value pairs(const Call& call) {
  if (call.self.undefined()) return call.work.sequence(Form::stream, {});
  if (call.self.dict() == nullptr) call.work.refuse("items: ", kind(call.self), ", expected a dict");
  Values out;
  for (const auto& [key, value] : call.self.dict()->pairs)
    out.push_back(call.work.sequence(Form::tuple, {key, value}));
  return call.work.sequence(Form::stream, std::move(out));
}

const Known& other(const Call& call, const Value& name, const Known* (*find)(std::string_view),
                   const char* what) {
  const Known* found = name.text() != nullptr ? find(name.text()->bytes) : nullptr;
  if (found == nullptr) call.work.refuse("weft knows no ", what, " '", printed(call.work, name), "'");
  return *found;
}

Value mapped(const Call& call) {
  if (!truth(call.self)) return call.work.sequence(Form::stream, {});
  const Arguments& given = call.with.rest();
  Values out;
  if (!given.plain.empty()) {
    const Known& filter = other(call, given.plain[0], filter_named, "filter");
    const Arguments more{.plain = {given.plain.begin() + 1, given.plain.end()}, .named = given.named};
    for (const Value& one : items(call)) out.push_back(run(call.work, filter, one, more));
    return call.work.sequence(Form::stream, std::move(out));
  }
  const Value *path = nullptr, *otherwise = nullptr;
  for (const auto& [name, value] : given.named) {
    if (name != "attribute" && name != "default") call.work.refuse("map takes no argument '", name, "'");
    (name == "attribute" ? path : otherwise) = &value;
  }
  if (path == nullptr) call.work.refuse("map was given neither a filter nor an attribute");
  for (const Value& one : items(call)) {
    Value part = at_path(call.work, one, *path);
    if (part.undefined() && otherwise != nullptr && !otherwise->none()) part = *otherwise;
    out.push_back(std::move(part));
  }
  return call.work.sequence(Form::stream, std::move(out));
}

// select and reject, of items or of a part of each.
struct Sieve {
  bool by_part = false, keep = true;
};
Value sieved(const Call& call, Sieve sieve) {
  Values out;
  if (!truth(call.self)) return call.work.sequence(Form::stream, {});
  const Values& given = call.with.rest().plain;
  const std::size_t off = sieve.by_part ? 1 : 0;
  if (given.size() < off) call.work.refuse("selectattr and rejectattr need the name of a part");
  const Known* test = given.size() > off ? &other(call, given[off], test_named, "test") : nullptr;
  Arguments more{.plain = {}, .named = call.with.rest().named};
  if (test != nullptr) more.plain.assign(given.begin() + static_cast<std::ptrdiff_t>(off) + 1, given.end());
  for (Value& one : items(call)) {
    const Value what = sieve.by_part ? at_path(call.work, one, given[0]) : one;
    const bool passes = truth(test != nullptr ? run(call.work, *test, what, more) : what);
    if (passes == sieve.keep) out.push_back(std::move(one));
  }
  return call.work.sequence(Form::stream, std::move(out));
}

constexpr std::array filters{
    Known{"length", "", length},
    Known{"count", "", length},
    Known{"list", "", [](const Call& c) { return c.work.list(items(c)); }},
    Known{"sort", "reverse case_sensitive attribute", sorted},
    Known{"dictsort", "case_sensitive by reverse", dict_sorted},
    Known{"unique", "case_sensitive attribute", unique},
    Known{"min", "case_sensitive attribute", [](const Call& c) { return extreme(c, false); }},
    Known{"max", "case_sensitive attribute", [](const Call& c) { return extreme(c, true); }},
    Known{"groupby", "attribute! default case_sensitive", grouped},
    Known{"join", "d attribute", joined},
    Known{"first", "", first},
    Known{"last", "", last},
    Known{"reverse", "", reversed},
    Known{"sum", "attribute start", total},
    Known{"batch", "linecount! fill_with", batches},
    Known{"slice", "slices! fill_with", slices},
    Known{"items", "", pairs},
    Known{"attr", "name!",
          [](const Call& c) -> Value {
            // Parts only, no items of a dict.
            if (c.self.dict() != nullptr && c.self.dict()->find(c.with.text(0, "")) != nullptr)
              return Work::undefined("a dict has no part '" + c.with.text(0, "") + "'");
            return attribute(c.work, c.self, c.with.text(0, ""));
          }},
    Known{"map", "*", mapped},
    Known{"select", "*", [](const Call& c) { return sieved(c, {.by_part = false, .keep = true}); }},
    Known{"reject", "*", [](const Call& c) { return sieved(c, {.by_part = false, .keep = false}); }},
    Known{"selectattr", "*", [](const Call& c) { return sieved(c, {.by_part = true, .keep = true}); }},
    Known{"rejectattr", "*", [](const Call& c) { return sieved(c, {.by_part = true, .keep = false}); }}};

}  // namespace

const Known* list_filter_named(std::string_view name) { return known(filters, name); }

}  // namespace weft::jinja
