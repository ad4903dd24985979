// From the newest step down to the first that is whole and fits; what is found is the same on every rank.
#include "weft/train/resume.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/fields.h"
#include "weft/base/format.h"
#include "weft/checkpoint/agree.h"
#include "weft/checkpoint/find.h"
#include "weft/checkpoint/load.h"
#include "weft/checkpoint/step.h"
#include "weft/exchange/their_model.h"
#include "weft/train/keep_tokenizer.h"
#include "weft/train/resume_settings.h"
#include "weft/train/resume_theirs.h"
#include "weft/train/resume_weights.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using checkpoint::StepDirectory;

bool has_mark(const fs::path& step) {
  std::error_code error;
  return fs::exists(step / checkpoint::complete_name, error);
}

// Mark, index, facts and sizes are right.
bool is_whole(const fs::path& step) {
  try {
    (void)checkpoint::OpenStep(step);
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool is_step(const fs::path& directory) { return has_mark(directory); }

RunFacts facts_of(const fs::path& step) {
  return facts_from_json(checkpoint::OpenStep(step).facts(), step.string());
}

/// `field` says which states an optimizer has.
template <class Choice>
void must_be_states_of(const char* field, Choice was, Choice is, const std::string& who) {
  if (was != is)
    fail(Kind::usage, who, ": holds the states of {", field, "} ", write_word(was), ", not of ",
         write_word(is), "; add {checkpoint.load_optimizer=false} or {checkpoint.finetune}");
}

void must_hold_states(const RunFacts& facts, const OptimizerConfig& is, const std::string& who) {
  if (!facts.run.optimizer)
    fail(Kind::usage, who,
         ": holds no optimizer states; add {checkpoint.load_optimizer=false} or {checkpoint.finetune}");
  const OptimizerConfig& was = facts.configuration.optimizer;
  must_be_states_of("optimizer.kind", was.kind, is.kind, who);
  if (is.kind == OptimizerKind::muon)
    must_be_states_of("optimizer.muon.others", was.muon.others, is.muon.others, who);
}

void compare(const ResumeInto& into, const RunFacts& facts, const std::string& who) {
  const TrainConfig& config = into.config;
  must_continue(facts, config, who);
  if (!config.checkpoint.load_optimizer) return;
  must_hold_states(facts, config.optimizer, who);
  // Where nothing is trained, no schedule is followed.
  if (config.rate.resume == SchedulerSource::must_agree && facts.run.schedules && !config.eval.skip_train)
    must_agree(facts.schedules, into.schedules, who);
  if (config.rate.resume == SchedulerSource::checkpoint && !facts.run.schedules)
    fail(Kind::usage, who,
         ": {rate.resume=checkpoint}: its schedules are not written down: give them, as the "
         "program did that wrote it");
}

void say_tokenizers(const RunFacts& facts, const ResumeInto& into, std::vector<std::string>& notices) {
  if (facts.tokenizer.hashes != into.tokenizer.hashes || facts.tokenizer.type != into.tokenizer.type)
    notices.push_back(text(
        "the tokenizer is not the one that the checkpoint was trained with: ", facts.tokenizer.type, " of ",
        facts.tokenizer.size, " ids there, ", into.tokenizer.type, " of ", into.tokenizer.size, " here"));
}

constexpr const char* errors_at_zero =
    "errors of one-bit messages start at zero, as the checkpoint's are those of other ranks";
constexpr const char* steps_at_zero =
    "momenta, errors of one-bit messages and what ranks went since they met start at zero, as the "
    "checkpoint's are those of other ranks";

constexpr const char* scales_at_one =
    "scales of 8-bit products start at 1, as the checkpoint has none of the same kind";

/// Where the checkpoint has as many of the same.
bool holds_scales(const RunFacts& facts, const Fp8Config& here) {
  const Fp8Config& there = facts.configuration.model.fp8;
  return there.delayed() && there.format == here.format && there.history == here.history;
}

// Settings are compared before a tensor moves; what is damaged throws Kind::data.
void take(const fs::path& step, const ResumeInto& into, Resumed& out) {
  RunFacts facts;
  checkpoint::agree(into.world, [&]() -> std::string {
    facts = facts_of(step);
    return {};
  });
  if (into.config.checkpoint.upcycle && facts.configuration.model.experts.count > 0)
    fail(Kind::usage, step.string(), ": has experts already, and {checkpoint.upcycle} makes them of MLPs: ",
         "leave it out to go on from there");
  if (!out.weights_only) compare(into, facts, step.string());
  auto wanted =
      into.config.checkpoint.upcycle ? named_before_experts(into.weights) : named_weights(into.weights);
  const bool states = !out.weights_only && into.config.checkpoint.load_optimizer;
  if (states) {
    into.optimizer.set_updates(facts.run.updates);
    const OptimizerKind kind = into.config.optimizer.kind;
    const OfRanks of_ranks =
        same_ranks(facts, into.config.parallel, kind) ? OfRanks::taken : OfRanks::left_out;
    for (auto& state : named_states(into.optimizer, of_ranks)) wanted.push_back(std::move(state));
    if (of_ranks == OfRanks::left_out && speaks_in_one_bit(kind))
      out.notices.emplace_back(into.optimizer.agreed().empty() ? errors_at_zero : steps_at_zero);
    if (holds_scales(facts, into.config.model.fp8))
      wanted.insert(wanted.end(), into.scales.begin(), into.scales.end());
    else if (!into.scales.empty())
      out.notices.emplace_back(scales_at_one);
  }
  // A converted model may be stored in a half type; a run's own masters are f32 to the bit.
  checkpoint::load(step, wanted, into.world,
                   out.weights_only ? checkpoint::Types::may_differ : checkpoint::Types::must_agree);
  if (states) into.optimizer.loaded();
  into.weights.publish();
  out.from = step;
  if (!out.weights_only) {
    say_tokenizers(facts, into, out.notices);
    if (auto others = other_settings(facts, into.config); !others.empty()) out.notices.push_back(others);
  } else if (auto other = another_model(facts, into.config); !other.empty()) {
    out.notices.push_back(other);
  }
  out.facts = std::move(facts);
}

// A model of another program is weights to start from, whatever was asked.
void take_theirs(const fs::path& directory, const ResumeInto& into, Resumed& out) {
  if (into.config.checkpoint.upcycle)
    fail(Kind::usage, directory.string(),
         ": {checkpoint.upcycle} begins with a checkpoint of weft: convert the model first");
  const bool begins = out.weights_only || into.config.eval.skip_train;
  const exchange::Program program = *exchange::program_of(directory);
  if (!begins && program != exchange::Program::hugging_face)
    fail(Kind::usage, "{checkpoint.load} ", directory.string(), ": is a checkpoint of ",
         exchange::whose(program), ": weft checkpoint convert ", directory.string(),
         " NEW makes one that a run goes on from; add {checkpoint.finetune} to begin at step 0 "
         "with its weights");
  out.weights_only = true;
  out.notices = load_their_weights(directory, into.config.model, into.weights, into.world);
  out.from = directory;
  out.facts = RunFacts{};
}

// Whether a step could be loaded.
bool scan(const fs::path& root, const ResumeInto& into, Resumed& out) {
  for (std::int64_t below = checkpoint::no_step;;) {
    const checkpoint::FoundStep found = checkpoint::agree_on_latest(root, below, into.world);
    out.notices.insert(out.notices.end(), found.notices.begin(), found.notices.end());
    if (!found.step) return false;
    try {
      take(found.step->path, into, out);
      return true;
    } catch (const Error& error) {
      if (error.kind() != Kind::data) throw;
      out.notices.push_back(text("step ", found.step->step, " is passed over: ", error.what()));
      out.passed_over.push_back(found.step->step);
    }
    below = found.step->step;
  }
}

// A step that was complete once is worth a person's look before a run starts over it.
void must_hold_nothing(const fs::path& root, const ResumeInto& into, const Resumed& out) {
  checkpoint::agree(into.world, [&]() -> std::string {
    if (into.world.rank() != 0) return {};
    const CheckpointConfig& k = into.config.checkpoint;
    for (const StepDirectory& step : checkpoint::step_directories(root)) {
      if (has_mark(step.path))
        fail(Kind::data, root.string(), ": step ", step.step, " was complete and is damaged, so ",
             k.pretrained.empty() ? "{checkpoint.allow_fresh_start}" : "{checkpoint.pretrained}",
             " does not start over it: ", join(out.notices, "; "), "; repair it or move it away");
    }
    return {};
  });
}

void start_anew(const ResumeInto& into, Resumed& out) {
  const CheckpointConfig& k = into.config.checkpoint;
  if (k.pretrained.empty() && !k.allow_fresh_start)
    fail(Kind::data, "{checkpoint.load} ", k.load, ": no checkpoint can be loaded: ", join(out.notices, "; "),
         "; add {checkpoint.allow_fresh_start} to begin with new weights");
  if (!k.load.empty()) must_hold_nothing(k.load, into, out);
  if (!k.pretrained.empty()) {
    out.weights_only = true;
    if (exchange::program_of(k.pretrained)) return take_theirs(k.pretrained, into, out);
    return take(checkpoint_step(k.pretrained, out.notices), into, out);
  }
  out.notices.emplace_back("a fresh start: the run begins with new weights at step 0");
}

// The step that a person means without a run being built; none where there is nothing.
std::optional<fs::path> meant(const CheckpointConfig& k) {
  if (k.load.empty()) return std::nullopt;
  if (k.step > 0) return checkpoint::step_directory(k.load, k.step);
  if (is_step(k.load)) return k.load;
  const auto found = checkpoint::find_latest(k.load);
  if (found.step) return found.step->path;
  return std::nullopt;
}

}  // namespace

Resumed resume(const ResumeInto& into) {
  const CheckpointConfig& k = into.config.checkpoint;
  Resumed out{.weights_only = k.finetune || k.upcycle};
  const bool named = !k.load.empty();
  if (named && k.step > 0) {
    take(checkpoint::step_directory(k.load, k.step), into, out);
  } else if (named && is_step(k.load)) {
    take(k.load, into, out);
  } else if (named && exchange::program_of(k.load)) {
    take_theirs(k.load, into, out);
  } else if (!named || !scan(k.load, into, out)) {
    start_anew(into, out);
  }
  return out;
}

void must_not_mix_runs(const CheckpointConfig& config, std::int64_t step,
                       const std::vector<std::int64_t>& passed_over, Communicator& world) {
  checkpoint::agree(world, [&]() -> std::string {
    if (world.rank() != 0) return {};
    auto steps = checkpoint::step_directories(config.save);
    std::reverse(steps.begin(), steps.end());
    for (const StepDirectory& there : steps) {
      const bool damaged = std::ranges::find(passed_over, there.step) != passed_over.end();
      if (there.step <= step || damaged || !is_whole(there.path)) continue;
      fail(Kind::usage, "{checkpoint.save} ", config.save, ": holds step ", there.step,
           ", and this run starts from step ", step, ": two runs would mix; ",
           step == 0 ? text("add {checkpoint.load} ", config.save, " to go on from it, or ") : std::string(),
           "save elsewhere");
    }
    return {};
  });
}

std::string settings_of_checkpoint(const CheckpointConfig& config) {
  if (exchange::program_of(config.load)) return settings_of_theirs(config.load, config.use_tokenizer);
  const auto step = meant(config);
  if (!step) {
    if (config.allow_fresh_start) return "{}";
    fail(Kind::data, "{checkpoint.use_args}: ", config.load,
         " holds no complete checkpoint to ask; add {checkpoint.allow_fresh_start} to begin with what flags "
         "say");
  }
  return settings_to_take(facts_of(*step), config.use_tokenizer);
}

std::optional<std::int64_t> seed_of_checkpoint(const CheckpointConfig& config) {
  if (config.finetune || config.upcycle || !config.load_random) return std::nullopt;
  const auto step = meant(config);
  if (!step || !has_mark(*step)) return std::nullopt;
  return facts_of(*step).run.seed;
}

std::vector<std::string> tokenizer_of_checkpoint(const CheckpointConfig& config, TokenizerConfig& tokenizer) {
  const auto step = meant(config);
  if (!step || !has_mark(*step)) return {};
  return take_kept_tokenizer(*step, tokenizer);
}

}  // namespace weft
