// The tokenizer beside a model that is written: whose files it has, and what they are called there.
#include <iostream>
#include <nlohmann/json.hpp>

#include "weft/base/file.h"
#include "weft/cli/convert_job.h"
#include "weft/exchange/hub_write.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;

bool is_wordpiece(const TokenizerConfig& own) { return own.type.starts_with("BertWordPiece"); }
bool has_pieces(const TokenizerConfig& own) {
  return own.type.ends_with("SentencePieceTokenizer") || own.type == "Llama2Tokenizer";
}

/// What transformers and weft look for, whatever the file was called where it was trained with.
std::string usual_name(const NamedModel& source, const fs::path& file) {
  const TokenizerConfig& own = source.settings.data.tokenizer;
  if (file == own.merge_file) return "merges.txt";
  if (file == own.vocab_file) return is_wordpiece(own) ? "vocab.txt" : "vocab.json";
  if (own.type == "HuggingFaceTokenizer") return "tokenizer.json";
  if (has_pieces(own)) return source.settings.model.decoder_layers > 0 ? "spiece.model" : "tokenizer.model";
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

}  // namespace

std::vector<std::string> tokenizer_beside(const Conversion& job, const NamedModel& source,
                                          const fs::path& to) {
  if (!job.options.tokenizer.empty()) return exchange::copy_tokenizer(job.options.tokenizer, to);
  return job.source == Form::gguf ? write_tokenizer_of_gguf(job.from, to) : copy_own_tokenizer(source, to);
}

}  // namespace weft::cli
