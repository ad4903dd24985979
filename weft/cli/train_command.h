// From the words of a training command to whole settings, the same for whoever trains or measures.
#pragma once

#include "weft/cli/dialect.h"
#include "weft/cli/environment.h"

namespace weft::cli {

/// Takes the tokenizer that Megatron's program means, or that of a checkpoint, and the words that it has.
void take_words(Command& command);
/// Takes words as above, and a checkpoint's seed; completes the settings, whose model is named; and refuses
/// what does not fit into this machine, unless it is a dry run.
void finish(Command& command, const Launched& launched);

}  // namespace weft::cli
