// 8-bit products by blocks: where a layout cuts blocks, ranks round otherwise than one rank would. That is
// said, and allowed.
#include "weft/base/format.h"
#include "weft/train/validate.h"

namespace weft {
namespace {

/// Numbers that share a scale; 0: not by blocks.
std::int64_t block_of(const Fp8Config& f) {
  if (!f.on()) return 0;
  return f.recipe == Fp8Recipe::blockwise ? 128 : f.recipe == Fp8Recipe::mxfp8 ? 32 : 0;
}

/// What cuts blocks, and into what; "" where nothing does.
std::string cut_blocks(const TrainConfig& c, std::int64_t block) {
  const ModelConfig& m = c.model;
  const ParallelConfig& p = c.parallel;
  const auto uneven = [block](std::int64_t size, std::int64_t ranks) { return size / ranks % block != 0; };
  const std::int64_t heads = m.heads * m.channels;
  if (p.tp > 1 && uneven(heads, p.tp))
    return text("{parallel.tp} ", p.tp, " leaves ranks ", heads / p.tp, " channels of heads");
  if (p.tp > 1 && m.ffn_hidden > 0 && uneven(m.ffn_hidden, p.tp))
    return text("{parallel.tp} ", p.tp, " leaves ranks ", m.ffn_hidden / p.tp, " channels of an MLP");
  const std::int64_t tokens = m.sequence * c.batch.micro;
  if (p.cp > 1 && uneven(tokens, 2 * p.cp))
    return text("{parallel.cp} ", p.cp, " leaves ranks pieces of ", tokens / (2 * p.cp), " tokens");
  return "";
}

}  // namespace

void validate::blocks(const TrainConfig& c, std::vector<std::string>& notices) {
  const std::int64_t block = block_of(c.model.fp8);
  if (block == 0) return;
  if (const std::string what = cut_blocks(c, block); !what.empty())
    notices.push_back(text("{model.fp8.recipe}: ", what, ", which are no whole blocks of ", block,
                           ": they round otherwise than one rank would"));
}

}  // namespace weft
