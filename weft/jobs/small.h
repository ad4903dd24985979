// A big job's flags made small, to try it on a machine without what it was meant for.
#pragma once

#include <string>
#include <vector>

namespace weft::jobs {

/// Layers, widths, sequences and batches of a few at one length, made-up data, and nothing saved; layout,
/// precision, optimizer and every other flag as they are. `words` are a program's own.
std::vector<std::string> made_small(const std::vector<std::string>& words, int ranks);

}  // namespace weft::jobs
