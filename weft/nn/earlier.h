// What layers do with tokens that earlier passes read.
#pragma once

#include "weft/nn/pass.h"
#include "weft/tensor/args.h"

namespace weft {

/// How many tokens of the text earlier passes read.
std::int64_t tokens_before(const Pass& pass);
/// The queries of these heads, with the keys and values of all that was read of the text: theirs are put
/// behind those of earlier passes, over whatever was there.
Attended with_earlier(const Pass& pass, int layer, const Attended& heads);
/// x [s, b, g, c], filtered behind what such filters read last of the text.
Tensor filter_on(const Pass& pass, int layer, const Tensor& x, const Filters& filters);
/// o of a layer that remembers the text up to here.
Tensor remember_on(const Pass& pass, int layer, const DeltaIn& in);

}  // namespace weft
