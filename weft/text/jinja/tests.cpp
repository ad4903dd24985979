// What may stand behind `is`.
#include <array>

#include "weft/text/jinja/operators.h"
#include "weft/text/jinja/print.h"
#include "weft/text/jinja/strings.h"

namespace weft::jinja {

namespace {

bool sequence(const Value& value) {
  const Sequence* list = value.sequence();
  if (list == nullptr) return value.undefined() || value.text() != nullptr || value.dict() != nullptr;
  return list->form == Form::list || list->form == Form::tuple || list->form == Form::group ||
         list->form == Form::range;
}

bool iterable(const Value& value) {
  return value.undefined() || value.text() != nullptr || value.dict() != nullptr ||
         value.sequence() != nullptr;
}

// The same thing: of texts and numbers, which Python may hold once or twice, the same value.
bool same(const Call& call) {
  const Value &a = call.self, &b = *call.with[0];
  if (a.held.index() != b.held.index()) return false;
  if (a.sequence() != nullptr) return a.sequence() == b.sequence();
  if (a.dict() != nullptr) return a.dict() == b.dict();
  return call.work.equal(a, b);
}

bool divides(const Call& call, const Value& by, std::int64_t rest) {
  return call.work.equal(binary(call.work, "%", call.self, by), rest);
}

template <const char* sign>
Value compared(const Call& call) {
  return compares(call.work, sign, call.self, *call.with[0]);
}
constexpr char equals[] = "==", differs[] = "!=", below[] = "<", at_most[] = "<=", above[] = ">",
               at_least[] = ">=", within[] = "in";

bool is(const Value& value, bool flag) { return value.flag() && truth(value) == flag; }

constexpr std::array tests{
    Known{"defined", "", [](const Call& c) -> Value { return !c.self.undefined(); }},
    Known{"undefined", "", [](const Call& c) -> Value { return c.self.undefined(); }},
    Known{"none", "", [](const Call& c) -> Value { return c.self.none(); }},
    Known{"boolean", "", [](const Call& c) -> Value { return c.self.flag(); }},
    Known{"true", "", [](const Call& c) -> Value { return is(c.self, true); }},
    Known{"false", "", [](const Call& c) -> Value { return is(c.self, false); }},
    Known{"integer", "", [](const Call& c) -> Value { return is_whole(c.self) && !c.self.flag(); }},
    Known{"float", "", [](const Call& c) -> Value { return is_number(c.self) && !is_whole(c.self); }},
    Known{"number", "", [](const Call& c) -> Value { return is_number(c.self); }},
    Known{"string", "", [](const Call& c) -> Value { return c.self.text() != nullptr; }},
    Known{"mapping", "", [](const Call& c) -> Value { return c.self.dict() != nullptr; }},
    Known{"sequence", "", [](const Call& c) -> Value { return sequence(c.self); }},
    Known{"iterable", "", [](const Call& c) -> Value { return iterable(c.self); }},
    Known{"callable", "",
          [](const Call& c) -> Value {
            return c.self.undefined() || (c.self.object() != nullptr && c.self.object()->callable());
          }},
    Known{"escaped", "",
          [](const Call& c) -> Value { return c.self.text() != nullptr && c.self.text()->markup; }},
    Known{"sameas", "other!", [](const Call& c) -> Value { return same(c); }},
    Known{"odd", "", [](const Call& c) -> Value { return divides(c, std::int64_t{2}, 1); }},
    Known{"even", "", [](const Call& c) -> Value { return divides(c, std::int64_t{2}, 0); }},
    Known{"divisibleby", "num!", [](const Call& c) -> Value { return divides(c, *c.with[0], 0); }},
    Known{"lower", "", [](const Call& c) -> Value { return all_lower(printed(c.work, c.self)); }},
    Known{"upper", "", [](const Call& c) -> Value { return all_upper(printed(c.work, c.self)); }},
    Known{"filter", "", [](const Call& c) -> Value { return filter_named(bytes_of(c.self)) != nullptr; }},
    Known{"test", "", [](const Call& c) -> Value { return test_named(bytes_of(c.self)) != nullptr; }},
    Known{"in", "seq!", compared<within>},
    Known{"eq", "other!", compared<equals>},
    Known{"equalto", "other!", compared<equals>},
    Known{"==", "other!", compared<equals>},
    Known{"ne", "other!", compared<differs>},
    Known{"!=", "other!", compared<differs>},
    Known{"lt", "other!", compared<below>},
    Known{"lessthan", "other!", compared<below>},
    Known{"<", "other!", compared<below>},
    Known{"le", "other!", compared<at_most>},
    Known{"<=", "other!", compared<at_most>},
    Known{"gt", "other!", compared<above>},
    Known{"greaterthan", "other!", compared<above>},
    Known{">", "other!", compared<above>},
    Known{"ge", "other!", compared<at_least>},
    Known{">=", "other!", compared<at_least>}};

}  // namespace

const Known* test_named(std::string_view name) { return known(tests, name); }

}  // namespace weft::jinja
