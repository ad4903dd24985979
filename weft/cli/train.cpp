// weft train: reads Megatron's words, and shows or runs what they mean.
#include <chrono>
#include <ctime>
#include <iostream>
#include <thread>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/cli/dialect.h"
#include "weft/cli/dialect/spelling.h"
#include "weft/cli/dry_run.h"
#include "weft/cli/dry_run_plan.h"
#include "weft/cli/gpu_run.h"
#include "weft/cli/train_run.h"
#include "weft/cli/verbs.h"
#include "weft/launch/error_file.h"
#include "weft/model/kinds.h"
#include "weft/train/resume.h"
#include "weft/train/run_data.h"
#include "weft/train/validate.h"

namespace weft::cli {
namespace {

void check_model(std::string_view named) {
  if (find_kind(named)) return;
  std::vector<std::string> known;
  for (const ModelKind& kind : model_kinds()) known.push_back(text("weft train ", kind.name));
  fail(Kind::usage, "train: '", named, "' is not a model; write ", join(known, " or "));
}

void say_once(const Command& command) {
  for (const std::string& notice : command.notices) std::cerr << notice << "\n";
}

// What a tokenizer has counts, whatever --vocab-size says; what is passed over is said.
void take_vocabulary(Command& command, std::int64_t size) {
  std::int64_t& asked = command.config.model.vocabulary;
  for (const std::string& sentence :
       unread_tokenizer_settings(command.config.data.tokenizer, command.config.model.vocabulary))
    command.notices.push_back(spelled(sentence, &command));
  // A model that was trained elsewhere may have rows for more ids than its tokenizer.
  if (command.fields.at("model.vocabulary").origin() == Origin::checkpoint && asked >= size) return;
  if (asked > 0 && asked != size)
    command.notices.push_back(
        text("no effect here: --vocab-size ", asked, " (the tokenizer has ", size, " tokens)"));
  asked = size;
}

/// A run goes on with its tokenizer, even where the files were moved away.
void take_tokenizer(Command& command) {
  auto said = tokenizer_of_checkpoint(command.config.checkpoint, command.config.data.tokenizer);
  for (std::string& sentence : said) command.notices.push_back(std::move(sentence));
}

void finish(Command& command, const Launched& launched, std::string_view model) {
  take_usual_tokenizer(command, model);
  take_saved_seed(command);
  take_tokenizer(command);
  if (const auto tokenizer = run_tokenizer(command.config.data.tokenizer, command.config.model.vocabulary))
    take_vocabulary(command, tokenizer->size());
  complete(command, launched.world);
  if (command.dry_run) return;
  must_be_here(command.config.run.device);
  if (!command.memory_check) return;
  for (const Room& room : rooms_here(command.config, launched))
    must_fit(command.config, room.ranks, room.free, counter_of(command.config, launched));
}

std::unique_ptr<Command> complete_command(Args args, const Launched& launched) {
  if (args.empty())
    fail(Kind::usage, "train: name the model: weft train gpt …; weft help train shows examples");
  check_model(args[0]);
  auto command = read_command(args.subspan(1), settings_of_checkpoint);
  command->config.model.kind = args[0];
  if (!command->others.empty())
    fail(Kind::usage, "train: '", command->others[0], "' follows no flag that takes it");
  in_words_of(*command, [&] { finish(*command, launched, args[0]); });
  return command;
}

// All ranks of mpirun read the same words, and would all say what is wrong with them. The first one does, and
// its launcher ends the others; they speak up only where that does not happen.
std::unique_ptr<Command> complete_command_once(Args args, const Launched& launched) {
  try {
    return complete_command(args, launched);
  } catch (const Error&) {
    if (launched.processes() && launched.rank > 0) std::this_thread::sleep_for(std::chrono::seconds(5));
    throw;
  }
}

void show(const Command& command, const Launched& launched) {
  if (command.json)
    std::cout << dry_run_json(command, launched) << "\n";
  else
    std::cout << dry_run_text(command, launched);
}

int run_train(Args args) {
  const Launched launched = launched_by_environment();
  const auto command = complete_command_once(args, launched);
  const bool tells = !launched.processes() || launched.rank == 0;
  if (command->dry_run && tells) show(*command, launched);
  if (tells && !(command->dry_run && command->json)) say_once(*command);
  if (command->dry_run) return static_cast<int>(Exit::done);
  must_speak_with_peers(launched);
  try {
    return in_words_of(*command, [&] { return run_training(command->config, launched, wording(*command)); });
  } catch (const Error& e) {
    if (!launched.error_file.empty())
      launch::write_error_file(launched.error_file, e.what(), std::time(nullptr));
    throw;
  }
}

VerbHelp about_train() {
  VerbHelp help{
      .usage = text("weft train ", kinds_to_choose(),
                    " [--config FILE.yaml] [Megatron-LM's flags] [--dry-run] [--json]"),
      .examples = {{"weft train gpt --config examples/gpt2_124m.yaml --data-path wiki_text_document",
                    "a model from a file; the command line wins over it"},
                   {"weft train gpt --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64 "
                    "--micro-batch-size 4 "
                    "--lr 1e-3 --train-iters 100 --mock-data --vocab-size 256",
                    "a tiny model on made-up data"},
                   {"weft train gpt --config examples/llama2_70b.yaml --mock-data --dry-run --ranks 64",
                    "every value and who set it, for 64 ranks, without running"},
                   {"mpirun -n 8 weft train gpt --config examples/gpt2_124m.yaml --mock-data",
                    "ranks as processes, on the machines that mpirun knows"}},
      .topics = {{"This command",
                  {{"--config", "FILE", "settings in YAML, under the same names; the command line wins"},
                   {"--dry-run", "", "print what the run needs and every value with who set it, and stop"},
                   {"--no-memory-check", "", "start even where memory seems too little"},
                   {"--json", "", "print one JSON object"}}}}};
  for (Topic& topic : dialect_topics()) help.topics.push_back(std::move(topic));
  help.topics.push_back({"Other flags of Megatron-LM",
                         {{"weft help flags", "", "lists every flag and what weft does about it"}}});
  return help;
}

}  // namespace

Verb train_verb() {
  return {"train", "pretrains a model; takes Megatron-LM's flags", run_train, about_train};
}

}  // namespace weft::cli
