// What weft says about itself: the overview, and one verb's page.
#pragma once

#include <span>
#include <string>

#include "weft/cli/verb.h"

namespace weft::cli {

/// All verbs, a line each.
std::string overview(std::span<const Verb> known);
/// One verb: purpose, usage, examples, options by topic.
std::string manual(const Verb& verb);

}  // namespace weft::cli
