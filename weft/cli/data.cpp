// weft data sample|why|pack|difficulty: the tokens that a run's steps see, the documents they come from,
// conversations put together, and an index of which samples are difficult. Takes the flags of weft train.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/cli/dialect.h"
#include "weft/cli/dry_run.h"
#include "weft/cli/train_command.h"
#include "weft/cli/verbs.h"
#include "weft/data/difficulty_metrics.h"
#include "weft/data/pack_conversations.h"
#include "weft/data/source.h"
#include "weft/model/kinds.h"
#include "weft/train/ranks.h"
#include "weft/train/resume.h"
#include "weft/train/settings.h"

namespace weft::cli {
namespace {

using Json = nlohmann::ordered_json;

// The verb's own flags; the others are train's.
struct SampleOptions {
  std::int64_t index = 0, count = 1;
  std::int64_t step = 0;  // 0: by index
  data::Split split = data::Split::train;
  data::Difficulty metric = data::Difficulty::vocab_rarity;
  std::string_view to;  // a folder for an index
  std::vector<std::string_view> train;
};

std::int64_t number(std::string_view flag, std::string_view word, std::int64_t least) {
  std::int64_t value = 0;
  const auto result = std::from_chars(word.data(), word.data() + word.size(), value);
  if (result.ec != std::errc() || result.ptr != word.data() + word.size())
    fail(Kind::usage, "data: --", flag, ' ', word, " is not a whole number");
  if (value < least) fail(Kind::usage, "data: --", flag, ' ', word, " is not at least ", least);
  return value;
}

data::Split split_named(std::string_view word) {
  for (const data::Split split : data::splits)
    if (name(split) == word) return split;
  fail(Kind::usage, "data: --of ", word, ": expected train, valid or test");
}

bool is_own(std::string_view flag) {
  constexpr std::string_view flags[] = {"index", "count", "step", "of", "metric", "to"};
  return std::ranges::find(flags, flag) != std::end(flags);
}

void read_option(SampleOptions& asked, std::string_view flag, std::string_view value) {
  if (flag == "of") asked.split = split_named(value);
  if (flag == "index") asked.index = number(flag, value, 0);
  if (flag == "count") asked.count = number(flag, value, 1);
  if (flag == "step") asked.step = number(flag, value, 1);
  if (flag == "to") asked.to = value;
  if (flag != "metric") return;
  try {
    read_word(value, asked.metric);
  } catch (const Error& e) {
    fail(e.kind(), "data: --metric: ", e.what());
  }
}

SampleOptions read_asked(Args args) {
  SampleOptions asked;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string_view word = args[i];
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string_view flag = word.starts_with("--") ? word.substr(2, equals - 2) : std::string_view();
    if (!is_own(flag)) {
      asked.train.push_back(word);
      continue;
    }
    if (equals == word.size() && i + 1 == args.size()) fail(Kind::usage, "data: --", flag, " needs a value");
    read_option(asked, flag, equals == word.size() ? args[++i] : word.substr(equals + 1));
  }
  return asked;
}

/// The settings of a run as far as its data goes.
std::unique_ptr<Command> settings_of_run(SampleOptions& asked) {
  std::string kind = ModelConfig().kind;
  // The family may stand behind a word that is the verb's own and has no value.
  std::stable_partition(asked.train.begin(), asked.train.end(),
                        [](std::string_view word) { return word != "--json"; });
  if (!asked.train.empty() && !asked.train[0].starts_with("-")) {
    kind = kind_named(asked.train[0]).name;
    asked.train.erase(asked.train.begin());
  }
  std::unique_ptr<Command> command = read_command(asked.train, settings_of_checkpoint);
  if (!command->others.empty())
    fail(Kind::usage, "data: '", command->others[0], "' follows no flag that takes it");
  take_saved_seed(*command);
  TrainConfig& config = command->config;
  config.model.kind = kind;
  const std::size_t before = command->notices.size();
  take_words(*command);
  for (std::size_t i = before; i < command->notices.size(); ++i) std::cerr << command->notices[i] << '\n';
  complete(*command, launched_by_environment().world);
  return command;
}

// A run as far as its data goes.
struct Run {
  SampleOptions asked;
  std::unique_ptr<Command> command;
  std::optional<RunData> opened;
  std::shared_ptr<const data::Dataset> set;
  std::vector<std::int64_t> samples;

