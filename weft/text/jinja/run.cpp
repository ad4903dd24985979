#include "weft/text/jinja/run.h"

#include <algorithm>

#include "weft/text/jinja/print.h"

namespace weft::jinja {

namespace {

using Tags = Statement::Kind;

constexpr int deepest = 1000;  // statements and evaluations in each other, macros' included

// `loop` within a loop.
class Loop : public Object {
 public:
  Loop(std::shared_ptr<const Values> items, std::size_t at) : items_(std::move(items)), at_(at) {}
  [[nodiscard]] const char* kind() const override { return "a loop"; }
  [[nodiscard]] int depth() const override {
    int most = 0;
    for (const Value& one : *items_) most = std::max(most, jinja::depth(one));
    return most + 1;
  }

  [[nodiscard]] std::optional<Value> part(Work& work, std::string_view name) const override {
    const auto at = static_cast<std::int64_t>(at_), count = static_cast<std::int64_t>(items_->size());
    if (name == "index") return at + 1;
    if (name == "index0") return at;
    if (name == "revindex") return count - at;
    if (name == "revindex0") return count - at - 1;
    if (name == "length") return count;
    if (name == "first") return at == 0;
    if (name == "last") return at + 1 == count;
    if (name == "depth") return std::int64_t{1};
    if (name == "depth0") return std::int64_t{0};
    if (name == "previtem")
      return at == 0 ? Work::undefined("there is no previous item") : (*items_)[at_ - 1];
    if (name == "nextitem")
      return at + 1 == count ? Work::undefined("there is no next item") : (*items_)[at_ + 1];
    if (name == "cycle") return cycle();
    if (name == "changed") work.refuse("weft has no loop.changed");
    return {};
  }

 private:
  [[nodiscard]] Value cycle() const {
    static constexpr Known cycle{"loop.cycle", "*", [](const Call& call) {
                                   const Values& of = call.with.rest().plain;
                                   if (of.empty()) call.work.refuse("loop.cycle was given nothing");
                                   return of[static_cast<std::size_t>(as_whole(call.self)) % of.size()];
                                 }};
    return std::make_shared<const Function>(cycle, static_cast<std::int64_t>(at_));
  }
  std::shared_ptr<const Values> items_;
  std::size_t at_;
};

class Macro : public Object {
 public:
  Macro(Run& run, const Statement& node, std::weak_ptr<Scope> around)
      : run_(run), node_(node), around_(std::move(around)) {}
  [[nodiscard]] const char* kind() const override { return "a macro"; }
  [[nodiscard]] bool callable() const override { return true; }
  [[nodiscard]] std::optional<Value> part(Work& work, std::string_view name) const override {
    if (name == "name") return work.text(node_.word);
    return {};
  }
  Value call(Work&, Arguments&& given) const override {
    return run_.call_macro(node_, around_.lock(), std::move(given));
  }

