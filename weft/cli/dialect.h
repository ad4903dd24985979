// Reads a training command in Megatron's words into a TrainConfig: built-in, file, checkpoint, command line.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/fields.h"
#include "weft/cli/dialect/deepspeed.h"
#include "weft/cli/verb.h"
#include "weft/train/describe.h"

namespace weft::cli {

/// What a command line said, with every value's origin. Fields point into config, so it stays where it is.
struct Command {
  Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  TrainConfig config;
  Fields fields{config};
  std::vector<std::string> notices;                    // to be said once: what was accepted and has no effect
  std::vector<std::string> others;                     // words that belong to no flag
  std::map<std::string_view, std::string_view> flags;  // by the path of the field that they set
  std::optional<dialect::DeepSpeedSaid> deepspeed;     // what its file said, where one was named
  std::string_view asks_for_hybrid;                    // the flag that did, without saying which layers
  bool dry_run = false, json = false, memory_check = true;
};

/// Gives the settings that a checkpoint holds, as the JSON that to_json() wrote.
using CheckpointSettings = std::function<std::string(const CheckpointConfig&)>;

/// Fails for flags that weft refuses, naming all of them at once, and for typos, with the nearest name.
std::unique_ptr<Command> read_command(Args args, const CheckpointSettings& = {});
/// What DeepSpeed's file says of a batch by microbatches, or of groups by ranks, once their number is known;
/// `world` is that of a launcher, or 0.
void settle_by_ranks(Command& command, int world);
/// A run goes on with the seed of its checkpoint unless another was asked for.
void take_saved_seed(Command& command);
/// The tokenizer that Megatron's program for this model means where no --tokenizer-type is given.
std::string_view usual_tokenizer(std::string_view model);
/// Takes it, where the files that it reads are named; a bare --vocab-size needs none.
void take_usual_tokenizer(Command& command, std::string_view model);
/// A sentence for all flags that were given and that wait for the same other one; of completed settings.
std::vector<std::string> idle_flags(const Command& command);

/// Every flag by topic, for help; foreign ones are left out.
std::vector<Topic> dialect_topics();
/// docs/flags.md: every flag, what weft does about it, and the rules that are not ours.
std::string dialect_markdown();
/// The end of docs/deepspeed.md: every key of DeepSpeed's configuration.
std::string deepspeed_markdown();

}  // namespace weft::cli