  explicit Run(Args args) : asked(read_asked(args)), command(settings_of_run(asked)) {
    TrainConfig& config = command->config;
    if (asked.split == data::Split::train) config.eval.iterations = 0;  // nothing is asked of the others
    opened = open_run_data(config);
    set = opened->sets[asked.split];
    if (!set) fail(Kind::usage, "data: this run opens no ", name(asked.split), " data");
    if (asked.step > 0) {
      if (const std::int64_t steps = opened->length.steps; steps > 0 && asked.step > steps)
        fail(Kind::usage, "data: --step ", asked.step, ": the run has ", steps, " steps");
      const auto order = asked.split == data::Split::train ? training_sampler(config.data, set->size())
                                                           : run_sampler(config.data, set->size());
      samples = samples_of_step(opened->length.batches, *order,
                                {.micro_batch = int(config.batch.micro),
                                 .ranks = sample_ranks(config.parallel),
                                 .owners = owners_of(config.model)},
                                asked.step);
    } else {
      if (asked.count > 1 && asked.count > set->size() - asked.index)
        fail(Kind::usage, "data: --index ", asked.index, " and --count ", asked.count, ": there are ",
             set->size(), " samples");
      for (std::int64_t k = 0; k < asked.count; ++k) samples.push_back(asked.index + k);
    }
  }
};

bool converses(const Run& run) { return run.command->config.data.chat.on; }

/// The words of a sample, of conversations without the padding behind them.
std::string words_of(const Run& run, std::int64_t i, const data::Sample& sample) {
  std::span<const std::int32_t> tokens = sample[data::Field::tokens];
  if (converses(run)) {
    std::int64_t count = 0;
    for (const data::Origin& origin : run.set->origins(i)) count += origin.count;
    tokens = tokens.first(static_cast<std::size_t>(count));
  }
  return run.opened->tokenizer->decode(tokens);
}

int sample(const Run& run) {
  for (const std::int64_t i : run.samples) {
    const data::Sample sample = run.set->get(i);
    if (run.command->json) {
      Json object = {{"index", i}};
      for (std::size_t f = 0; f < data::num_fields; ++f) {
        const auto field = static_cast<data::Field>(f);
        if (sample.has(field)) object[std::string(name(field))] = sample[field];
      }
      std::cout << object.dump() << '\n';
    } else if (run.opened->tokenizer) {
      std::cout << "sample " << i << '\n' << words_of(run, i, sample) << '\n';
    } else {
      std::cout << "sample " << i << '\n';
      for (const std::int32_t token : sample[data::Field::tokens]) std::cout << token << ' ';
      std::cout << '\n';
    }
  }
  return static_cast<int>(Exit::done);
}

std::string text_of(const Run& run, const data::Origin& origin) {
  if (!run.opened->tokenizer || run.command->config.data.mock) return {};
  std::vector<std::int32_t> ids(static_cast<std::size_t>(origin.count));
  data::open_source(origin.source)->read(origin.sequence, origin.from, ids);
  return run.opened->tokenizer->decode(ids);
}

/// What the loss counts of a conversation: its labels where the mask says so, runs of them.
std::vector<std::string> learned_of(const Run& run, const data::Sample& sample, const data::Origin& origin) {
  std::vector<std::string> texts;
  std::vector<std::int32_t> run_of_labels;
  const auto end = [&] {
    if (!run_of_labels.empty()) texts.push_back(run.opened->tokenizer->decode(run_of_labels));
    run_of_labels.clear();
  };
  const auto from = static_cast<std::size_t>(origin.from);
  for (std::size_t k = from; k < from + static_cast<std::size_t>(origin.count); ++k) {
    if (sample[data::Field::loss_mask][k] == 0)
      end();
    else
      run_of_labels.push_back(sample[data::Field::labels][k]);
  }
  end();
  return texts;
}

/// Which lines a sample's conversations stand on, their words, and which of these are learned.
void why_conversations(const Run& run, std::int64_t i) {
  const data::Sample sample = run.set->get(i);
  Json object = {{"index", i}, {"conversations", Json::array()}};
  if (!run.command->json) std::cout << "sample " << i << '\n';
  for (const data::Origin& origin : run.set->origins(i)) {
    const auto tokens =
        std::span(sample[data::Field::tokens]).subspan(std::size_t(origin.from), std::size_t(origin.count));
    const std::string words = run.opened->tokenizer->decode(tokens);
    const std::vector<std::string> learned = learned_of(run, sample, origin);
    object["conversations"].push_back({{"source", origin.source},
                                       {"line", origin.sequence},
                                       {"from", origin.from},
                                       {"count", origin.count},
                                       {"text", words},
                                       {"learned", learned}});
    if (run.command->json) continue;
    std::cout << text("  ", origin.source, ":", origin.sequence, ", tokens ", origin.from, " to ",
                      origin.from + origin.count, "\n    ", words, "\n");
    for (const std::string& part : learned) std::cout << "    learned: " << Json(part).dump() << '\n';
  }
  if (run.command->json) std::cout << object.dump() << '\n';
}

int why(const Run& run) {
  for (const std::int64_t i : run.samples) {
    if (converses(run)) {
      why_conversations(run, i);
      continue;
    }
    Json object = {{"index", i}, {"documents", Json::array()}};
    if (!run.command->json) std::cout << "sample " << i << '\n';
    for (const data::Origin& origin : run.set->origins(i)) {
      const std::string words = text_of(run, origin);
      if (run.command->json) {
        Json piece = {{"source", origin.source},
                      {"sequence", origin.sequence},
                      {"from", origin.from},
                      {"count", origin.count}};
        if (!words.empty()) piece["text"] = words;
        object["documents"].push_back(std::move(piece));
      } else {
        std::cout << text("  ", origin.source, " sequence ", origin.sequence, ", tokens ", origin.from,
                          " to ", origin.from + origin.count, "\n");
        if (!words.empty()) std::cout << "    " << words << '\n';
      }
    }
    if (run.command->json) std::cout << object.dump() << '\n';
  }
  return static_cast<int>(Exit::done);
}

/// Words are not hidden here, as in Megatron-DeepSpeed's analysis.
int difficulty(Args args) {
  SampleOptions asked = read_asked(args);
  if (asked.to.empty()) fail(Kind::usage, "data: difficulty needs --to: a folder for the index");
  const auto command = settings_of_run(asked);
  TrainConfig& config = command->config;
  if (config.data.chat.on)
    fail(Kind::usage, "data: difficulty: conversations are read in their own order: leave --sft out");
  const Samples samples = kind_of(config.model).samples(config.model);
  if (samples.decoder > 0)
    fail(Kind::usage, "data: difficulty: samples of a model of the family ", config.model.kind,
         " have two texts, and no metric of both is known: index those of gpt or bert");
  config.data.masking.probability = 0;
  const RunData opened = open_run_data(config, Epoch::one);
  const auto set = opened.sets[data::Split::train];
  if (!set) fail(Kind::usage, "data: this run opens no train data");
  const std::string metric = write_word(asked.metric);
  const auto values = data::difficulties({.set = *set,
                                          .sequence = samples.sequence,
                                          .words = config.model.padded_vocabulary + 1,
                                          .threads = std::max(1, config.run.threads)},
                                         asked.metric);
  data::write_difficulty_index(std::string(asked.to), metric, values);
  const auto [least, most] = std::ranges::minmax(values);
  std::cout << text(metric, " of ", values.size(), " samples, ", least, " to ", most, ": index in ", asked.to,
                    "/", metric, "\n");
  return static_cast<int>(Exit::done);
}

/// The files of --data-path in their order, whatever part of them is for training.
int pack(Args args) {
  SampleOptions asked = read_asked(args);
  if (asked.to.empty()) fail(Kind::usage, "data: pack needs --to: a file for the lines");
  if (asked.split != data::Split::train)
    fail(Kind::usage,
         "data: pack takes all lines of a file: leave --of out, and give the files of that split");
  const auto command = settings_of_run(asked);
  const TrainConfig& config = command->config;
  if (!config.data.chat.on) fail(Kind::usage, "data: pack puts conversations together: give --sft");
  if (!parts_conversations(config.model))
    fail(Kind::usage,
         "data: pack: layers that remember go from one conversation to the next, so each needs a line of its "
         "own");
  const auto blend = data::data_paths({.data_path = config.data.paths}).shared;
  if (!blend || !blend->weights.empty())
    fail(Kind::usage, "data: pack takes the files of --data-path one behind the other, without weights");
  Workers workers(std::max(0, config.run.threads - 1));
  const data::PackedConversations told = data::pack_conversations(
      blend->prefixes, conversation_rules(config.model, config.data), workers, std::string(asked.to));
  const double filled = double(told.tokens) / (double(told.lines) * double(config.model.sequence));
  std::cout << text(told.conversations, " conversations in ", told.lines, " lines, which ",
                    std::llround(100 * filled), "% fill samples of ", config.model.sequence, " tokens");
  if (told.too_long > 0) std::cout << "; " << told.too_long << " are longer than a sample";
  std::cout << '\n';
  return static_cast<int>(Exit::done);
}

int run_data(Args args) {
  constexpr std::string_view expected = "expected sample, why, pack or difficulty";
  if (args.empty()) fail(Kind::usage, "data: ", expected);
  if (args[0] == "pack") return pack(args.subspan(1));
  if (args[0] == "difficulty") return difficulty(args.subspan(1));
  if (args[0] != "sample" && args[0] != "why") fail(Kind::usage, "data: '", args[0], "': ", expected);
  const Run run(args.subspan(1));
  return args[0] == "sample" ? sample(run) : why(run);
}

VerbHelp about_data() {
  VerbHelp help{.usage =
                    "weft data sample|why [--step N | --index I --count N] [--of train|valid|test] [--json] "
                    "[the flags of weft train]; weft data pack --to FILE [the flags of weft train]; weft "
                    "data difficulty --to "
                    "FOLDER [--metric NAME] [the flags of weft train]",
                .examples = {},
                .topics = {}};
  help.examples = {
      {"weft data why --step 1200 --config run.yaml", "the documents and text that step 1200 sees"},
      {"weft data sample --index 0 --count 4 --json --config run.yaml", "the rows of the first four samples"},
      {"weft data pack --to packed.jsonl --sft --data-path talk.jsonl --config run.yaml",
       "lines of as many conversations as a sample holds"},
      {"weft data difficulty --metric vocab_rarity --to index --config run.yaml",
       "index/vocab_rarity, for a curriculum by how rare a sample's words are"}};
  help.topics = {
      {"This command",
       {{"--step", "N", "the samples of a step, 1 is the first"},
        {"--index", "I", "samples from this number on"},
        {"--count", "N", "how many"},
        {"--of", "train|valid|test", "which split"},
        {"--metric", "NAME", "what is difficult: seqlen, vocab_rarity or seqlen_vocab_rarity"},
        {"--to", "FOLDER|FILE", "for the files that DeepSpeed's data analyzer makes, or for packed lines"},
        {"--json", "", "a JSON object a line"}}}};
  return help;
}

}  // namespace

Verb data_verb() {
  return {"data", "shows the tokens that a step sees, and where they come from", run_data, about_data};
}

}  // namespace weft::cli
