// What a training command reads of its files before its settings are whole, and the room that it needs.
#include "weft/cli/train_command.h"

#include "weft/backend/open.h"
#include "weft/base/error.h"
#include "weft/cli/dialect/spelling.h"
#include "weft/cli/dry_run.h"
#include "weft/cli/dry_run_plan.h"
#include "weft/cli/gpu_run.h"
#include "weft/train/resume.h"
#include "weft/train/run_data.h"

namespace weft::cli {
namespace {

// What a tokenizer has counts, whatever --vocab-size says; what is passed over is said.
void take_vocabulary(Command& command, std::int64_t size) {
  std::int64_t& asked = command.config.model.vocabulary;
  for (const std::string& sentence :
       unread_tokenizer_settings(command.config.data.tokenizer, command.config.model.vocabulary))
    command.notices.push_back(spelled(sentence, &command));
  // A model that was trained elsewhere may have rows for more ids than its tokenizer, or for fewer.
  if (command.fields.at("model.vocabulary").origin() == Origin::checkpoint) {
    if (asked < size)
      command.notices.push_back(text("the tokenizer has ", size, " tokens, the model that is loaded knows ",
                                     asked, ": data with the others are refused"));
    return;
  }
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

/// What is asked of a GPU and cannot be had.
void look_at_gpu(Command& command) {
  const RunConfig& run = command.config.run;
  const auto no_effect = [&](std::string_view setting, const std::string& why) {
    command.notices.push_back(spelled(text("no effect here: ", setting, " (", why, ")"), &command));
  };
  if (run.graphs && !names_gpu(run.device))
    no_effect("{run.graphs}", "a processor is asked for nothing that it could keep");
  if (command.config.profile.on && !names_gpu(run.device))
    no_effect("{profile.on}", "a processor's profilers look when they are told to: perf record -p …");
  const std::string why = why_no_warpgroups(run.device, command.config.model);
  if (run.warpgroups && !why.empty()) no_effect("{run.warpgroups}", why);
  if (const std::string slow = why_blocks_are_widened(run.device, command.config.model); !slow.empty())
    command.notices.push_back(spelled(text("{model.fp8.recipe}: ", slow), &command));
}

}  // namespace

void take_words(Command& command) {
  take_usual_tokenizer(command, command.config.model.kind);
  take_tokenizer(command);
  if (const auto tokenizer = run_tokenizer(command.config.data.tokenizer, command.config.model.vocabulary))
    take_vocabulary(command, tokenizer->size());
}

void finish(Command& command, const Launched& launched) {
  take_words(command);
  take_saved_seed(command);
  complete(command, launched.world);
  look_at_gpu(command);
  if (command.dry_run) return;
  must_be_here(command.config.run.device);
  if (!command.memory_check) return;
  for (const Room& room : rooms_here(command.config, launched)) {
    std::string warning =
        must_fit(command.config, room.ranks, room.free, counter_of(command.config, launched));
    if (!warning.empty()) command.notices.push_back(std::move(warning));
  }
}

}  // namespace weft::cli
