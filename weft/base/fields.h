// A config struct lists its fields once; flags, files and help are read off that list, and each value knows
// who set it.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/base/legal.h"
#include "weft/base/on_resume.h"

namespace weft {

/// Who set a value; later ones win over earlier ones. `derived` follows from other values.
enum class Origin : std::uint8_t { built_in, derived, file, checkpoint, command_line };
std::string_view name(Origin);

enum class FieldKind : std::uint8_t { boolean, integer, real, text, choice };

/// An enum takes part by listing its words in the order of its enumerators: words(E) -> array of string_view.
template <class E>
concept Worded = std::is_enum_v<E> && requires(E e) {
  { words(e)[0] } -> std::convertible_to<std::string_view>;
};

void read_word(std::string_view from, bool& to);
void read_word(std::string_view from, int& to);
void read_word(std::string_view from, std::int64_t& to);
void read_word(std::string_view from, std::uint64_t& to);
void read_word(std::string_view from, double& to);
void read_word(std::string_view from, std::string& to);
/// Where `from` stands among `choices`; refuses what is not there and says what is.
std::size_t choose(std::string_view from, std::span<const std::string_view> choices);
template <Worded E>
void read_word(std::string_view from, E& to) {
  const auto choices = words(E{});
  to = static_cast<E>(choose(from, choices));
}

std::string write_word(bool);
std::string write_word(int);
std::string write_word(std::int64_t);
std::string write_word(std::uint64_t);
std::string write_word(double);  // the fewest digits that give the bits back
std::string write_word(const std::string&);
template <Worded E>
std::string write_word(E e) {
  return std::string(words(e)[static_cast<std::size_t>(e)]);
}

template <class T>
constexpr FieldKind kind_of() {
  if constexpr (std::is_same_v<T, bool>)
    return FieldKind::boolean;
  else if constexpr (std::is_enum_v<T>)
    return FieldKind::choice;
  else if constexpr (std::is_integral_v<T>)
    return FieldKind::integer;
  else if constexpr (std::is_floating_point_v<T>)
    return FieldKind::real;
  else
    return FieldKind::text;
}

/// One value, whatever its type: it is read from words and written as words.
class Field {
 public:
  Field(std::string path, OnResume tag, std::string_view help, std::optional<Legal> legal)
      : path_(std::move(path)), help_(help), legal_(legal), tag_(tag) {}
  virtual ~Field() = default;
  Field(const Field&) = delete;
  Field& operator=(const Field&) = delete;

  const std::string& path() const { return path_; }  // "model.rotary.base"
  const std::string& help() const { return help_; }
  /// What numbers it takes; unset: any that its type holds.
  const std::optional<Legal>& legal() const { return legal_; }
  /// What it means that a checkpoint has another value.
  OnResume on_resume() const { return tag_; }
  Origin origin() const { return origin_; }
  void set_origin(Origin who) { origin_ = who; }

  /// No words: an empty list, or an optional value that is unset.
  void read(std::span<const std::string> from, Origin who);
  virtual std::vector<std::string> write() const = 0;
  virtual FieldKind kind() const = 0;
  virtual bool list() const = 0;
  virtual std::vector<std::string_view> choices() const = 0;

 private:
  virtual void take(std::span<const std::string> from) = 0;
  /// Fails for words that are numbers and not legal ones.
  void check(std::span<const std::string> from) const;
  std::string path_, help_;
  std::optional<Legal> legal_;
  OnResume tag_;
  Origin origin_ = Origin::built_in;
};

/// A view of every field of a config, in the order of describe(). The config must outlive it.
class Fields {
 public:
  template <class Config>
  explicit Fields(Config& config) {
    describe(*this, config);
  }
  template <class T>
  void operator()(std::string_view name, T& value, OnResume tag, std::string_view help,
                  std::optional<Legal> legal = {});
  /// For configs that no checkpoint holds.
  template <class T>
  void operator()(std::string_view name, T& value, std::string_view help, std::optional<Legal> legal = {}) {
    (*this)(name, value, OnResume::untagged, help, legal);
  }
  template <class Config>
  void group(std::string_view name, Config& config) {
    const std::string outer = std::exchange(prefix_, prefix_ + std::string(name) + ".");
    describe(*this, config);
    prefix_ = outer;
  }

  std::span<const std::unique_ptr<Field>> all() const { return fields_; }
  Field* find(std::string_view path) const;  // null: no such field
  Field& at(std::string_view path) const;

 private:
  std::vector<std::unique_ptr<Field>> fields_;
  std::string prefix_;
};

/// A nested JSON object of all values; with_origins: each value is {"value": …, "origin": "command line"}.
enum class JsonForm : std::uint8_t { values, with_origins };
std::string to_json(const Fields&, JsonForm = JsonForm::values);
/// Sets the fields that a JSON object names, and refuses names that are no field's.
void from_json(Fields&, std::string_view json, Origin who);
/// The same from YAML.
void from_yaml(Fields&, const std::string& yaml, Origin who);

namespace detail {

void one_word(std::span<const std::string> from);

template <class T>
struct Plain {
  using Item = T;
  static constexpr bool list = false;
  static void read(std::span<const std::string> from, T& to) {
    one_word(from);
    read_word(from[0], to);
  }
  static std::vector<std::string> write(const T& value) { return {write_word(value)}; }
};

template <class T>
struct Plain<std::optional<T>> {
  using Item = T;
  static constexpr bool list = false;
  static void read(std::span<const std::string> from, std::optional<T>& to) {
    if (from.empty()) return to.reset();
    one_word(from);
    read_word(from[0], to.emplace());
  }
  static std::vector<std::string> write(const std::optional<T>& value) {
    return value ? std::vector{write_word(*value)} : std::vector<std::string>{};
  }
};

template <class T>
struct Plain<std::vector<T>> {
  using Item = T;
  static constexpr bool list = true;
  static void read(std::span<const std::string> from, std::vector<T>& to) {
    to.clear();
    for (const std::string& word : from) read_word(word, to.emplace_back());
  }
  static std::vector<std::string> write(const std::vector<T>& values) {
    std::vector<std::string> out;
    for (const T& value : values) out.push_back(write_word(value));
    return out;
  }
};

template <class T>
class FieldOf final : public Field {
 public:
  FieldOf(T& value, std::string path, OnResume tag, std::string_view help, std::optional<Legal> legal)
      : Field(std::move(path), tag, help, legal), value_(value) {}
  std::vector<std::string> write() const override { return Plain<T>::write(value_); }
  FieldKind kind() const override { return kind_of<Item>(); }
  bool list() const override { return Plain<T>::list; }
  std::vector<std::string_view> choices() const override {
    if constexpr (Worded<Item>) {
      const auto all = words(Item{});
      return {all.begin(), all.end()};
    } else {
      return {};
    }
  }

 private:
  using Item = typename Plain<T>::Item;
  void take(std::span<const std::string> from) override {
    T fresh{};
    Plain<T>::read(from, fresh);
    value_ = std::move(fresh);
  }
  T& value_;
};

}  // namespace detail

template <class T>
void Fields::operator()(std::string_view name, T& value, OnResume tag, std::string_view help,
                        std::optional<Legal> legal) {
  fields_.push_back(
      std::make_unique<detail::FieldOf<T>>(value, prefix_ + std::string(name), tag, help, legal));
}

}  // namespace weft
