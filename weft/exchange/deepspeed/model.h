// A DeepSpeed checkpoint as a model of another program's.
#pragma once

#include "weft/exchange/deepspeed/find.h"
#include "weft/exchange/their_model.h"

namespace weft::exchange::deepspeed {

/// `config`: where config.json lies, if it is not beside the step or above it. `directory`: what a person
/// named.
TheirModel model_of(const std::filesystem::path& directory, const Step& step,
                    const std::filesystem::path& config);

}  // namespace weft::exchange::deepspeed
