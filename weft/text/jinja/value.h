// What a Jinja template reckons with: Python's values, as far as templates see them. Containers never change
// once they are made, so values share them; only a namespace does, and whoever runs a template empties those.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace weft::jinja {

class Object;
struct Text;
struct Sequence;
struct Dict;
struct None {};
/// Nothing was found: prints as nothing and is false, but nothing may be asked of it.
struct Undefined {
  std::shared_ptr<const std::string> why;  // what is said to whoever asks
};

struct Value {
  using Held = std::variant<Undefined, None, bool, std::int64_t, double, std::shared_ptr<const Text>,
                            std::shared_ptr<const Sequence>, std::shared_ptr<const Dict>,
                            std::shared_ptr<const Object>>;
  Held held;

  Value() = default;
  template <class T>
  requires(!std::is_same_v<std::remove_cvref_t<T>, Value> && std::is_constructible_v<Held, T>)
      Value(T&& value)  // NOLINT(bugprone-forwarding-reference-overload): 14 reads no requires
      : held(std::forward<T>(value)) {}

  [[nodiscard]] bool undefined() const { return std::holds_alternative<Undefined>(held); }
  [[nodiscard]] bool none() const { return std::holds_alternative<None>(held); }
  [[nodiscard]] bool flag() const { return std::holds_alternative<bool>(held); }
  /// Null where it is none.
  [[nodiscard]] const Text* text() const { return shared<Text>(); }
  [[nodiscard]] const Sequence* sequence() const { return shared<Sequence>(); }
  [[nodiscard]] const Dict* dict() const { return shared<Dict>(); }
  [[nodiscard]] const Object* object() const { return shared<Object>(); }

 private:
  template <class T>
  const T* shared() const {
    const auto* held_here = std::get_if<std::shared_ptr<const T>>(&held);
    return held_here != nullptr ? held_here->get() : nullptr;
  }
};
using Values = std::vector<Value>;
using Pair = std::pair<Value, Value>;

struct Text {
  std::string bytes;    // UTF-8
  bool markup = false;  // what the filters safe and escape give: text that is added to it is escaped
};

/// What Python's type of it would be: they print and may be asked differently.
enum class Form { list, tuple, group, range, stream, keys, values, items };
struct Sequence {
  Form form = Form::list;
  Values items;
  int depth = 1;
  mutable std::size_t taken = 0;  // of a stream (Python's generator), which gives each item once
};

struct Dict {
  std::vector<Pair> pairs;  // in the order of coming
  int depth = 1;
  [[nodiscard]] const Value* find(std::string_view key) const;
};

[[nodiscard]] bool truth(const Value& value);
/// "a text", "a dict": for messages.
[[nodiscard]] const char* kind(const Value& value);
/// How deep containers nest in it.
[[nodiscard]] int depth(const Value& value);
/// bool, whole or not: false for other values.
[[nodiscard]] bool is_number(const Value& value);
[[nodiscard]] bool is_whole(const Value& value);  // bool, too
[[nodiscard]] double as_double(const Value& number);
[[nodiscard]] std::int64_t as_whole(const Value& whole);
/// The bytes of a text; empty for other values.
[[nodiscard]] std::string_view bytes_of(const Value& value);

}  // namespace weft::jinja