 private:
  Run& run_;
  const Statement& node_;
  std::weak_ptr<Scope> around_;
};

}  // namespace

/// Counts how deep what is run lies in each other.
Run::Deeper::Deeper(Run& run) : depth_(run.depth_) {
  if (++depth_ > deepest) run.work_.refuse("macros call each other deeper than ", deepest, " steps");
}

void Scope::set(const std::string& name, Value value) {
  for (auto& [there, old] : names) {
    if (there != name) continue;
    old = std::move(value);
    return;
  }
  names.emplace_back(name, std::move(value));
}

Run::Run(Work& work, Variables context)
    : work_(work),
      scope_(std::make_shared<Scope>(Scope{.names = std::move(context), .around = {}})),
      sinks_(1) {}

void Run::write(std::string_view text) {
  work_.spend(static_cast<std::int64_t>(text.size()));
  sinks_.back() += text;
}

Run::Flow Run::statements(const Block& block) {
  for (const Statement& one : block)
    if (const Flow flow = statement(one); flow != Flow::on) return flow;
  return Flow::on;
}

Run::Flow Run::statement(const Statement& one) {
  const Deeper deeper(*this);
  work_.at(one.line);
  work_.spend(1);
  switch (one.kind) {
    case Tags::data:
      write(one.word);
      break;
    case Tags::output:
      write(printed(work_, evaluate(*one.value)));
      break;
    case Tags::choice:
      return choice(one);
    case Tags::loop:
      return loop(one);
    case Tags::assign:
      assign(*one.target, evaluate(*one.value));
      break;
    case Tags::capture:
    case Tags::filter:
      filter_block(one);
      break;
    case Tags::macro:
      scope_->set(one.word, macro_of(one));
      break;
    case Tags::call:
      call_block(one);
      break;
    case Tags::with:
      with_block(one);
      break;
    case Tags::generation:
      generation(one);
      break;
    case Tags::leave:
      return Flow::leave;
    case Tags::next:
      return Flow::next;
  }
  return Flow::on;
}

Run::Flow Run::choice(const Statement& one) {
  for (const Branch& branch : one.branches)
    if (truth(evaluate(*branch.test))) return statements(branch.body);
  return statements(one.otherwise);
}

// The items that pass the loop's own test, if it has one.
Values Run::items_of(const Statement& loop) {
  const Value over = evaluate(*loop.value);
  work_.at(loop.line);
  Values items = work_.walked(over);
  if (loop.test == nullptr) return items;
  Values passed;
  const auto outer = scope_;
  for (Value& one : items) {
    scope_ = std::make_shared<Scope>(Scope{.names = {}, .around = outer});
    assign(*loop.target, one);
    if (truth(evaluate(*loop.test))) passed.push_back(std::move(one));
  }
  scope_ = outer;
  return passed;
}

Run::Flow Run::loop(const Statement& one) {
  const auto items = std::make_shared<const Values>(items_of(one));
  const auto outer = scope_;
  Flow flow = Flow::on;
  for (std::size_t k = 0; k < items->size() && flow != Flow::leave; ++k) {
    work_.at(one.line);
    scope_ = std::make_shared<Scope>(Scope{.names = {}, .around = outer});
    scope_->set("loop", std::make_shared<const Loop>(items, k));
    assign(*one.target, (*items)[k]);
    flow = statements(one.body);
  }
  if (items->empty()) {
    scope_ = std::make_shared<Scope>(Scope{.names = {}, .around = outer});
    flow = statements(one.otherwise);
    scope_ = outer;
    return flow;  // of the loop around this one
  }
  scope_ = outer;
  return Flow::on;
}

void Run::assign(const Expression& target, const Value& value) {
  work_.spend(1);
  if (target.kind == Expression::Kind::name) return scope_->set(target.word, value);
  if (target.kind == Expression::Kind::attribute) {
    const Value space = name(target.parts[0]->word);
    const auto* found = dynamic_cast<const Space*>(space.object());
    if (found == nullptr)
      work_.refuse("'", target.parts[0]->word, "' is ", kind(space),
                   ", and only parts of a namespace can be set");
    return found->set(work_, target.word, value);
  }
  const Values items = work_.walked(value);
  if (items.size() != target.parts.size())
    work_.refuse(kind(value), " of ", items.size(), " is taken apart to ", target.parts.size(), " names");
  for (std::size_t k = 0; k < items.size(); ++k) assign(*target.parts[k], items[k]);
}

// What a block writes, with names of its own.
std::string Run::captured(const Block& block) {
  const auto outer = scope_;
  scope_ = std::make_shared<Scope>(Scope{.names = {}, .around = outer});
  sinks_.emplace_back();
  (void)statements(block);
  scope_ = outer;
  std::string out = std::move(sinks_.back());
  sinks_.pop_back();
  return out;
}

void Run::filter_block(const Statement& one) {
  bodies_.push_back(work_.text(captured(one.body)));
  work_.at(one.line);
  const Value out = evaluate(*one.value);
  bodies_.pop_back();
  one.kind == Tags::filter ? write(printed(work_, out)) : assign(*one.target, out);
}

Run::Flow Run::with_block(const Statement& one) {
  const auto outer = scope_;
  auto inner = std::make_shared<Scope>(Scope{.names = {}, .around = outer});
  for (const Parameter& each : one.parameters) inner->set(each.name, evaluate(*each.otherwise));
  scope_ = inner;
  const Flow flow = statements(one.body);
  scope_ = outer;
  return flow;
}

// transformers notes where in the text so far a block's text begins, whatever then becomes of it.
void Run::generation(const Statement& one) {
  const std::string out = captured(one.body);
  const std::size_t begin = sinks_[0].size();
  answers_.push_back({begin, begin + out.size()});
  write(out);
}

Value Run::macro_of(const Statement& one) {
  if (kept_.empty() || kept_.back() != scope_) kept_.push_back(scope_);
  return std::make_shared<const Macro>(*this, one, scope_);
}

void Run::call_block(const Statement& one) {
  const Expression& call = *one.value;
  Arguments given = arguments(call.given);
  given.named.emplace_back("caller", macro_of(one));
  const Value called = evaluate(*call.parts[0]);
  if (called.object() == nullptr || !called.object()->callable())
    work_.refuse(kind(called), " cannot be called");
  write(printed(work_, called.object()->call(work_, std::move(given))));
}

void Run::give(const Statement& macro, Arguments& given) {
  const std::size_t count = macro.parameters.size();
  if (given.plain.size() > count && !macro.asks_more)
    work_.refuse("the macro '", macro.word, "' takes ", count, " arguments and was given ",
                 given.plain.size());
  for (std::size_t k = 0; k < count; ++k) {
    const Parameter& parameter = macro.parameters[k];
    const auto named = std::find_if(given.named.begin(), given.named.end(),
                                    [&](const auto& one) { return one.first == parameter.name; });
    if (k < given.plain.size()) {
      scope_->set(parameter.name, given.plain[k]);
    } else if (named != given.named.end()) {
      scope_->set(parameter.name, std::move(named->second));
      given.named.erase(named);
    } else if (parameter.otherwise != nullptr) {
      scope_->set(parameter.name, evaluate(*parameter.otherwise));
    } else {
      scope_->set(parameter.name, Work::undefined("parameter '" + parameter.name + "' was not given"));
    }
  }
  const auto caller = std::find_if(given.named.begin(), given.named.end(),
                                   [](const auto& one) { return one.first == "caller"; });
  if (macro.asks_caller)
    scope_->set("caller",
                caller != given.named.end() ? caller->second : Work::undefined("there is no caller"));
  if (macro.asks_caller && caller != given.named.end()) given.named.erase(caller);
  if (macro.asks_more)
    scope_->set("varargs",
                work_.sequence(Form::tuple,
                               count < given.plain.size()
                                   ? Values(given.plain.begin() + std::ptrdiff_t(count), given.plain.end())
                                   : Values()));
  if (macro.asks_named) {
    std::vector<Pair> pairs;
    for (auto& [key, value] : given.named) pairs.emplace_back(work_.text(key), value);
    scope_->set("kwargs", work_.dict(std::move(pairs)));
  } else if (!given.named.empty()) {
    work_.refuse("the macro '", macro.word, "' takes no argument '", given.named[0].first, "'");
  }
}

Value Run::call_macro(const Statement& macro, const std::shared_ptr<Scope>& around, Arguments given) {
  const int line = work_.line();
  const auto outer = scope_;
  scope_ = std::make_shared<Scope>(Scope{.names = {}, .around = around});
  give(macro, given);
  Value out = work_.text(captured(macro.body));
  scope_ = outer;
  work_.at(line);
  return out;
}

}  // namespace weft::jinja
