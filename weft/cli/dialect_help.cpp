// The dialect told to people: topics of help, and docs/flags.md.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/cli/dialect.h"
#include "weft/cli/dialect/rows.h"

namespace weft::cli {
namespace {

using dialect::Effect;
using dialect::Group;
using dialect::Row;
using dialect::Treatment;

bool by_word(const Row& row) { return !row.effects.empty() && !row.effects[0].word.empty(); }

// The words that weft takes, each once, in the order of the table.
std::vector<std::string_view> words_of(const Row& row) {
  std::vector<std::string_view> out;
  for (const Effect& effect : row.effects)
    if (effect.refusal.empty() && std::find(out.begin(), out.end(), effect.word) == out.end())
      out.push_back(effect.word);
  return out;
}

std::string value_of(const Row& row, const Fields& fields) {
  if (row.arity == Arity::none) return "";
  std::string out;
  if (by_word(row)) {
    for (const std::string_view word : words_of(row)) out += text(out.empty() ? "" : "|", word);
    return out;
  }
  out = row.parse == nullptr ? value_name(fields.at(row.effects[0].path)) : "VALUE";
  if (out.empty()) return "true|false";  // a switch of ours that theirs gives a word to
  return row.arity == Arity::some && !out.ends_with("...") ? text(out, " ...") : out;
}

const Effect* first_setting(const Row& row) {
  for (const Effect& effect : row.effects)
    if (!effect.path.empty()) return &effect;
  return nullptr;
}

std::string help_of(const Row& row, const Fields& fields) {
  if (!row.text.empty()) return std::string(row.text);
  const Effect* effect = first_setting(row);
  if (effect == nullptr) return "only the value that changes nothing";
  const Field& field = fields.at(effect->path);
  // A word of theirs may be spelled otherwise in our field, so its default is not shown.
  return row.arity == Arity::none || by_word(row) ? field.help() : help_with_default(field);
}

std::string ours(const Row& row) {
  std::string out;
  for (const Effect& effect : row.effects) {
    if (effect.path.empty() || out.find(text("`", effect.path, "`")) != std::string::npos) continue;
    out += text(out.empty() ? "" : ", ", "`", effect.path, "`");
    if (row.arity == Arity::none && !effect.value.empty()) out += text(" = ", effect.value);
  }
  for (const Effect& effect : row.effects)
    if (!effect.refusal.empty())
      out += text(out.empty() ? "" : "; ", effect.word.empty() ? "other values" : effect.word,
                  " refused: ", effect.refusal);
  return out;
}

std::string meaning(const Row& row, const Fields& fields) {
  switch (row.treatment) {
    case Treatment::honored:
      return text(ours(row), ": ", help_of(row, fields));
    case Treatment::gone:
      return text("write ", row.text);
    case Treatment::no_effect:
    case Treatment::refused:
    case Treatment::foreign:
      break;
  }
  return std::string(row.text);
}

// A bar would end the cell.
std::string cell(std::string words) {
  for (std::size_t at = 0; (at = words.find('|', at)) != std::string::npos; at += 2) words.insert(at, "\\");
  return words;
}

struct OtherRule {
  std::string_view rule, why;
};

constexpr OtherRule not_ours[] = {
    {"`CUDA_DEVICE_MAX_CONNECTIONS` must be 1 (or must not be)",
     "it orders launches on CUDA's queues; here communication waits for events, and no environment variable "
     "changes a result"},
    {"`--tp-comm-overlap` needs `--sequence-parallel`",
     "it needs user buffers of TransformerEngine, which is not used"},
    {"rope fusion, gradient accumulation fusion and bias fusion switch each other off",
     "fusion does not change what is computed"},
    {"relative positions and yarn need TransformerEngine", "there is one implementation"},
    {"`--rampup-batch-size` is ignored", "it works, by the rule of Megatron-LM before it was dropped"},
    {"`--recompute-granularity full` needs `--recompute-method` and `--recompute-num-layers`",
     "they have defaults: uniform, 1"},
    {"`--num-query-groups` is ignored without `--group-query-attention`",
     "no setting is ignored: the number alone says it"},
    {"`--max-position-embeddings` is mandatory", "without it the sequence length is meant"},
    {"the padded vocabulary is a multiple of 128 times tp",
     "padding is storage only: it is in no softmax, norm or file"},
    {"virtual stages without overlapped transfers need pp greater than 2",
     "transfers are always posted early"},
    {"the loss check is off under fp16 with a dynamic scale",
     "a step that is not finite is never applied; under fp16 the scale is halved"},
    {"`--async-save` needs a distributed format and a persistent worker",
     "there is one format and one writer"},
    {"`--use-torch-fsdp2`, `--use-megatron-fsdp` and their twenty exclusions",
     "they mean ZeRO's third stage here, which goes with everything"},
};

}  // namespace

std::vector<Topic> dialect_topics() {
  TrainConfig defaults;
  const Fields fields(defaults);
  std::vector<Topic> out;
  for (const Group& group : dialect::table()) {
    Topic topic{std::string(group.title), {}};
    for (const Row& row : group.rows)
      if (row.treatment == Treatment::honored)
        topic.options.push_back({text("--", row.flag), value_of(row, fields), help_of(row, fields)});
    if (!topic.options.empty()) out.push_back(std::move(topic));
  }
  return out;
}

std::string dialect_markdown() {
  TrainConfig defaults;
  const Fields fields(defaults);
  std::string out =
      "# Flags of `weft train`\n\n"
      "Every flag that Megatron-LM's pretraining had from 2021 to August 2026, those that its examples and "
      "tests use, and those of the scripts that come with "
      "DeepSpeed: what "
      "weft does about it. `weft help flags` prints this page; it is made from the table that reads the "
      "command line, so `weft help flags > docs/flags.md` writes it again, and tests try what it says.\n\n"
      "- **honored**: it sets the named fields. One that waits for another flag, or for more ranks, is "
      "accepted "
      "without, and what it waits for is printed once.\n"
      "- **no effect here**: accepted; nothing in weft depends on it, and the reason is printed once.\n"
      "- **refused**: weft cannot do it yet; the run does not start.\n"
      "- **gone**: Megatron-LM dropped it; write the other.\n"
      "- **foreign**: it belongs to another program than pretraining; refused.\n";
  for (const Group& group : dialect::table()) {
    out += text("\n## ", group.title, "\n\n| flag | | |\n|---|---|---|\n");
    for (const Row& row : group.rows) {
      const std::string value = row.treatment == Treatment::honored ? value_of(row, fields) : "";
      out += text("| `--", row.flag, value.empty() ? "" : " ", cell(value), "` | ",
                  dialect::name(row.treatment), " | ", cell(meaning(row, fields)), " |\n");
    }
  }
  out += "\n## Rules of Megatron-LM that are not ours\n\n| rule | why not |\n|---|---|\n";
  for (const OtherRule& rule : not_ours) out += text("| ", rule.rule, " | ", rule.why, " |\n");
  return out;
}

}  // namespace weft::cli
