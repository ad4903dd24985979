#include "weft/text/jinja/operators.h"
#include "weft/text/jinja/print.h"
#include "weft/text/jinja/run.h"

namespace weft::jinja {

namespace {

using Kinds = Expression::Kind;

}  // namespace

Value Run::evaluate(const Expression& e) {
  const Deeper deeper(*this);
  work_.spend(1);
  return evaluated(e);
}

Value Run::evaluated(const Expression& e) {
  switch (e.kind) {
    case Kinds::constant:
      return e.constant;
    case Kinds::name:
      return name(e.word);
    case Kinds::attribute:
    case Kinds::item:
    case Kinds::slice:
      return part(e);
    case Kinds::call:
      return call(e);
    case Kinds::filter:
      return filter(e);
    case Kinds::test:
      return test(e);
    case Kinds::list:
    case Kinds::tuple:
      return list(e);
    case Kinds::dict:
      return dict(e);
    case Kinds::pick:
      return pick(e);
    case Kinds::either:
    case Kinds::both: {
      Value left = evaluate(*e.parts[0]);
      return truth(left) == (e.kind == Kinds::either) ? left : evaluate(*e.parts[1]);
    }
    case Kinds::negate:
      return !truth(evaluate(*e.parts[0]));
    case Kinds::minus:
    case Kinds::plus: {
      const Value of = evaluate(*e.parts[0]);
      work_.at(e.line);
      const Value minus = negative(work_, of);
      return e.kind == Kinds::minus ? minus : negative(work_, minus);
    }
    case Kinds::compare:
      return compare(e);
    case Kinds::join:
      return join(e);
    case Kinds::binary: {
      const Value left = evaluate(*e.parts[0]), right = evaluate(*e.parts[1]);
      work_.at(e.line);
      return binary(work_, e.word, left, right);
    }
    case Kinds::body:
      return bodies_.back();
  }
  return {};
}

// of.word, of[key] or of[from:to:step]
Value Run::part(const Expression& e) {
  const Value of = evaluate(*e.parts[0]);
  const auto one = [&](std::size_t k) {
    return k < e.parts.size() && e.parts[k] != nullptr ? evaluate(*e.parts[k]) : Value(None{});
  };
  const Bounds bounds{.from = one(1), .to = one(2), .step = one(3)};
  work_.at(e.line);
  if (e.kind == Kinds::attribute) return attribute(work_, of, e.word);
  return e.kind == Kinds::item ? item(work_, of, bounds.from) : slice(work_, of, bounds);
}

Value Run::name(const std::string& name) {
  for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->around.get()) {
    work_.spend(1);
    for (const auto& [there, value] : scope->names)
      if (there == name) return value;
  }
  if (const Known* global = global_named(name)) return std::make_shared<const Function>(*global, Value());
  return Work::undefined("'" + name + "' is undefined");
}

Value Run::list(const Expression& e) {
  Values items;
  for (const auto& part : e.parts) items.push_back(evaluate(*part));
  work_.at(e.line);
  return work_.sequence(e.kind == Kinds::list ? Form::list : Form::tuple, std::move(items));
}

Value Run::dict(const Expression& e) {
  std::vector<Pair> pairs;
  for (std::size_t k = 0; k + 1 < e.parts.size(); k += 2) {
    Value key = evaluate(*e.parts[k]);
    pairs.emplace_back(std::move(key), evaluate(*e.parts[k + 1]));
  }
  work_.at(e.line);
  return work_.dict(std::move(pairs));
}

Arguments Run::arguments(const GivenArguments& given) {
  Arguments out;
  for (const auto& one : given.plain) out.plain.push_back(evaluate(*one));
  for (const auto& [name, one] : given.named) out.named.emplace_back(name, evaluate(*one));
  if (given.list != nullptr)
    for (Value& one : work_.walked(evaluate(*given.list))) out.plain.push_back(std::move(one));
  if (given.dict == nullptr) return out;
  const Value more = evaluate(*given.dict);
  if (more.dict() == nullptr) work_.refuse("** stands before ", kind(more), ", expected a dict");
  for (const auto& [key, value] : more.dict()->pairs) {
    if (key.text() == nullptr) work_.refuse("** stands before a dict with ", kind(key), " for a key");
    out.named.emplace_back(key.text()->bytes, value);
  }
  return out;
}

Value Run::call(const Expression& e) {
  const Value called = evaluate(*e.parts[0]);
  work_.at(e.line);
  if (called.undefined()) work_.refuse_undefined(called);
  Arguments given = arguments(e.given);
  work_.at(e.line);
  if (called.object() == nullptr || !called.object()->callable())
    work_.refuse(kind(called), " cannot be called");
  return called.object()->call(work_, std::move(given));
}

Value Run::filter(const Expression& e) {
  const Value of = evaluate(*e.parts[0]);
  Arguments given = arguments(e.given);
  work_.at(e.line);
  const Known* known = filter_named(e.word);
  if (known == nullptr) work_.refuse("weft knows no filter '", e.word, "'");
  return jinja::run(work_, *known, of, std::move(given));
}

Value Run::test(const Expression& e) {
  const Value of = evaluate(*e.parts[0]);
  Arguments given = arguments(e.given);
  work_.at(e.line);
  const Known* known = test_named(e.word);
  if (known == nullptr) work_.refuse("weft knows no test '", e.word, "'");
  return jinja::run(work_, *known, of, std::move(given));
}

Value Run::compare(const Expression& e) {
  Value left = evaluate(*e.parts[0]);
  for (std::size_t k = 0; k < e.words.size(); ++k) {
    Value right = evaluate(*e.parts[k + 1]);
    work_.at(e.line);
    if (!compares(work_, e.words[k], left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Run::join(const Expression& e) {
  std::string out;
  for (const auto& part : e.parts) {
    const Value value = evaluate(*part);
    work_.at(e.line);
    out += printed(work_, value);
  }
  return work_.text(std::move(out));
}

Value Run::pick(const Expression& e) {
  if (truth(evaluate(*e.parts[1]))) return evaluate(*e.parts[0]);
  if (e.parts[2] != nullptr) return evaluate(*e.parts[2]);
  return Work::undefined("an 'if' without an 'else' was not so");
}

}  // namespace weft::jinja
