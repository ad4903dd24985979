// What a training command means, without running it: every value and who set it.
#pragma once

#include <string>
#include <vector>

#include "weft/cli/dialect.h"
#include "weft/cli/environment.h"

namespace weft::cli {

/// Completes the configuration; values that followed from others are marked as derived.
/// Adds the sentences to be said once to the command's notices.
void complete(Command&, int world);

std::string dry_run_text(const Command&, const Launched&);
std::string dry_run_json(const Command&, const Launched&);

}  // namespace weft::cli
