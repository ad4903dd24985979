// How a GPT may be cut over ranks, and what becomes of it.
#include "weft/base/error.h"
#include "weft/model/gpt/gpt.h"

namespace weft {

std::string gpt_exact_notice(const ModelConfig& config, const CutOver& cut) {
  if (cut.cp == 1 || cut.context == ContextForm::heads) return {};
  const std::int64_t groups = config.groups * sums_of(config).key_parts(config.heads, config.groups) / cut.tp;
  if (groups % cut.cp == 0)
    return "exact mode: context-parallel ranks trade heads, as with --cp-comm-type a2a";
  return text("exact mode: ", groups, " key heads of a rank cannot be shared by ", cut.cp,
              " context-parallel ranks, so each of them computes attention for all");
}

}  // namespace weft
