#include "weft/train/run_data.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/data/conversation_format.h"
#include "weft/data/difficulty.h"
#include "weft/data/fim.h"
#include "weft/data/made_up.h"
#include "weft/data/tokenizer_identity.h"
#include "weft/model/kinds.h"
#include "weft/model/layer_parts.h"
#include "weft/text/open.h"

namespace weft {
namespace {

std::optional<std::string> unless_empty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

data::DataPathFlags path_flags(const DataConfig& c) {
  return {.data_path = c.paths,
          .data_args_path = unless_empty(c.paths_file),
          .split_paths = {c.train_paths, c.valid_paths, c.test_paths},
          .per_split_data_args_path = unless_empty(c.per_split_file),
          .mock = c.mock};
}

TokenizerOptions tokenizer_options(const TokenizerConfig& c, std::int64_t vocabulary) {
  TokenizerOptions options;
  options.tokenizer_type = c.type;
  options.vocab_file = c.vocab_file;
  options.merge_file = c.merge_file;
  options.tokenizer_model = c.model;
  options.tokenizer_special_tokens = c.special;
  options.vocab_extra_ids = c.extra_ids;
  options.legacy_tokenizer = c.legacy;
  if (vocabulary > 0) options.vocab_size = vocabulary;
  if (!c.pattern.empty()) options.tiktoken_pattern = c.pattern;
  options.tiktoken_num_special_tokens = c.num_special;
  options.tokenizer_hf_no_include_special_tokens = !c.wraps_text;
  options.tokenizer_sentencepiece_legacy = c.legacy_pieces;
  options.tokenizer_sentencepiece_ignore_extra_whitespaces = c.drops_spaces;
  options.null_tokenizer_eod_id = c.eod_id;
  options.null_tokenizer_pad_id = c.pad_id;
  return options;
}

std::string identity_of(const DataConfig& data, std::int64_t vocabulary) {
  const TokenizerConfig& c = data.tokenizer;
  if (!data.cache_tokenizer.empty()) return read_file(data.cache_tokenizer);
  data::TokenizerFlags flags;
  flags.type = c.type;
  flags.vocab_file = unless_empty(c.vocab_file);
  flags.merge_file = unless_empty(c.merge_file);
  flags.model = unless_empty(c.model);
  if (vocabulary > 0) flags.vocab_size = vocabulary;
  flags.special_tokens = c.special;
  flags.tiktoken_pattern = unless_empty(c.pattern);
  flags.tiktoken_num_special_tokens = c.num_special;
  flags.vocab_extra_ids = c.extra_ids;
  flags.include_special_tokens = c.wraps_text;
  flags.sentencepiece_legacy = c.legacy_pieces;
  flags.ignore_extra_whitespaces = c.drops_spaces;
  flags.null_eod = c.eod_id;
  flags.null_pad = c.pad_id;
  const std::string& version = data.cache_version;
  const bool old = c.legacy || (c.type.starts_with("BertWordPiece") && c.extra_ids > 0);
  const data::Upstream upstream = version.empty() ? data::newest_upstream : data::upstream_of(version);
  return data::tokenizer_identity(flags, old ? data::Upstream::core_0_14 : upstream);
}

/// Padding may not be one of these, as for Megatron: that it stands for unknown words, too, or begins texts,
/// is usual.
std::vector<std::int32_t> ends_of_text(const Tokenizer& tokenizer) {
  std::vector<std::int32_t> ids;
  for (const char* name : {"eod", "eos"})
    if (const auto id = tokenizer.special(name)) ids.push_back(*id);
  return ids;
}

/// A model that was trained elsewhere may know fewer than its tokenizer has, or more.
std::int64_t known_words(const Tokenizer* tokenizer, std::int64_t vocabulary) {
  if (tokenizer == nullptr) return vocabulary;
  return vocabulary > 0 ? std::min<std::int64_t>(tokenizer->size(), vocabulary) : tokenizer->size();
}

data::GptRows rows_of(const DataNeeds& config, const Tokenizer* tokenizer) {
  data::GptRows rows{.sequence_length = config.model.sequence};
  rows.vocabulary = known_words(tokenizer, config.model.vocabulary);
  rows.reset_positions = config.data.reset_positions;
  rows.reset_attention = config.data.reset_attention;
  rows.mask_eod_loss = config.data.mask_eod_loss;
  rows.between_documents = config.data.between_documents;
  const auto eod = tokenizer != nullptr ? tokenizer->special("eod")
                                        : std::optional(static_cast<std::int32_t>(rows.vocabulary - 1));
  if (!eod && (rows.reset_positions || rows.reset_attention || rows.mask_eod_loss)) {
    fail(Kind::usage,
         "data: {data.reset_positions}, {data.reset_attention} and {data.mask_eod_loss} need an "
         "end-of-document "
         "token, which the tokenizer has not");
  }
  rows.eod = eod.value_or(-1);
  if (tokenizer != nullptr)
    rows.pad =
        data::effective_pad(tokenizer->special("pad"), ends_of_text(*tokenizer), config.data.ambiguous_pad);
  return rows;
}

std::int32_t token_of(const Tokenizer& tokenizer, const std::string& text, const char* flag) {
  const auto id = tokenizer.special(text);
  if (!id)
    fail(Kind::usage, flag, ": the tokenizer has no token ", text, "; {data.tokenizer.special} adds some");
  return *id;
}

data::FimRules fim_rules(const DataNeeds& config, const Tokenizer& tokenizer) {
  const FimConfig& c = config.data.fim;
  data::FimRules rules{.rate = c.rate,
                       .suffix_first_rate = c.suffix_first_rate,
                       .fragment_rate = c.fragment_rate.value_or(0),
                       .split = {},
                       .spared = c.spared,
                       .prefix = token_of(tokenizer, c.prefix, "{data.fim.prefix}"),
                       .middle = token_of(tokenizer, c.middle, "{data.fim.middle}"),
                       .suffix = token_of(tokenizer, c.suffix, "{data.fim.suffix}"),
                       .pad = token_of(tokenizer, c.pad, "{data.fim.pad}"),
                       .eod = token_of(tokenizer, c.eod, "{data.fim.eod}"),
                       .seed = std::uint64_t(config.seed)};
  if (!c.split.empty()) rules.split = token_of(tokenizer, c.split, "{data.fim.split}");
  return rules;
}

void cut_in_the_middle(const DataNeeds& config, RunData& run) {
  const data::FimRules rules = fim_rules(config, *run.tokenizer);
  const data::GptRows rows = rows_of(config, run.tokenizer.get());
  for (auto& split : run.sets.of)
    for (auto& set : split) set = data::filled_in_the_middle(set, run.tokenizer, rules, rows);
}

/// By a format's own rule answers are learned, and with the tokenizer's usual template everything.
data::Learning learning_of(LearnedWords learned, bool usual_template) {
  switch (learned) {
    case LearnedWords::answers:
      return data::Learning::answers;
    case LearnedWords::last:
      return data::Learning::last_answer;
    case LearnedWords::all:
      return data::Learning::everything;
    case LearnedWords::by_format:
      break;
  }
  return usual_template ? data::Learning::everything : data::Learning::answers;
}

void check_names(const DataConfig& config, const data::Datasets& sets) {
  const std::size_t names = config.validation_names.size();
  const std::size_t found = sets.of[std::size_t(data::Split::valid)].size();
  if (names > 0 && found > 0 && names != found)
    fail(Kind::usage, "{data.validation_names} gives ", names, " names for ", found, " validation sets");
}

/// What the data room is asked for, whichever family reads it; of a completed configuration.
data::DataRequest data_request(const DataNeeds& config, std::int64_t vocabulary) {
  const RunLength& length = config.length;
  const EvalCounts eval = eval_counts(config.eval, length.steps);
  data::DataRequest request;
  request.paths = data::data_paths(path_flags(config.data));
  request.split = unless_empty(config.data.split);
  const std::int64_t read = length.batches.consumed_after(length.steps);
  request.sizes = {std::max(read, config.asked), eval.valid, eval.test};
  if (config.eval.skip_train) request.sizes[0] = 0;
  if (config.eval.whole_set) request.sizes[1].reset();
  if (config.one_epoch && !config.eval.skip_train) request.sizes[0].reset();
  if (config.one_epoch && config.data.exact_epochs > 1)
    fail(Kind::usage, "{data.exact_epochs} ", config.data.exact_epochs,
         ": an index of difficulty is of one epoch: leave it out");
  request.exact_epochs = config.one_epoch ? 0 : config.data.exact_epochs;
  // One epoch, shuffled again and again, is enough for any run.
  if (config.data.exact_epochs == 1 && config.data.order == SampleOrder::cyclic && !config.eval.skip_train)
    request.sizes[0].reset();
  request.seed = static_cast<std::uint32_t>(config.seed);
  if (config.data.partial_validation) request.last_valid = data::LastSample::kept;
  if (config.data.separate_validation) request.validation = data::ValidationSets::separate;
  request.order = config.data.index == IndexKind::keyed ? data::DataOrder::keyed : data::DataOrder::megatron;
  request.cache_path = unless_empty(config.data.cache);
  request.tokenizer = identity_of(config.data, config.model.vocabulary);
  request.mock_vocabulary = static_cast<std::int32_t>(vocabulary);
  return request;
}

/// Sentences with hidden words: of a bare vocabulary where nothing names a tokenizer.
data::Datasets open_masked(const DataNeeds& config, const Samples& samples, const Tokenizer* tokenizer,
                           const data::DataRequest& request) {
  const bool words = samples.of == Samples::Of::hidden_words;
  const data::MaskedModel model = words ? data::MaskedModel::bert : data::MaskedModel::t5;
  if (tokenizer == nullptr && !config.data.mock)
    fail(Kind::usage,
         "data: sentences with hidden words need a tokenizer's [MASK]: give {data.tokenizer.type}");
  data::MaskedRules rules{.model = model,
                          .sequence_length = samples.sequence,
                          .decoder_length = samples.decoder,
                          .sentence_order = samples.sentence_order,
                          .short_probability = config.data.masking.short_probability,
                          .seed = static_cast<std::uint32_t>(config.seed),
                          .masking = data::usual_masking(model)};
  rules.masking.probability = config.data.masking.probability;
  if (tokenizer != nullptr) {
    data::MaskedVocabulary known = data::masked_vocabulary(*tokenizer, model);
    known.size = static_cast<std::int32_t>(known_words(tokenizer, config.model.vocabulary));
    return data::open_masked_datasets(request, rules, known);
  }
  const std::int64_t sentinels =
      std::max<std::int64_t>(100, data::most_spans(rules.max_length(), rules.masking));
  return data::open_masked_datasets(request, rules,
                                    data::bare_vocabulary(config.model.vocabulary, sentinels));
}

}  // namespace

std::shared_ptr<const Tokenizer> run_tokenizer(const TokenizerConfig& config, std::int64_t vocabulary) {
  if (config.type.empty()) return nullptr;
  return open_tokenizer(tokenizer_options(config, vocabulary));
}

std::vector<std::string> unread_tokenizer_settings(const TokenizerConfig& config, std::int64_t vocabulary) {
  if (config.type.empty()) return {};
  return unread_options(tokenizer_options(config, vocabulary));
}

bool parts_conversations(const ModelConfig& model) {
  return !model.delta.on && parts_in_all(model, LayerPart::state) == 0;
}

data::ConversationRules conversation_rules(const ModelConfig& model, const DataConfig& data) {
  const ChatConfig& c = data.chat;
  TokenizerConfig bare = data.tokenizer;
  bare.wraps_text = false;
  const auto tokenizer = run_tokenizer(bare, model.vocabulary);
  data::ConversationFormat format = data::conversation_format(c.format, bare.model, *tokenizer);
  const bool usual = c.format == "default";
  const data::Learning what = learning_of(c.learned, usual);
  // Megatron's own rules never learn a padding token that ends answers, too.
  const bool ours = usual && what != data::Learning::everything;
  // A tokenizer may have one that the model was made without. Nobody sees or learns what stands there.
  const bool known = model.vocabulary == 0 || format.pad < model.vocabulary;
  return {.sequence_length = model.sequence,
          .vocabulary = model.vocabulary,
          .pad = known ? format.pad : 0,
          .pad_is_learned = ours || !known,
          .begins_are_learned = c.learned == LearnedWords::by_format,
          .apart = parts_conversations(model),
          .transcribe = data::transcriber(tokenizer, std::move(format), what)};
}

RunData open_run_data(const DataNeeds& config) {
  RunData run{.tokenizer = run_tokenizer(config.data.tokenizer, config.model.vocabulary),
              .sets = {},
              .length = config.length};
  const Samples samples = kind_of(config.model).samples(config.model);
  const Tokenizer* const tokenizer = run.tokenizer.get();
  const data::DataRequest request = data_request(config, known_words(tokenizer, config.model.vocabulary));
  if (config.data.chat.on) {
    run.sets = data::open_conversation_datasets(request, conversation_rules(config.model, config.data));
  } else if (samples.of == Samples::Of::documents) {
    run.sets = data::open_gpt_datasets(request, rows_of(config, tokenizer));
  } else {
    run.sets = open_masked(config, samples, tokenizer, request);
  }
  check_names(config.data, run.sets);
  if (config.data.fim.on) cut_in_the_middle(config, run);
  return run;
}

std::unique_ptr<data::Sampler> run_sampler(const DataConfig& config, std::int64_t total) {
  return config.order == SampleOrder::cyclic
             ? data::cyclic_sampler(total, config.sharded_cycles ? data::Sharding::on : data::Sharding::off)
             : data::sequential_sampler(total);
}

std::unique_ptr<data::Sampler> training_sampler(const DataConfig& config, std::int64_t total) {
  if (!config.difficulty.on()) return run_sampler(config, total);
  data::DifficultyRule rule{.metrics = {}, .seed = std::uint32_t(config.difficulty.seed)};
  for (const std::string& word : config.difficulty.metrics) rule.metrics.push_back(data::read_metric(word));
  return data::difficulty_sampler(rule, total);
}

data::Owners owners_of(const ModelConfig& model) {
  return sums_of(model).tree_of_sequences() ? data::Owners::contiguous : data::Owners::megatron;
}

std::vector<std::int64_t> samples_of_step(const BatchSchedule& batches, const data::Sampler& sampler,
                                          const data::SampleTurn& turn, std::int64_t step) {
  if (step < 1) fail(Kind::usage, "data: step ", step, ", the first one is 1");
  const std::int64_t consumed = batches.consumed_after(step - 1);
  data::SampleTurn each = turn;
  each.global_batch = int(batches.at(consumed));
  std::vector<std::int64_t> all;
  for (each.rank = 0; each.rank < each.ranks; ++each.rank) {
    const auto mine = sampler.at(consumed, each);
    all.insert(all.end(), mine.begin(), mine.end());
  }
  return all;
}

}  // namespace weft
