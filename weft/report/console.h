// Lines on standard error: Megatron's in a file, one live line on a terminal.
#pragma once

#include <memory>

#include "weft/report/sink.h"

namespace weft::report {

enum class Console { lines, live };
/// What standard error is.
Console console_of_stderr();
/// On a terminal there is one live line, whoever would read others.
std::unique_ptr<Sink> console_sink(Console kind, LineForm form);

}  // namespace weft::report
