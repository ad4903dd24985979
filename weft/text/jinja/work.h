// What everything that reckons for a template shares: how it refuses, what it may still do, how values are
// made.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/error.h"
#include "weft/text/jinja/value.h"

namespace weft::jinja {

/// Counts what is done, so that no template runs or grows without end, and knows which line is at work.
class Work {
 public:
  Work(std::string_view name, std::int64_t most, std::optional<std::int64_t> now = {})
      : name_(name), most_(most), left_(most), now_(now) {}
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  ~Work();
  void at(int line) { line_ = line; }
  [[nodiscard]] int line() const { return line_; }

  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(Kind::data, name_, ": line ", line_, ": ", parts...);
  }
  void spend(std::int64_t work) {
    left_ -= work;
    if (left_ < 0) refuse("the template does more than ", most_, " steps");
  }
  /// As spend(), before something of `count` times `size` bytes is made.
  void spend(std::int64_t count, std::size_t size);

  Value text(std::string bytes, bool markup = false);
  Value list(Values items) { return sequence(Form::list, std::move(items)); }
  Value sequence(Form form, Values items);
  /// Of pairs with the same key the last gives the value.
  Value dict(std::vector<Pair> pairs);
  [[nodiscard]] static Value undefined(std::string why) {
    return Undefined{std::make_shared<const std::string>(std::move(why))};
  }

  /// Seconds since 1970 on the wall's clock, where somebody said so.
  [[nodiscard]] std::optional<std::int64_t> now() const { return now_; }
  /// Something that may come to hold itself: it is emptied when all is done.
  void keep(std::shared_ptr<const Object> one) { kept_.push_back(std::move(one)); }

  /// Counted, too: lists may hold the same list many times.
  bool equal(const Value& a, const Value& b);
  /// Null where there is none.
  const Value* find(const Dict& dict, const Value& key);
  /// What a `for` would walk over; refuses what nobody can walk over.
  Values walked(const Value& value);
  /// The sentence of something undefined, of which more was asked.
  [[noreturn]] void refuse_undefined(const Value& value) const;
  /// Which comes first: refuses values that have no order.
  bool less(const Value& a, const Value& b);

 private:
  bool equal_lists(const Sequence& a, const Sequence& b);
  bool equal_dicts(const Dict& a, const Dict& b);

  std::string name_;
  std::int64_t most_, left_;
  std::optional<std::int64_t> now_;
  std::vector<std::shared_ptr<const Object>> kept_;
  int line_ = 1;
};

struct Arguments {
  Values plain;
  std::vector<std::pair<std::string, Value>> named;
};

/// Something that is called or has parts and is no container: a macro, a method, a loop, a namespace.
class Object {
 public:
  virtual ~Object() = default;
  [[nodiscard]] virtual const char* kind() const = 0;
  [[nodiscard]] virtual std::optional<Value> part(Work&, std::string_view /*name*/) const { return {}; }
  [[nodiscard]] virtual bool callable() const { return false; }
  virtual Value call(Work& work, Arguments&& /*given*/) const { work.refuse(kind(), " cannot be called"); }
  [[nodiscard]] virtual int depth() const { return 0; }
  virtual void forget() const {}
};

/// What {% set name.part = … %} may set.
class Space : public Object {
 public:
  explicit Space(std::vector<std::pair<std::string, Value>> parts) : parts_(std::move(parts)) {}
  [[nodiscard]] const char* kind() const override { return "a namespace"; }
  [[nodiscard]] std::optional<Value> part(Work& work, std::string_view name) const override;
  void set(Work& work, std::string_view name, Value value) const;
  void forget() const override { parts_.clear(); }

 private:
  mutable std::vector<std::pair<std::string, Value>> parts_;
};

/// Arguments put to parameters, as a call of Python does.
class Taken {
 public:
  /// "old! new! count": names, of which those with ! must be given; "*" behind them takes what is left.
  Taken(Work& work, std::string_view who, Arguments given, std::string_view parameters);

  [[nodiscard]] bool has(std::size_t k) const { return at_[k].has_value() && !at_[k]->none(); }
  [[nodiscard]] const std::optional<Value>& operator[](std::size_t k) const { return at_[k]; }
  [[nodiscard]] std::int64_t whole(std::size_t k, std::int64_t otherwise) const;
  [[nodiscard]] bool flag(std::size_t k, bool otherwise) const;
  [[nodiscard]] std::string text(std::size_t k, std::string_view otherwise) const;
  [[nodiscard]] const Arguments& rest() const { return rest_; }

 private:
  Work& work_;
  std::string_view who_;
  std::vector<std::string_view> names_;
  std::vector<std::optional<Value>> at_;
  Arguments rest_;
};

struct Call {
  Work& work;
  const Value& self;  // what a filter or a test stands behind, whose method it is
  const Taken& with;
};
/// A function that templates know by name.
struct Known {
  std::string_view name, parameters;
  Value (*run)(const Call&);
};
template <class Table>
const Known* known(const Table& table, std::string_view name) {
  for (const Known& one : table)
    if (one.name == name) return &one;
  return nullptr;
}
inline Value run(Work& work, const Known& known, const Value& self, Arguments given) {
  const Taken taken(work, known.name, std::move(given), known.parameters);
  return known.run({work, self, taken});
}

/// A known function as a value: global, or the method of `self`.
class Function : public Object {
 public:
  Function(const Known& known, Value self) : known_(known), self_(std::move(self)) {}
  [[nodiscard]] const char* kind() const override { return "a function"; }
  [[nodiscard]] bool callable() const override { return true; }
  Value call(Work& work, Arguments&& given) const override {
    return run(work, known_, self_, std::move(given));
  }
  [[nodiscard]] int depth() const override { return jinja::depth(self_) + 1; }

 private:
  const Known& known_;
  Value self_;
};

/// Null where there is none.
[[nodiscard]] const Known* filter_named(std::string_view name);
[[nodiscard]] const Known* test_named(std::string_view name);
[[nodiscard]] const Known* global_named(std::string_view name);

/// value.name and value[key], as Jinja looks: a dict's methods stand before its keys in the one and behind
/// them in the other.
Value attribute(Work& work, const Value& value, std::string_view name);
Value item(Work& work, const Value& value, const Value& key);
/// value[from:to:step]; each may be none.
struct Bounds {
  Value from, to, step;
};
Value slice(Work& work, const Value& value, const Bounds& bounds);

}  // namespace weft::jinja
