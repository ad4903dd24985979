// Joins the exchange room to what a run has built and to how its settings are read.
#include "weft/train/resume_theirs.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "weft/exchange/their_model.h"
#include "weft/train/resume_weights.h"
#include "weft/train/save_facts.h"

namespace weft {

namespace fs = std::filesystem;

namespace {

/// What transformers' settings of a vocabulary say of capitals; usually they are not kept.
bool keeps_case(const fs::path& directory) {
  std::ifstream in(directory / "tokenizer_config.json");
  const auto settings = nlohmann::json::parse(in, nullptr, false);
  const auto at = settings.is_object() ? settings.find("do_lower_case") : settings.end();
  return at != settings.end() && *at == false;
}

}  // namespace

std::vector<std::string> load_their_weights(const fs::path& directory, const ModelConfig& model,
                                            Weights& weights, Communicator& world) {
  const auto mine = named_weights(weights);
  auto notices = exchange::load_their_model(directory, model, mine, world);
  weights.publish();
  return notices;
}

std::string settings_of_theirs(const fs::path& directory, bool tokenizer_too) {
  RunFacts facts;
  const exchange::TheirModel theirs = exchange::read_theirs(directory);
  facts.configuration.model = theirs.model;
  facts.configuration.data.tokenizer = tokenizer_in(theirs.tokenizer);
  const bool tokenizer = tokenizer_too && !facts.configuration.data.tokenizer.type.empty();
  auto settings = nlohmann::ordered_json::parse(settings_to_take(facts, tokenizer));
  const bool has_run = theirs.program == exchange::Program::megatron;
  for (const char* own : {"decoder_sequence", "init", "vocabulary_unit"}) settings["model"].erase(own);
  if (!has_run) settings["model"].erase("sequence");
  // Where positions are distances, texts may be longer than the model has ever seen.
  const Positions positions = facts.configuration.model.positions;
  if (positions == Positions::relative || positions == Positions::alibi)
    settings["model"].erase("max_positions");
  return settings.dump();
}

TokenizerConfig tokenizer_in(const fs::path& directory) {
  std::error_code error;
  const auto has = [&](const char* name) { return fs::is_regular_file(directory / name, error); };
  TokenizerConfig out;
  if (has("tokenizer.json")) {
    out.type = "HuggingFaceTokenizer";
    out.model = (directory / "tokenizer.json").string();
  } else if (has("tokenizer.model") || has("spiece.model")) {
    out.type = "SentencePieceTokenizer";
    out.model = (directory / (has("tokenizer.model") ? "tokenizer.model" : "spiece.model")).string();
  } else if (has("vocab.json") && has("merges.txt")) {
    out.type = "GPT2BPETokenizer";
    out.vocab_file = (directory / "vocab.json").string();
    out.merge_file = (directory / "merges.txt").string();
  } else if (has("vocab.txt")) {
    out.type = keeps_case(directory) ? "BertWordPieceCase" : "BertWordPieceLowerCase";
    out.vocab_file = (directory / "vocab.txt").string();
  }
  return out;
}

}  // namespace weft
