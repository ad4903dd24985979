// weft job status, events, logs and resources.
#pragma once

#include "weft/cli/verb.h"

namespace weft::cli {

/// Whether the word is one of the four.
bool looks_at_jobs(std::string_view word);
int look_at_job(std::string_view what, Args args);
/// Their options.
Topic about_looking();

}  // namespace weft::cli
