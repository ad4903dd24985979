// A flag that nobody gives means what it means to Megatron-LM, or the difference is meant and has a reason
// here.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "tests/support/source_dir.h"
#include "weft/base/flags.h"
#include "weft/base/format.h"
#include "weft/cli/dialect/rows.h"
#include "weft/train/describe.h"

using namespace weft;
using dialect::Effect;
using dialect::Row;

namespace weft {
namespace {

struct Ours {
  std::string value, why;
};

// What is otherwise, and why.
const std::map<std::string, Ours> differences{
    {"data-parallel-sharding-strategy",
     {"no_shard", "--use-megatron-fsdp, which alone reads it, takes theirs"}},
    {"dataloader-type", {"single", "what their None becomes"}},
    {"megatron-fsdp-grad-comm-dtype",
     {"false", "not narrowed: their auto is the type of gradients, f32 here"}},
    {"megatron-fsdp-main-grads-dtype", {"false", "the same"}},
    {"moe-router-dtype",
     {"fp32", "their None is the model's type; routers compute in f32 here: docs/experts.md"}},
    {"moe-router-topk-scaling-factor", {"1", "their None multiplies by nothing"}},
    {"null-tokenizer-pad-id", {"", "their -1 is no token, and neither is none"}},
    {"num-query-groups", {"0", "as many as heads; theirs is read with --group-query-attention alone"}},
    {"recompute-method", {"uniform", "read with --recompute-granularity full alone, where they want one"}},
    {"recompute-num-layers", {"1", "the same"}},
    {"rerun-mode", {"go_on", "a fault that does not come again costs no run: docs/watching.md"}},
    {"rope-scaling-factor", {"1", "--use-rope-scaling, which alone reads it, makes it theirs"}},
};

std::map<std::string, Row> rows_by_flag() {
  std::map<std::string, Row> out;
  for (auto& group : dialect::table())
    for (auto& row : group.rows) out.emplace(dashed(row.flag), row);
  return out;
}

/// A number is one however it is written; what Megatron calls None is left out here, or a zero that stands
/// for it.
bool same(const std::string& theirs, const std::string& ours) {
  if (theirs == "None") return ours.empty() || ours == "0" || ours == "none";
  double a = 0, b = 0;
  try {
    read_word(theirs, a);
    read_word(ours, b);
  } catch (const std::exception&) {
    return theirs == ours;
  }
  return a == b;
}

/// The word of the flag that says what a run without it does; the field's own words where it takes any.
std::string usual(const Row& row, const Fields& fields) {
  std::string held;
  for (const Effect& effect : row.effects) {
    if (effect.path.empty()) continue;
    held = join(fields.at(effect.path).write(), " ");
    if (effect.word.empty()) break;
    if (held == (effect.value.empty() ? effect.word : effect.value)) return std::string(effect.word);
  }
  return held;
}

}  // namespace
}  // namespace weft

TEST(Defaults, are_megatrons_or_differ_for_a_reason) {
  TrainConfig config;
  const Fields fields(config);
  const auto rows = rows_by_flag();
  std::ifstream in(WEFT_SOURCE_DIR "/tests/golden/cli/megatron_defaults.txt");
  int compared = 0;
  for (std::string flag, theirs; in >> flag >> theirs; ++compared) {
    ASSERT_TRUE(rows.contains(flag)) << flag;
    if (asks_for_nothing(rows.at(flag), theirs)) continue;
    const std::string ours = usual(rows.at(flag), fields);
    const auto meant = differences.find(flag);
    if (meant == differences.end()) {
      EXPECT_TRUE(same(theirs, ours)) << "--" << flag << ": Megatron's default is " << theirs << ", ours '"
                                      << ours << "', and no reason is given";
      continue;
    }
    EXPECT_EQ(ours, meant->second.value) << flag;
    EXPECT_FALSE(same(theirs, ours)) << "--" << flag << " is as Megatron's: it needs no reason";
  }
  EXPECT_EQ(compared, 204);
}
