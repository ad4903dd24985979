// weft generate: how a model goes on from a text, answers it, or fills its gaps.
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "weft/backend/open.h"
#include "weft/base/clock.h"
#include "weft/base/error.h"
#include "weft/base/flags.h"
#include "weft/base/format.h"
#include "weft/cli/chat.h"
#include "weft/cli/convert_job.h"
#include "weft/cli/dialect/spelling.h"
#include "weft/cli/gpu_run.h"
#include "weft/cli/read_model.h"
#include "weft/cli/tokenizer_lines.h"
#include "weft/cli/verbs.h"
#include "weft/generate/continue.h"
#include "weft/generate/fill.h"
#include "weft/model/kinds.h"
#include "weft/text/open.h"
#include "weft/train/run_data.h"

namespace weft::cli {
namespace {

struct GenerateOptions {
  std::string prompt, prompt_file;
  std::int64_t tokens = 64;
  double temperature = 1, top_p = 0, repetition_penalty = 0;
  bool greedy = false;
  std::int64_t top_k = 0;
  std::uint64_t seed = 1234;
  std::string tokenizer;
  bool chat = false;
  std::string system, chat_file;
  ChatFlags conversation;
  Precision precision = Precision::f32;
  std::string device = "cpu";
  int threads = 0;
  bool echo = true, json = false;
};

template <class Visitor>
void describe(Visitor& v, GenerateOptions& o) {
  v("prompt", o.prompt,
    "the text to go on from or to answer, or with [MASK] where BERT is to guess; left out: --prompt-file, or "
    "standard input");
  v("prompt_file", o.prompt_file, "a file with the text; - is standard input");
  v("tokens", o.tokens, "how many tokens at most; the end of a text comes earlier if the model says so");
  v("greedy", o.greedy, "always the likeliest token");
  v("temperature", o.temperature, "divides the logits: below 1 bolder, above 1 wilder, 0 greedy",
    legal::not_negative);
  v("top_k", o.top_k, "draws among so many of the likeliest tokens (0: all); BERT: prints so many (0: 5)",
    legal::count);
  v("top_p", o.top_p, "draws among the fewest tokens that have this probability together (0: all)",
    legal::fraction);
  v("repetition_penalty", o.repetition_penalty,
    "words that the text has already are the less likely the larger this is (0: as the model's "
    "generation_config.json says; 1: as likely)",
    legal::not_negative);
  v("seed", o.seed, "the same seed draws the same text");
  v("tokenizer", o.tokenizer,
    "instead of the model's own: gpt2:vocab.json,merges.txt, hf:FILE, tiktoken:FILE, spm:FILE, byte, "
    "null:SIZE, or a file or directory");
  v("chat", o.chat,
    "the prompt is what a person says, and the model answers it: the tokenizer's chat template writes both");
  v("system", o.system, "what is said to the model before; with --chat");
  v("chat_file", o.chat_file,
    "conversations to answer instead of a prompt, a line of JSON each: a list of messages, or an object with "
    "\"messages\" and perhaps \"tools\"; - is standard input");
  describe(v, o.conversation);
  v("precision", o.precision, "type of activations and multiplied weights");
  v("device", o.device, "what computes: cpu, cpu:fast, cpu:onednn, cpu:reference, cuda or cuda:N");
  v("threads", o.threads, "of the device (0: the processors it may use)", legal::from_to(0, 1024));
  v("echo", o.echo, "prints the prompt before what follows it; a conversation only where this is given");
  v("json", o.json, "one JSON object: prompt, text, seconds; BERT: masks, too");
}

struct GenerateCommand {
  GenerateOptions options;
  std::string directory;
  std::vector<std::string> drawing;  // flags given that say how words are drawn
};

// A conversation's flags say nothing to a plain prompt, and the other way round.
void check_chat(GenerateOptions& o, const Fields& fields) {
  const auto given = [&](const char* name) { return fields.at(name).origin() != Origin::built_in; };
  if (!o.chat_file.empty()) {
    for (const char* other : {"prompt", "prompt_file", "system"})
      if (given(other))
        fail(Kind::usage, "generate: --chat-file and ", flag_of(fields.at(other)), " contradict each other");
    o.chat = true;
  }
  for (const char* name : {"system", "chat_template", "chat_template_kwargs"})
    if (given(name) && !o.chat)
      fail(Kind::usage, "generate: ", flag_of(fields.at(name)), " does nothing without --chat");
  if (o.chat && !given("echo")) o.echo = false;
}

GenerateCommand asked(Args args) {
  GenerateCommand out;
  Fields fields(out.options);
  const auto others = read_flags(fields, args);
  if (others.size() != 1)
    fail(Kind::usage, "generate: ", others.size(),
         " models are named, expected one: a checkpoint, or a Hugging Face directory");
  out.directory = others[0];
  GenerateOptions& o = out.options;
  if (o.greedy && fields.at("temperature").origin() != Origin::built_in && o.temperature != 0)
    fail(Kind::usage, "generate: --greedy and --temperature ", o.temperature, " contradict each other");
  for (const char* name : {"tokens", "greedy", "temperature", "top_p", "repetition_penalty", "seed"})
    if (const Field& field = fields.at(name); field.origin() != Origin::built_in)
      out.drawing.push_back(flag_of(field));
  if (o.greedy) o.temperature = 0;
  if (!o.prompt.empty() && !o.prompt_file.empty())
    fail(Kind::usage, "generate: --prompt and --prompt-file contradict each other");
  check_chat(o, fields);
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

/// A GGUF file holds its tokenizer itself, whose files lie in a folder for as long as they are read.
class TokenizerInside {
 public:
  TokenizerInside(const GenerateOptions& o, NamedModel& model) {
    if (!o.tokenizer.empty() || exchange::program_of(model.path) != exchange::Program::llama_cpp) return;
    std::string name = (std::filesystem::temp_directory_path() / "weft_tokenizer_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) fail_errno("make a folder for the tokenizer in", name, errno);
    folder_ = name;
    if (write_tokenizer_of_gguf(model.path, folder_).empty()) return;
    model.settings.data.tokenizer.type = "HuggingFaceTokenizer";
    model.settings.data.tokenizer.model = name;
  }
  TokenizerInside(const TokenizerInside&) = delete;
  TokenizerInside& operator=(const TokenizerInside&) = delete;
  ~TokenizerInside() {
    std::error_code error;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, error);
  }

 private:
  std::filesystem::path folder_;
};

// A chat template writes itself what a tokenizer.json would put around a text.
std::shared_ptr<const Tokenizer> tokenizer_of(const GenerateOptions& o, const NamedModel& model) {
  if (!o.tokenizer.empty()) {
    TokenizerOptions named = tokenizer_named(o.tokenizer);
    named.tokenizer_hf_no_include_special_tokens = o.chat;
    return open_tokenizer(named);
  }
  TokenizerConfig config = model.settings.data.tokenizer;
  config.wraps_text = config.wraps_text && !o.chat;
  auto own = run_tokenizer(config, model.settings.model.vocabulary);
  if (!own)
    fail(Kind::usage, "generate: ", model.path.string(), " names no tokenizer; give one with --tokenizer");
  return own;
}

ChatTemplate template_of(const GenerateOptions& o, const NamedModel& model) {
  const TokenizerConfig& own = model.settings.data.tokenizer;
  TokenizerOptions named;
  named.tokenizer_model = own.model;
  named.vocab_file = own.vocab_file;
  return chat_template_for(o.conversation, o.tokenizer.empty() ? named : tokenizer_named(o.tokenizer),
                           "generate");
}

/// What the model goes on from: one text, or one a conversation.
std::vector<std::string> prompts_of(const GenerateOptions& o, const NamedModel& model) {
  if (!o.chat) return {prompt_of(o)};
  const ChatTemplate chat = template_of(o, model);
  std::vector<std::string> out;
  const auto add = [&](const Conversation& said) {
    out.push_back(chat.write(said.messages, {.answer_next = true, .variables = &said.variables}).text);
  };
  if (o.chat_file.empty()) {
    add(conversation_of(o.system, prompt_of(o), o.conversation));
    return out;
  }
  each_line(o.chat_file, [&](const LinePlace& place, std::string_view line) {
    const Conversation said = conversation_in(line, place, o.conversation);
    located(place, [&] { add(said); });
  });
  if (out.empty()) fail(Kind::usage, "generate: ", o.chat_file, " holds no conversation");
  return out;
}

using Object = nlohmann::ordered_json;

/// A model, its words, and what it is asked.
struct Task {
  const GenerateOptions& options;
  const NamedModel& named;
  Speaker speaker;
  std::string prompt;
};

/// The prompt, if it is wanted: on a line of its own where what is said does not go on from it.
void echo(const Task& task, const char* behind) {
  if (task.options.echo && !task.options.json) std::cout << task.prompt << behind << std::flush;
}

Wish wish_of(const Task& task, const Choice& choice) {
  const GenerateOptions& o = task.options;
  Wish wish{.prompt = task.prompt, .tokens = o.tokens, .choice = choice, .seed = o.seed, .ends = {}};
  wish.ends = task.named.generation.ends;
  if (!task.named.theirs || !task.named.theirs->hub) return wish;
  wish.start = task.named.theirs->hub->start;
  if (task.speaker.model.config.decoder_layers > 0 && !wish.ends.empty()) wish.closes = wish.ends.front();
  return wish;
}

Choice choice_of(const GenerateOptions& o, const Generation& model) {
  Choice out{.temperature = o.temperature,
             .top_k = o.top_k,
             .top_p = o.top_p,
             .repetition_penalty = o.repetition_penalty > 0 ? o.repetition_penalty : 1};
  if (o.repetition_penalty == 0 && model.repetition_penalty) {
    out.repetition_penalty = *model.repetition_penalty;
    std::cerr << model.file.string() << ": repetition_penalty " << out.repetition_penalty
              << " is taken; --repetition-penalty 1 leaves it out\n";
  }
  check(out);
  return out;
}

void say(const Task& task, const Choice& choice) {
  const bool json = task.options.json;
  const Stopwatch watch;
  echo(task, task.speaker.model.config.decoder_layers > 0 ? "\n" : "");
  const auto tell = [](const std::string& piece) { std::cout << piece << std::flush; };
  const std::string text = continue_text(task.speaker, wish_of(task, choice),
                                         json ? std::function<void(const std::string&)>() : tell);
  if (json) std::cout << Object{{"prompt", task.prompt}, {"text", text}, {"seconds", watch.seconds()}}.dump();
  std::cout << '\n';
}

Object masks_of(const Filled& filled) {
  Object masks = Object::array();
  for (const auto& guesses : filled.hidden) {
    Object words = Object::array();
    for (const Guess& guess : guesses)
      words.push_back({{"token", guess.token}, {"id", guess.id}, {"probability", guess.probability}});
    masks.push_back(std::move(words));
  }
  return masks;
}

void guess(const Task& task) {
  constexpr std::int64_t usual = 5;
  const Stopwatch watch;
  const std::int64_t words = task.options.top_k > 0 ? task.options.top_k : usual;
  const Filled filled = fill_hidden(task.speaker, task.prompt, words);
  if (task.options.json) {
    std::cout << Object{{"prompt", task.prompt},
                        {"text", filled.text},
                        {"masks", masks_of(filled)},
                        {"seconds", watch.seconds()}}
                     .dump()
              << '\n';
    return;
  }
  echo(task, "\n");
  for (const auto& guesses : filled.hidden) {
    for (std::size_t i = 0; i < guesses.size(); ++i) {
      char probability[32];
      std::snprintf(probability, sizeof probability, "%.4f", guesses[i].probability);
      std::cout << (i > 0 ? "  " : "") << guesses[i].token << ' ' << probability;
    }
    std::cout << '\n';
  }
}

/// Of the longest, with what a family begins it with and ends it.
std::int64_t tokens_of(const std::vector<std::string>& prompts, const Tokenizer& tokenizer) {
  constexpr std::int64_t around_it = 2;
  std::int64_t most = 0;
  for (const std::string& prompt : prompts) most = std::max(most, std::ssize(tokenizer.encode(prompt)));
  return most + around_it;
}

int run_generate(Args args) {
  const GenerateCommand what = asked(args);
  const GenerateOptions& o = what.options;
  NamedModel named = find_model(what.directory);
  for (const std::string& notice : named.notices) std::cerr << spelled(notice) << '\n';
  const Choice choice = choice_of(o, named.generation);
  const std::string& family = named.settings.model.kind;
  const bool guesses = kind_named(family).speech == Speech::guesses;
  if (guesses && !what.drawing.empty())
    fail(Kind::usage, "generate: ", named.path.string(), " is a model of the family ", family,
         ", which guesses hidden words and draws none; leave ", join(what.drawing, ", "), " out");
  if (o.chat && (guesses || named.settings.model.decoder_layers > 0))
    fail(Kind::usage, "generate: ", named.path.string(), " is a model of the family ", family,
         ", which does not go on from a text; leave --chat out");
  const TokenizerInside inside(o, named);
  const auto tokenizer = tokenizer_of(o, named);
  const std::vector<std::string> prompts = prompts_of(o, named);
  if (!guesses) read_no_longer(named.settings.model, tokens_of(prompts, *tokenizer) + o.tokens);
  must_read(o.device, named.settings.model);
  const auto device = open_device(o.device, {.threads = o.threads});
  ReadModel model(named, o.precision, *device);
  for (const std::string& prompt : prompts) {
    const Task task{o, named, {model.here(), *tokenizer}, prompt};
    guesses ? guess(task) : say(task, choice);
  }
  return static_cast<int>(Exit::done);
}

VerbHelp about_generate() {
  GenerateOptions options;
  const Fields fields(options);
  Topic topic{"generate", {}};
  for (const auto& field : fields.all())
    topic.options.push_back({flag_of(*field), value_name(*field), help_with_default(*field)});
  return {.usage = "weft generate MODEL [--prompt TEXT | --prompt-file FILE | --chat-file FILE] [options]",
          .examples =
              {{"weft generate run/checkpoints --prompt 'Once upon a time'",
                "the newest complete step of a run; its own tokenizer"},
               {"weft generate Qwen3-0.6B --prompt 'The capital of France is' --tokens 20 --greedy",
                "a Hugging Face directory as it is"},
               {"weft generate run/checkpoints/step_00001000 --prompt-file start.txt --temperature 0.8 "
                "--top-k 40 --seed 7",
                "one step; the same seed draws the same text"},
               {"weft generate Qwen3-0.6B --chat --system 'Be brief.' --prompt 'Who was Ada Lovelace?'",
                "an answer: the tokenizer's chat template writes what is said"},
               {"weft generate Qwen3-0.6B --chat-file conversations.jsonl --json",
                "an answer to each conversation of a file"},
               {"weft generate t5-small --prompt 'translate English to German: The house is small.' --greedy",
                "a model of two stacks reads the prompt, and says another text"},
               {"weft generate bert-base-uncased --prompt 'Paris is the [MASK] of France.'",
                "the likeliest words for every [MASK], with their probabilities"},
               {"echo 'def main():' | weft generate run/checkpoints --top-p 0.9 --json",
                "the prompt from standard input, one JSON object out"}},
          .topics = {std::move(topic)}};
}

}  // namespace

Verb generate_verb() {
  return {"generate", "how a model goes on from a text, answers it, or fills its gaps", run_generate,
          about_generate};
}

}  // namespace weft::cli
