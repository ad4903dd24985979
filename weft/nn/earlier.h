// Attention to tokens that earlier passes read.
#pragma once

#include "weft/nn/pass.h"
#include "weft/tensor/args.h"

namespace weft {

/// How many tokens of the text earlier passes read.
std::int64_t tokens_before(const Pass& pass);
/// The queries of these heads, with the keys and values of all that was read of the text: theirs are put
/// behind those of earlier passes, over whatever was there.
Attended with_earlier(const Pass& pass, int layer, const Attended& heads);

}  // namespace weft
