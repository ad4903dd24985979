// DeepSpeed's keys told to people: the end of docs/deepspeed.md.
#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/cli/dialect.h"
#include "weft/cli/dialect/deepspeed_rows.h"

namespace weft::cli {
namespace {

using dialect::Treatment;
using dialect::ds::Key;

// A bar would end the cell.
std::string cell(std::string_view words) {
  std::string out;
  for (const char c : words) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string meaning(const Key& key) {
  if (key.treatment == Treatment::honored && !key.field.empty() && key.word.empty())
    return text("`", key.field, "`: ", key.text);
  if (key.treatment != Treatment::refused || key.harmless.empty()) return std::string(key.text);
  std::string goes;
  for (const std::string_view one : split(key.harmless, '|'))
    goes += text(goes.empty() ? "" : ", ", "`", one, "`");
  return text(key.text, "; fine: ", goes);
}

std::string rows(std::string_view title, const std::vector<Key>& keys) {
  std::string out = text("\n### ", title, "\n\n| key | | |\n|---|---|---|\n");
  for (const Key& key : keys)
    out += text("| `", key.path, "` | ", dialect::name(key.treatment), " | ", cell(meaning(key)), " |\n");
  return out;
}

}  // namespace

std::string deepspeed_markdown() {
  return text(
      "## Key by key\n\n"
      "Made from the table that reads the file: `weft help deepspeed` prints it, and a test tries every key. "
      "In a "
      "block whose `enabled` is not true the other keys are looked at and do nothing, as in DeepSpeed. "
      "\"auto\" and "
      "null leave a key to flags.\n",
      rows("Batches, types, logs, checkpoints", dialect::ds::general_keys()),
      rows("Optimizer", dialect::ds::rule_keys()),
      rows("Schedule of the learning rate", dialect::ds::schedule_keys()),
      rows("ZeRO, and what lies elsewhere", dialect::ds::zero_keys()),
      rows("Samples that grow, and samples by difficulty", dialect::ds::curriculum_keys()),
      rows("Layers and tokens that are left out", dialect::ds::left_out_keys()),
      rows("Refused as a whole", dialect::ds::block_keys()));
}

}  // namespace weft::cli
