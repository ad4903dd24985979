// Splits a command line into flags and their words by argparse's rules, with underscores and dashes alike.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/fields.h"

namespace weft {

/// How many words follow a flag.
enum class Arity : std::uint8_t { none, one, two, maybe_one, any, some };

struct Flag {
  std::string_view name;  // without the leading dashes
  Arity arity = Arity::one;
  bool may_be_cut = true;  // false: only its whole name is it, and it is never suggested
};

/// A flag as it was typed, and the words that follow it. `flag` is its place in the table.
struct Given {
  std::size_t flag = 0;
  std::vector<std::string> words;
};

struct Split {
  std::vector<Given> flags;
  std::vector<std::string> others;  // words that belong to no flag
};

/// "--Top_K" is not "top-k", but "--top_k" is.
std::string dashed(std::string_view name);

/// The place of the flag that `typed` (no dashes in front, no value) names or unambiguously begins.
std::size_t find_flag(std::span<const Flag> known, std::string_view typed);

/// --flag value, --flag=value, unambiguous beginnings; a word that is a number is never a flag; after "--"
/// nothing is.
Split split_flags(std::span<const Flag> known, std::span<const std::string_view> words);

/// Fills fields from flags named after them: model.ffn_hidden is --model-ffn-hidden, a boolean has a --no-
/// twin. Returns the words that belong to no flag.
std::vector<std::string> read_flags(Fields&, std::span<const std::string_view> words);
/// The flag of a field: "--model-ffn-hidden".
std::string flag_of(const Field&);
/// What stands for its value in help: "N", "X", "TEXT", "f32|bf16", "N ..."; nothing for a switch.
std::string value_name(const Field&);
/// Its help with the default: "transformer blocks (default 12)".
std::string help_with_default(const Field&);

}  // namespace weft
