// Settings that are understood and that nothing consumes yet, and that other words than a flag's may set:
// what a flag may not say its row in the dialect refuses. Whoever builds one deletes its line.
#include <array>

#include "weft/base/error.h"
#include "weft/train/validate.h"

namespace weft {
namespace {

struct Refusal {
  std::string_view flag;
  bool (*asked)(const TrainConfig&);
};

constexpr std::array refusals{
    Refusal{"{parallel.zero} 2 and 3: gradients and weights cut over data-parallel ranks",
            [](const TrainConfig& c) { return c.parallel.zero > 1 && c.parallel.dp > 1; }},
};

}  // namespace

std::vector<std::string> unsupported(const TrainConfig& c) {
  std::vector<std::string> out;
  for (const Refusal& refusal : refusals)
    if (refusal.asked(c)) out.emplace_back(refusal.flag);
  return out;
}

void refuse_unsupported(const TrainConfig& c) {
  std::string all;
  for (const std::string& flag : unsupported(c)) all += text(all.empty() ? "" : ", ", flag);
  if (!all.empty()) fail(Kind::usage, "weft cannot do this yet: ", all);
}

}  // namespace weft
