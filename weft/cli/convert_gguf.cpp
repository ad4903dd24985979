// To one file, which llama.cpp and what is built on it read.
#include <algorithm>
#include <iostream>
#include <set>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/cli/convert_job.h"
#include "weft/exchange/gguf/model.h"
#include "weft/exchange/gguf/vocabulary.h"
#include "weft/exchange/gguf/write.h"
#include "weft/model/kinds.h"
#include "weft/train/resume_theirs.h"
#include "weft/train/run_data.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;
using exchange::Recipe;
using exchange::gguf::NumberType;

void must_be_no_file(const fs::path& to) {
  std::error_code error;
  if (fs::exists(to, error))
    fail(Kind::usage, to.string(), ": is there already; name a file that is not, which ends in .gguf");
}

/// What the model is called: its directory's name.
std::string name_of(const fs::path& from) {
  const fs::path whole = fs::absolute(from).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).stem().string();
}

/// A model's numbers as those of a file of q8_0 are: each row of ours is one of the file's, so blocks are the
/// same. Holds the last tensor that was asked for.
class RoundedWeights final : public exchange::TheirWeights {
 public:
  explicit RoundedWeights(const NamedModel& source)
      : TheirWeights(source.path.string(), recipes_of(source.settings.model)),
        read_(reading_of(source).read),
        kept_(exchange::gguf::kept_in_f32(source.settings.model)) {}

 private:
  static std::vector<Recipe> recipes_of(const ModelConfig& model) {
    std::vector<Recipe> out;
    const ParameterList list = kind_of(model).parameters(model);
    for (const WholeParameter& ours : list.all()) {
      Recipe one{.name = ours.name,
                 .shape = ours.shape,
                 .parts = {{.name = ours.name, .shape = ours.shape}},
                 .runs = {}};
      one.runs = {{0, 0, 0, ours.shape.elements() / one.columns()}};
      out.push_back(std::move(one));
    }
    return out;
  }
  Dtype dtype_of_part(const exchange::Theirs&) const override { return Dtype::f32; }
  void read_row(const exchange::Theirs& theirs, std::int64_t row, std::int64_t column,
                std::span<float> to) const override {
    const Recipe& recipe = at(theirs.name);
    if (held_ != theirs.name) hold(recipe);
    std::copy_n(values_.begin() + row * recipe.columns() + column, to.size(), to.begin());
  }
  void hold(const Recipe& recipe) const {
    values_ = read_(recipe);
    held_ = recipe.name;
    if (kept_.contains(recipe.name)) return;
    const bool fits = recipe.columns() % exchange::gguf::unit_of(NumberType::q8_0) == 0;
    const NumberType type = fits ? NumberType::q8_0 : NumberType::f16;
    decode(type, encode(type, values_, recipe.name), 0, values_);
  }

  exchange::ReadWeight read_;
  std::set<std::string, std::less<>> kept_;
  mutable std::string held_;
  mutable std::vector<float> values_;
};

/// Of the model's own tokenizer, wherever its files lie.
exchange::gguf::TokenizerFiles files_of(const NamedModel& source) {
  const TokenizerConfig& own = source.settings.data.tokenizer;
  if (!own.model.empty() && fs::path(own.model).filename() == "tokenizer.json")
    return exchange::gguf::tokenizer_files(fs::path(own.model).parent_path());
  if (!own.model.empty()) return exchange::gguf::tokenizer_files(own.model);
  exchange::gguf::TokenizerFiles out;
  out.vocab = own.vocab_file;
  out.merges = own.merge_file;
  out.beside = out.vocab.parent_path();
  return out;
}

/// A file that names no ends of texts has llama.cpp's: an ordinary word of a byte-level vocabulary. So what
/// the tokenizer itself takes for one is named, though no key beside it says so.
void name_ends(const Conversion& job, const NamedModel& source, exchange::gguf::Vocabulary& vocabulary) {
  const std::string& given = job.options.tokenizer;
  const auto tokenizer = run_tokenizer(given.empty() ? source.settings.data.tokenizer : tokenizer_in(given),
                                       source.settings.model.vocabulary);
  if (!vocabulary.end && tokenizer) vocabulary.end = tokenizer->special("eos");
  if (!vocabulary.begin && tokenizer) vocabulary.begin = tokenizer->special("bos");
  if (!vocabulary.end)
    std::cerr << "the tokenizer names no token that ends a text: llama.cpp will take token "
              << (vocabulary.model == "llama" ? 2 : 11) << " for one\n";
}

/// Keys of a tokenizer; llama.cpp is given ids alone where there is none.
exchange::gguf::Values vocabulary_for(const Conversion& job, const NamedModel& source, Result& out) {
  const bool given = !job.options.tokenizer.empty();
  const exchange::gguf::TokenizerFiles files =
      given ? exchange::gguf::tokenizer_files(job.options.tokenizer) : files_of(source);
  if (!given && files.json.empty() && files.sentencepiece.empty() && files.vocab.empty()) {
    std::cerr
        << "no tokenizer is known for the model: llama.cpp will read ids, and no texts; --tokenizer names "
           "one\n";
    exchange::gguf::Values none;
    (void)none.add("tokenizer.ggml.model", exchange::gguf::text_of("none"));
    return none;
  }
  const auto& ends = source.generation.ends;
  exchange::gguf::Vocabulary vocabulary =
      exchange::gguf::vocabulary_of(files, source.settings.model.vocabulary,
                                    ends.empty() ? std::nullopt : std::optional<std::int64_t>(ends.front()));
  name_ends(job, source, vocabulary);
  for (const std::string& notice : vocabulary.notices) std::cerr << notice << '\n';
  out.tokenizer = {vocabulary.model + ", " + vocabulary.pre};
  return exchange::gguf::keys_of(vocabulary);
}

}  // namespace

NamedModel rounded_to_blocks(const NamedModel& source) {
  NamedModel out = source;
  out.theirs = exchange::TheirModel{
      .model = source.settings.model, .says = "", .tokenizer = {}, .notices = {}, .open = [source] {
        return std::make_unique<RoundedWeights>(source);
      }};
  return out;
}

std::vector<std::string> write_tokenizer_of_gguf(const fs::path& file, const fs::path& directory) {
  const exchange::gguf::ModelFile opened(file);
  const exchange::gguf::TokenizerMade made =
      exchange::gguf::tokenizer_of(opened.header().values, opened.who());
  if (!made.why_not.empty()) std::cerr << made.why_not << '\n';
  if (made.json.empty()) return {};
  make_directories(directory);
  write_atomically(directory / "tokenizer.json", std::string_view(made.json));
  write_atomically(directory / "tokenizer_config.json", std::string_view(made.config));
  return {"tokenizer.json", "tokenizer_config.json"};
}

Result to_gguf(const Conversion& job, const NamedModel& source) {
  must_be_no_file(job.to);
  const Reading reading = reading_of(source);
  Result out = result_for(job, source, reading);
  out.in_blocks = job.options.dtype == Store::q8_0;
  if (out.in_blocks) out.dtype = Dtype::f32;  // as it is read
  const exchange::gguf::FileForm form{
      .type = out.in_blocks ? NumberType::q8_0 : exchange::gguf::number_type_of(out.dtype),
      .name = name_of(job.from),
      .vocabulary = vocabulary_for(job, source, out)};
  out.written = exchange::gguf::write_model(job.to, source.settings.model, reading.read, form);
  return out;
}

}  // namespace weft::cli
