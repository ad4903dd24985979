// A YAML document as a value: words, lists and maps, in the order in which they were written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

/// A word that was written in quotes is a string whatever it looks like; a plain one is what YAML takes it
/// for.
struct Tree {
  enum class Is : std::uint8_t { none, word, list, map };
  Is is = Is::none;
  std::string text;
  bool quoted = false;
  std::vector<Tree> items;
  std::vector<std::pair<std::string, Tree>> pairs;

  Tree() = default;
  /// A string.
  Tree(std::string word) : is(Is::word), text(std::move(word)), quoted(true) {}
  Tree(const char* word) : Tree(std::string(word)) {}
  static Tree plain(std::string word);
  static Tree number(std::int64_t value) { return plain(std::to_string(value)); }
  static Tree yes(bool value) { return plain(value ? "true" : "false"); }
  static Tree list(std::vector<Tree> items);
  static Tree words(const std::vector<std::string>& strings);
  static Tree map(std::vector<std::pair<std::string, Tree>> pairs);

  const Tree* find(std::string_view key) const;
  Tree* find(std::string_view key);
  /// The value under a key, which is made where it is not there yet. Of a map, or of nothing, which then is
  /// one.
  Tree& operator[](std::string_view key);
  void erase(std::string_view key);
  bool operator==(const Tree&) const = default;
};

/// Fails with Kind::data, naming `who`, on what is not one YAML document, on a key given twice, and on one
/// that grows out of bounds by its aliases.
Tree read_yaml(std::string_view text, const std::string& who);
/// Reads back as the same tree, but that a word keeps its quotes only where it needs them.
std::string write_yaml(const Tree& tree);

}  // namespace weft
