// A verb of the command line: its name, what it is for, how it runs, and what help says about it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::cli {

using Args = std::span<const std::string_view>;  // what follows the verb's name

/// What weft tells its caller. A result that is refused says 16, go on elsewhere to know more, or 17, it is
/// known, as Megatron's does.
enum class Exit : int {
  done = 0,
  failed = 1,
  usage = 2,
  stopped = 3,
  fault_unsettled = 16,
  fault_confirmed = 17
};

struct Example {
  std::string command, what;
};
struct Option {
  std::string flag, value, text;  // "--layers", "N", "transformer blocks"; no value: a switch
};
struct Topic {
  std::string title;
  std::vector<Option> options;
};

/// Examples first, then options by topic. Help, the man page and shell completion are all made from this.
struct VerbHelp {
  std::string usage;  // "weft plan [options]"
  std::vector<Example> examples;
  std::vector<Topic> topics;
};

/// run() returns an Exit as a number, and throws weft::Error for anything that is wrong.
struct Verb {
  std::string_view name, purpose;
  int (*run)(Args args);
  VerbHelp (*help)();
};

/// Every verb, in the order help lists them: verbs.cpp holds the one table.
std::span<const Verb> verbs();

/// Runs the verb named first. Errors are said on standard error, the first failing message last:
/// the person's mistakes as one sentence (exit 2), everything else with its place (exit 1).
int run(std::span<const Verb> known, Args words);
/// Says what the exception at hand means, the same way.
int say_failure();

}  // namespace weft::cli
