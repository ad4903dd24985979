// Rows of what is traded are those of one rank: its shares, one after the other.
#include "weft/optim/block_sum.h"

#include <utility>

#include "weft/base/number.h"
#include "weft/ops/blocks.h"

namespace weft {

// Rank m L + l of the circle is the l-th of its L near ranks and the m-th of its far ones.
void BlockSum::set_out(const Readers& readers, const Tensor& whole, const BlockCode& code,
                       std::span<const std::int64_t> ones) {
  readers_ = &readers;
  code_ = code;
  ones_ = ones;
  share_ = exact(whole.elements(), std::int64_t{readers.ranks()});
  Communicator& circle = readers.near ? *readers.near : *readers.circle;
  const int near = circle.size(), far = readers.ranks() / near;
  const Tensor mine =
      empty(whole.device(), {near, far, packed_bytes(share_, code)}, Dtype::u8, Use::communication);
  for (int l = 0; l < near; ++l)
    for (int m = 0; m < far; ++m)
      ops::pack_blocks_into(mine.at(0, l).at(0, m), whole.slice(0, (m * near + l) * share_, share_), code_);
  trade(circle, mine);
}

void BlockSum::trade(Communicator& circle, const Tensor& mine) {
  theirs_ = empty(mine.device(), mine.shape(), Dtype::u8, Use::communication);
  const auto each = ones_.first(std::size_t(circle.size()));
  pending_ = circle.all_to_all(theirs_, mine, each, each);
}

Tensor BlockSum::sum_of(int share) const {
  Tensor sum = empty(theirs_.device(), {share_}, Dtype::f32, Use::communication);
  for (std::int64_t r = 0; r < theirs_.dim(0); ++r) {
    BlockCode code = code_;
    code.accumulate = r > 0;
    ops::unpack_blocks_into(sum, theirs_.at(0, r).at(0, share), code);
  }
  return sum;
}

Tensor BlockSum::arrive() {
  pending_.wait();
  if (readers_->near) {
    const int far = readers_->far->size();
    const Tensor mine = empty(theirs_.device(), {far, 1, theirs_.dim(2)}, Dtype::u8, Use::communication);
    for (int m = 0; m < far; ++m) ops::pack_blocks_into(mine.at(0, m).at(0, 0), sum_of(m), code_);
    trade(*readers_->far, mine);
    pending_.wait();
  }
  Tensor sum = sum_of(0);
  theirs_ = Tensor();
  return sum;
}

}  // namespace weft
