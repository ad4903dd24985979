// Completion scripts for shells and the manual page, made from the verbs' own help.
#pragma once

#include <span>
#include <string>

#include "weft/cli/verb.h"

namespace weft::cli {

std::string bash_completion(std::span<const Verb>);
std::string zsh_completion(std::span<const Verb>);
std::string fish_completion(std::span<const Verb>);
/// weft(1) in man's language.
std::string man_page(std::span<const Verb>);

}  // namespace weft::cli
