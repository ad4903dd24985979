// The table of DeepSpeed's keys: what a row is, and short ways to write one.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/fields.h"
#include "weft/cli/dialect/deepspeed.h"
#include "weft/cli/dialect/rows.h"

namespace weft::cli::dialect::ds {

enum class Shape : std::uint8_t { flag, whole, real, text, list, map };

/// What a key's own function works on.
class Taking {
 public:
  Taking(Fields& fields, const nlohmann::json& root, DeepSpeedSaid& out)
      : fields_(fields), root_(root), out_(out) {}

  /// The file asks for it; fails where another of its keys asks for something else.
  void set(std::string_view key, std::string_view field, std::vector<std::string> words);
  /// One more word of a list that several keys fill.
  void add(std::string_view key, std::string_view field, const std::string& word);
  /// The field must not end up so.
  void never(std::string_view key, std::string_view field, std::string_view word);
  /// What DeepSpeed takes where nothing is said; flags win over it in silence.
  void usual(std::string_view field, std::string_view word);
  /// Null where the file has no such key, or leaves it to others ("auto", null).
  const nlohmann::json* find(std::string_view path) const;
  /// The file has the key and leaves it to flags.
  bool leaves(std::string_view path) const;
  std::string word_at(std::string_view path, std::string_view otherwise) const;
  DeepSpeedSaid& out() { return out_; }

 private:
  const nlohmann::json* stands_at(std::string_view path) const;
  Fields& fields_;
  const nlohmann::json& root_;
  DeepSpeedSaid& out_;
};

/// A map that a person named, whose keys are these: fails for another one, with the nearest.
void check_names(std::string_view path, const nlohmann::json& map, std::span<const std::string_view> known);

/// A number as a field reads it: 1e5 is a whole one to DeepSpeed. What is none stays as it is written.
std::string number(const nlohmann::json& value);

struct Key;
using Take = void (*)(Taking&, const Key&, const nlohmann::json& value);

/// A key of the file: reading, the page and the test of every key go by this table.
struct Key {
  std::string_view path;  // of names with dots between; "*" stands for any that no other row has
  Shape shape = Shape::flag;
  Treatment treatment = Treatment::honored;
  std::string_view text;           // what it becomes, why it has no effect, or what weft cannot do
  std::string_view field = {};     // honored: what it sets
  std::string_view word = {};      // a switch that, when true, sets the field to this
  std::string_view harmless = {};  // refused: values that ask for nothing, with bars between
  Take take = nullptr;             // honored, where that is not one field
  std::string_view sample;         // a value that acts
  std::string_view with = {};      // what else a file holds for it to act
};

std::vector<Key> general_keys();
std::vector<Key> zero_keys();
std::vector<Key> rule_keys();  // optimizer
std::vector<Key> schedule_keys();
std::vector<Key> curriculum_keys();
std::vector<Key> left_out_keys();  // layers and tokens
std::vector<Key> block_keys();     // what is refused as a whole, with the names in it
/// All, in the order of the page. A key "block.enabled" says whether the others of its block count.
std::vector<Key> keys();

constexpr Key sets(std::string_view path, Shape shape, std::string_view field, std::string_view text,
                   std::string_view sample) {
  return {.path = path, .shape = shape, .text = text, .field = field, .sample = sample};
}
/// True sets the field to the word, false says nothing.
constexpr Key turns_on(std::string_view path, std::string_view field, std::string_view word,
                       std::string_view text) {
  return {.path = path, .text = text, .field = field, .word = word, .sample = "true"};
}
constexpr Key does(std::string_view path, Shape shape, Take take, std::string_view text,
                   std::string_view sample) {
  return {.path = path, .shape = shape, .text = text, .take = take, .sample = sample};
}
constexpr Key idle(std::string_view path, Shape shape, std::string_view why, std::string_view sample) {
  return {.path = path, .shape = shape, .treatment = Treatment::no_effect, .text = why, .sample = sample};
}
constexpr Key refuses(std::string_view path, Shape shape, std::string_view what, std::string_view harmless,
                      std::string_view sample) {
  return {.path = path,
          .shape = shape,
          .treatment = Treatment::refused,
          .text = what,
          .harmless = harmless,
          .sample = sample};
}
/// The row acts where the file holds this too.
constexpr Key beside(std::string_view with, Key key) {
  key.with = with;
  return key;
}

}  // namespace weft::cli::dialect::ds
