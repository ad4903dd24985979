// Lines on standard error: Megatron's in a file, one live line on a terminal.
#pragma once

#include <memory>

#include "weft/report/sink.h"

namespace weft::report {

enum class Console { lines, live };
/// What standard error is.
Console console_of_stderr();
std::unique_ptr<Sink> console_sink(Console kind);

}  // namespace weft::report
