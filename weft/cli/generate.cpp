// weft generate: how a model goes on from a text.
#include <iostream>
#include <nlohmann/json.hpp>

#include "weft/backend/open.h"
#include "weft/base/clock.h"
#include "weft/base/error.h"
#include "weft/base/flags.h"
#include "weft/base/format.h"
#include "weft/cli/dialect/spelling.h"
#include "weft/cli/read_model.h"
#include "weft/cli/tokenizer_lines.h"
#include "weft/cli/verbs.h"
#include "weft/generate/continue.h"
#include "weft/model/kinds.h"
#include "weft/text/open.h"
#include "weft/train/run_data.h"

namespace weft::cli {
namespace {

struct GenerateOptions {
  std::string prompt, prompt_file;
  std::int64_t tokens = 64;
  double temperature = 1, top_p = 0;
  bool greedy = false;
  std::int64_t top_k = 0;
  std::uint64_t seed = 1234;
  std::string tokenizer;
  Precision precision = Precision::f32;
  std::string device = "cpu";
  int threads = 0;
  bool echo = true, json = false;
};

template <class Visitor>
void describe(Visitor& v, GenerateOptions& o) {
  v("prompt", o.prompt, "the text to go on from; left out: --prompt-file, or standard input");
  v("prompt_file", o.prompt_file, "a file with the text; - is standard input");
  v("tokens", o.tokens, "how many tokens at most; the end of a text comes earlier if the model says so");
  v("greedy", o.greedy, "always the likeliest token");
  v("temperature", o.temperature, "divides the logits: below 1 bolder, above 1 wilder, 0 greedy");
  v("top_k", o.top_k, "draws among so many of the likeliest tokens (0: all)");
  v("top_p", o.top_p, "draws among the fewest tokens that have this probability together (0: all)");
  v("seed", o.seed, "the same seed draws the same text");
  v("tokenizer", o.tokenizer,
    "instead of the model's own: gpt2:vocab.json,merges.txt, hf:FILE, tiktoken:FILE, spm:FILE, byte, "
    "null:SIZE, or a file or directory");
  v("precision", o.precision, "type of activations and multiplied weights");
  v("device", o.device, "what computes");
  v("threads", o.threads, "of the device (0: the processors it may use)");
  v("echo", o.echo, "prints the prompt before what follows it");
  v("json", o.json, "one JSON object: prompt, text, seconds");
}

struct Asked {
  GenerateOptions options;
  std::string directory;
};

Asked asked(Args args) {
  Asked out;
  Fields fields(out.options);
  const auto others = read_flags(fields, args);
  if (others.size() != 1)
    fail(Kind::usage, "generate: ", others.size(),
         " models are named, expected one: a checkpoint, or a Hugging Face directory");
  out.directory = others[0];
  GenerateOptions& o = out.options;
  if (o.greedy && fields.at("temperature").origin() != Origin::built_in && o.temperature != 0)
    fail(Kind::usage, "generate: --greedy and --temperature ", o.temperature, " contradict each other");
  if (o.greedy) o.temperature = 0;
  if (!o.prompt.empty() && !o.prompt_file.empty())
    fail(Kind::usage, "generate: --prompt and --prompt-file contradict each other");
  if (o.tokens < 1) fail(Kind::usage, "generate: --tokens ", o.tokens, ", expected 1 or more");
  return out;
}

// A file ends in a line end that is no part of its text.
std::string prompt_of(const GenerateOptions& o) {
  if (!o.prompt.empty()) return o.prompt;
  std::string text = whole_input(o.prompt_file.empty() ? "-" : o.prompt_file);
  if (text.ends_with('\n')) text.pop_back();
  if (text.empty()) fail(Kind::usage, "generate: the prompt is empty");
  return text;
}

std::shared_ptr<const Tokenizer> tokenizer_of(const GenerateOptions& o, const NamedModel& model) {
  if (!o.tokenizer.empty()) return open_tokenizer(tokenizer_named(o.tokenizer));
  auto own = run_tokenizer(model.settings);
  if (!own)
    fail(Kind::usage, "generate: ", model.path.string(), " names no tokenizer; give one with --tokenizer");
  return own;
}

int run_generate(Args args) {
  const Asked what = asked(args);
  const GenerateOptions& o = what.options;
  const Choice choice{.temperature = o.temperature, .top_k = o.top_k, .top_p = o.top_p};
  check(choice);
  const NamedModel named = find_model(what.directory);
  for (const std::string& notice : named.notices) std::cerr << spelled(notice) << '\n';
  const std::string& family = named.settings.model.kind;
  if (!kind_named(family).continues)
    fail(Kind::usage, "generate: ", named.path.string(), " is a model of the family ", family,
         ", which guesses hidden words and does not go on from a text");
  const auto tokenizer = tokenizer_of(o, named);
  const std::string prompt = prompt_of(o);
  const auto device = open_device(o.device, {.threads = o.threads});
  ReadModel model(named, o.precision, *device);
  const Stopwatch watch;
  const Wish wish{.prompt = prompt,
                  .tokens = o.tokens,
                  .choice = choice,
                  .seed = o.seed,
                  .ends = named.hub ? named.hub->ends : std::vector<std::int32_t>()};
  const auto tell = [](const std::string& piece) { std::cout << piece << std::flush; };
  if (o.echo && !o.json) tell(prompt);
  const std::string text = continue_text({model.here(), *tokenizer}, wish,
                                         o.json ? std::function<void(const std::string&)>() : tell);
  if (o.json)
    std::cout
        << nlohmann::ordered_json{{"prompt", prompt}, {"text", text}, {"seconds", watch.seconds()}}.dump();
  std::cout << '\n';
  return static_cast<int>(Exit::done);
}

VerbHelp about_generate() {
  GenerateOptions options;
  const Fields fields(options);
  Topic topic{"generate", {}};
  for (const auto& field : fields.all())
    topic.options.push_back({flag_of(*field), value_name(*field), help_with_default(*field)});
  return {
      .usage = "weft generate MODEL [--prompt TEXT | --prompt-file FILE] [options]",
      .examples = {{"weft generate run/checkpoints --prompt 'Once upon a time'",
                    "the newest complete step of a run; its own tokenizer"},
                   {"weft generate Qwen3-0.6B --prompt 'The capital of France is' --tokens 20 --greedy",
                    "a Hugging Face directory as it is"},
                   {"weft generate run/checkpoints/step_00001000 --prompt-file start.txt --temperature 0.8 "
                    "--top-k 40 --seed 7",
                    "one step; the same seed draws the same text"},
                   {"echo 'def main():' | weft generate run/checkpoints --top-p 0.9 --json",
                    "the prompt from standard input, one JSON object out"}},
      .topics = {std::move(topic)}};
}

}  // namespace

Verb generate_verb() { return {"generate", "how a model goes on from a text", run_generate, about_generate}; }

}  // namespace weft::cli
