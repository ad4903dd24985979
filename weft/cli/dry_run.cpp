#include "weft/cli/dry_run.h"

#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/cli/dialect/spelling.h"
#include "weft/cli/dry_run_plan.h"
#include "weft/cli/gpu_run.h"
#include "weft/train/ranks.h"
#include "weft/train/settings.h"
#include "weft/train/stages.h"
#include "weft/train/validate.h"

namespace weft::cli {
namespace {

struct Outlook {
  int world, rank, tp, cp, dp, pp;
  std::int64_t steps, microbatches, samples, valid_samples, test_samples;
};

Outlook outlook(const TrainConfig& c, const Launched& launched) {
  const auto [batch, steps] = run_length(c);
  Outlook o{};
  o.world = all_ranks(c.parallel);
  o.rank = launched.rank;
  const ParallelLayout layout = layout_of(c.parallel);
  const auto place = [&](Axis axis) { return layout.place(o.rank, axis); };
  o.tp = place(Axis::tp);
  o.cp = place(Axis::cp);
  o.dp = place(Axis::dp);
  o.pp = place(Axis::pp);
  o.steps = c.eval.skip_train ? 0 : steps;
  o.microbatches = batch.microbatches_at(0);
  o.samples = batch.consumed_after(o.steps);
  const EvalCounts eval = eval_counts(c.eval, o.steps);
  o.valid_samples = eval.valid;
  o.test_samples = eval.test;
  return o;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += text(out.empty() ? "" : " ", word);
  return out.empty() ? "-" : out;
}

std::string row(const Field& field) {
  std::string line = text("  ", field.path());
  line.append(line.size() < 38 ? 38 - line.size() : 1, ' ').append(joined(field.write()));
  line.append(line.size() < 62 ? 62 - line.size() : 1, ' ').append(name(field.origin()));
  return line + "\n";
}

/// Scripts of old left it to Megatron which layers are what; without a word of it they would train another
/// model here.
void must_say_layers(const Command& command) {
  if (command.asks_for_hybrid.empty() || !command.config.model.hybrid.layers.empty()) return;
  fail(Kind::usage, "--", command.asks_for_hybrid,
       " asks for layers of one thing each, and nothing says which: give --hybrid-layer-pattern, a letter a "
       "layer, M for a state space");
}

}  // namespace

void complete(Command& command, int world) {
  must_say_layers(command);
  std::vector<std::vector<std::string>> before;
  for (const auto& field : command.fields.all()) before.push_back(field->write());
  settle_by_ranks(command, world);
  for (const std::string& sentence : weft::complete(command.config, world))
    command.notices.push_back(spelled(sentence, &command));
  must_carry(command.config);
  for (std::string& sentence : idle_flags(command)) command.notices.push_back(std::move(sentence));
  if (const int asked = command.config.run.ranks; world > 0 && asked > 0 && asked != world)
    command.notices.push_back(text("no effect here: --ranks ", asked, " (a launcher started ", world, ")"));
  std::size_t i = 0;
  for (const auto& field : command.fields.all())
    if (field->write() != before[i++]) field->set_origin(Origin::derived);
}

std::string dry_run_text(const Command& command, const Launched& launched) {
  const Outlook o = outlook(command.config, launched);
  std::string out = spelled(plan_text(command.config, launched), &command);
  std::string group;
  for (const auto& field : command.fields.all()) {
    const std::string mine = field->path().substr(0, field->path().find('.'));
    if (mine != group) out += text("\n", mine, "\n");
    group = mine;
    out += row(*field);
  }
  out += text("\nrank ", o.rank, " of ", o.world, ": tensor ", o.tp, ", context ", o.cp, ", data ", o.dp,
              ", pipeline ", o.pp, "\n", o.steps, o.steps == 1 ? " step on " : " steps on ", o.samples,
              o.samples == 1 ? " sample; " : " samples; ", o.microbatches,
              o.microbatches == 1 ? " microbatch in the first step; " : " microbatches in the first step; ",
              o.valid_samples, " samples to validate on, ", o.test_samples, " to test on\n");
  return out;
}

std::string dry_run_json(const Command& command, const Launched& launched) {
  using Json = nlohmann::ordered_json;
  const Outlook o = outlook(command.config, launched);
  Json out;
  out["world"] = o.world;
  out["rank"] = o.rank;
  out["coordinate"] = {{"tp", o.tp}, {"cp", o.cp}, {"dp", o.dp}, {"pp", o.pp}};
  out["steps"] = o.steps;
  out["samples"] = o.samples;
  out["microbatches"] = o.microbatches;
  out["valid_samples"] = o.valid_samples;
  out["test_samples"] = o.test_samples;
  out["plan"] = plan_json(command.config, launched);
  out["settings"] = Json::parse(to_json(command.fields, JsonForm::with_origins));
  out["notices"] = command.notices;
  return out.dump(2);
}

}  // namespace weft::cli
