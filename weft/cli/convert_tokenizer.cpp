// The tokenizer beside a model that is written: whose files it has, and what they are called there.
#include <iostream>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/cli/convert_job.h"
#include "weft/exchange/hub_write.h"
#include "weft/train/resume_theirs.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;

bool is_wordpiece(const TokenizerConfig& own) { return own.type.starts_with("BertWordPiece"); }
bool has_pieces(const TokenizerConfig& own) {
  return own.type.ends_with("SentencePieceTokenizer") || own.type == "Llama2Tokenizer";
}

std::string name_of_pieces(const ModelConfig& model) {
  return model.decoder_layers > 0 ? "spiece.model" : "tokenizer.model";
}

/// What transformers and weft look for, whatever the file was called where it was trained with.
std::string usual_name(const NamedModel& source, const fs::path& file) {
  const TokenizerConfig& own = source.settings.data.tokenizer;
  if (file == own.merge_file) return "merges.txt";
  if (file == own.vocab_file) return is_wordpiece(own) ? "vocab.txt" : "vocab.json";
  if (own.type == "HuggingFaceTokenizer") return "tokenizer.json";
  if (has_pieces(own)) return name_of_pieces(source.settings.model);
  return file.filename().string();
}

std::string copy_as(const fs::path& file, const fs::path& directory, std::string name) {
  make_directories(directory);
  write_atomically(directory / name, std::string_view(read_file(file)));
  return name;
}

/// transformers takes words for small ones unless it is told.
std::string tell_of_case(const fs::path& directory) {
  const nlohmann::ordered_json settings{{"tokenizer_class", "BertTokenizer"}, {"do_lower_case", false}};
  write_atomically(directory / "tokenizer_config.json", std::string_view(settings.dump(2) + "\n"));
  return "tokenizer_config.json";
}

// The files of the checkpoint's tokenizer: one by one, as its settings name them.
std::vector<std::string> copy_own_tokenizer(const NamedModel& source, const fs::path& to) {
  const TokenizerConfig& own = source.settings.data.tokenizer;
  std::vector<std::string> names;
  for (const fs::path file : {own.model, own.vocab_file, own.merge_file}) {
    std::error_code error;
    if (file.empty()) continue;
    if (!fs::exists(file, error)) {
      std::cerr << file.string()
                << ": the checkpoint's tokenizer is not there any more; copy its files, or name them "
                   "with --tokenizer\n";
      continue;
    }
    // What lies beside a tokenizer.json belongs to it.
    const bool json = file.filename() == "tokenizer.json";
    if (json || fs::is_directory(file, error)) {
      const std::vector<std::string> copied = exchange::copy_tokenizer(json ? file.parent_path() : file, to);
      names.insert(names.end(), copied.begin(), copied.end());
    } else {
      names.push_back(copy_as(file, to, usual_name(source, file)));
      if (own.type == "BertWordPieceCase") names.push_back(tell_of_case(to));
    }
  }
  return names;
}

/// Of a file that somebody names alone.
std::string name_of_kind(const fs::path& file, const ModelConfig& model) {
  const fs::path kind = file.extension();
  if (kind == ".json") return file.filename().string();  // of whichever kind
  if (kind == ".model") return name_of_pieces(model);
  if (kind == ".txt") return "vocab.txt";
  fail(Kind::usage, "checkpoint convert: --tokenizer ", file.string(),
       ": expected a directory, a tokenizer.json, a SentencePiece model that ends in .model, or words of "
       "WordPiece that end in .txt");
}

}  // namespace

std::vector<std::string> copy_given_tokenizer(const Conversion& job, const ModelConfig& model,
                                              const fs::path& to) {
  const fs::path from = job.options.tokenizer;
  std::error_code error;
  if (!fs::is_directory(from, error)) return {copy_as(from, to, name_of_kind(from, model))};
  if (tokenizer_in(from).type.empty())
    fail(Kind::usage, "checkpoint convert: --tokenizer ", from.string(),
         ": holds none of tokenizer.json, tokenizer.model, spiece.model, vocab.txt, and vocab.json with "
         "merges.txt");
  return exchange::copy_tokenizer(from, to);
}

std::vector<std::string> tokenizer_beside(const Conversion& job, const NamedModel& source,
                                          const fs::path& to) {
  if (!job.options.tokenizer.empty()) return copy_given_tokenizer(job, source.settings.model, to);
  return job.source == Form::gguf ? write_tokenizer_of_gguf(job.from, to) : copy_own_tokenizer(source, to);
}

}  // namespace weft::cli
