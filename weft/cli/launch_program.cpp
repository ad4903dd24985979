// Tells programs apart, and knows how training goes on.
#include "weft/cli/launch_program.h"

#include <algorithm>
#include <array>

#include "weft/base/error.h"
#include "weft/base/flags.h"
#include "weft/checkpoint/find.h"
#include "weft/cli/dialect.h"
#include "weft/cli/dialect/spelling.h"
#include "weft/model/kinds.h"
#include "weft/train/ranks.h"
#include "weft/train/resume.h"
#include "weft/train/validate.h"

namespace weft::cli {
namespace {

/// Megatron's programs for models whose layers are one thing each, which are of the usual family here.
bool trains_hybrids(const std::filesystem::path& program) {
  return program.filename() == "pretrain_hybrid.py" || program.filename() == "pretrain_mamba.py";
}

/// "gpt" for any path to pretrain_gpt.py.
std::string model_of_script(const std::filesystem::path& program) {
  if (trains_hybrids(program)) return ModelConfig().kind;
  for (const ModelKind& kind : model_kinds())
    if (program.filename() == text("pretrain_", kind.name, ".py")) return std::string(kind.name);
  return "";
}

/// Why training says no to so many ranks; "" where it does not.
std::string refusal(Args words, std::string_view model, int ranks) {
  const auto command = read_command(words, settings_of_checkpoint);
  TrainConfig& config = command->config;
  config.model.kind = model;
  try {
    in_words_of(*command, [&] {
      std::vector<std::string> notices;
      settle_by_ranks(*command, ranks);
      validate::model(config, notices);
      validate::layout(config, ranks);
      validate::batches(config);
      validate::evaluation(config);
    });
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

/// A job that goes on with fewer nodes or with more must not find out then that it cannot. What it can do on
/// no number of them training says itself.
void must_do_with_every_number(Args words, std::string_view model, const launch::Options& options) {
  const auto& [least, most] = options.nodes;
  const int each = options.per_node.value_or(1);
  int bad = 0, good = 0;
  std::string why;
  for (int nodes = least; nodes <= most; ++nodes) {
    const std::string no = refusal(words, model, nodes * each);
    good += no.empty();
    if (no.empty() || bad > 0) continue;
    bad = nodes;
    why = no;
  }
  if (good > 0 && bad > 0)
    fail(Kind::usage, "launch: --nnodes ", least, ":", most, ", and on ", bad,
         bad == 1 ? " node of " : " nodes of ", each, " ranks training would say: ", why);
}

void read_training(Program& program, const launch::Options& options) {
  const std::vector<std::string_view> views(program.words.begin() + 1, program.words.end());
  if (views.empty() || views[0].starts_with('-'))
    fail(Kind::usage, "launch: name the model: weft launch … train gpt …");
  if (!find_kind(views[0])) return;  // weft train says what it thinks of the others
  const auto command = read_command(Args(views).subspan(1), settings_of_checkpoint);
  if (trains_hybrids(options.program) && command->config.model.hybrid.layers.empty())
    fail(Kind::usage, "launch: ", std::filesystem::path(options.program).filename().string(),
         " trains layers of one thing each, and nothing says which: give --hybrid-layer-pattern, a letter a "
         "layer, M for a state space");
  const auto& checkpoint = command->config.checkpoint;
  program.save = checkpoint.save;
  program.resumes = !checkpoint.load.empty() && checkpoint.load == checkpoint.save && !checkpoint.finetune;
  ParallelConfig least = command->config.parallel;
  least.dp = std::max(1, least.dp);
  program.ranks = std::max(command->config.run.ranks, all_ranks(least));
  const int ranks = command->config.run.ranks, asked = options.per_node.value_or(0);
  if (ranks > 0 && asked > 0 && ranks != asked * options.nodes.most)
    fail(Kind::usage, "launch: --ranks ", ranks, " of training is not what is launched: ", asked,
         " on each of ", options.nodes.most, " nodes; leave --ranks out");
  if (options.nodes.least < options.nodes.most)
    must_do_with_every_number(Args(views).subspan(1), views[0], options);
}

/// Takes a flag and the word that follows it out, in any spelling.
void drop_flag(std::vector<std::string>& words, std::string_view name, bool has_value) {
  for (auto at = words.begin(); at != words.end();) {
    const auto equals = std::min(at->find('='), at->size());
    const bool is_it = at->starts_with("--") && dashed(std::string_view(*at).substr(2, equals - 2)) == name;
    if (!is_it) {
      ++at;
      continue;
    }
    const bool separate = has_value && equals == at->size() && at + 1 != words.end();
    at = words.erase(at, at + (separate ? 2 : 1));
  }
}

}  // namespace

bool is_training(const std::string& program, bool python) {
  return (python && !model_of_script(program).empty()) || program == "train";
}

Program program_of(const launch::Options& options, const launch::Environment& environment) {
  Program out;
  const std::string model = options.python ? model_of_script(options.program) : "";
  out.trains = is_training(options.program, options.python);
  if (out.trains) {
    out.words = {"train"};
    if (!model.empty()) out.words.push_back(model);
  } else if (options.python && options.program.ends_with(".py")) {
    const std::string_view python = launch::value_of(environment, "PYTHON_EXEC");
    out.words = {python.empty() ? "python3" : std::string(python), "-u", options.program};
  } else {
    out.words = {options.program};
  }
  out.words.insert(out.words.end(), options.arguments.begin(), options.arguments.end());
  if (out.trains) read_training(out, options);
  return out;
}

std::int64_t newest_step(const Program& program) {
  if (program.save.empty()) return -1;
  const auto found = checkpoint::find_latest(program.save);
  return found.step ? found.step->step : 0;
}

std::vector<std::string> words_to_go_on(const Program& program) {
  std::vector<std::string> words = program.words;
  // What was asked of the first start alone: from its own checkpoint a run takes everything.
  for (const char* once : {"finetune", "no-load-optim", "no-load-rng", "moe-use-upcycling"})
    drop_flag(words, once, false);
  drop_flag(words, "ckpt-step", true);
  if (program.resumes) return words;
  drop_flag(words, "load", true);
  drop_flag(words, "pretrained-checkpoint", true);
  words.insert(words.end(), {"--load", program.save.string()});
  return words;
}

}  // namespace weft::cli
