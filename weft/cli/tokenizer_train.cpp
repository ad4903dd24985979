// weft tokenizer train: reads a corpus with many threads, learns merges, writes three files.
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <iostream>
#include <thread>

#include "weft/base/clock.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/flags.h"
#include "weft/base/format.h"
#include "weft/cli/tokenizer_lines.h"
#include "weft/text/train.h"

namespace weft::cli {
namespace {

struct TrainFlags {
  std::int64_t vocab_size = 32000, min_frequency = 2;
  std::string output, pattern = "gpt2", json_key = "text";
  std::vector<std::string> special_tokens{"<|endoftext|>"};
  int workers = 0;
  bool jsonl = false;
};

template <class Visitor>
void describe(Visitor& v, TrainFlags& o) {
  v("vocab_size", o.vocab_size, "tokens, special ones included");
  v("output", o.output, "the directory for vocab.json, merges.txt and tokenizer.json");
  v("pattern", o.pattern, "gpt2, cl100k, o200k, v1, v2 or a regular expression");
  v("min_frequency", o.min_frequency, "a pair seen less often is not merged");
  v("special_tokens", o.special_tokens, "the last ids");
  v("jsonl", o.jsonl, "every file holds lines of JSON, whatever its name (.jsonl files always do)");
  v("json_key", o.json_key, "the key that holds the text");
  v("workers", o.workers, "threads; 0: one a core");
}

// tiktoken's own spelling of cl100k means something else to Oniguruma, which reads tokenizer.json.
constexpr std::string_view cl100k_for_json =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::string_view pattern_named(std::string_view name) {
  if (name == "gpt2" || name == "r50k") return gpt2_pattern();
  if (name == "cl100k") return cl100k_for_json;
  if (name == "o200k") return o200k_pattern();
  if (name == "v1") return megatron_v1_pattern();
  return name == "v2" ? megatron_v2_pattern() : name;
}

// Mapped files in parts: whole lines where they are JSON, else stretches of text that no pattern joins.
class Corpus {
 public:
  Corpus(const std::vector<std::string>& names, const TrainFlags& flags) : key_(flags.json_key) {
    for (const std::string& name : names) {
      const auto extension = std::filesystem::path(name).extension();
      if (extension == ".gz" || extension == ".zst") {
        fail(Kind::usage, "tokenizer train: ", name, " is compressed; unpack it first");
      }
      const MappedFile& file = files_.emplace_back(name);
      const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
      const bool lines = flags.jsonl || extension == ".jsonl";
      for (const Span& part : lines ? line_parts(text) : parts_of(text, part_size)) {
        parts_.push_back({text.substr(part.begin, part.end - part.begin), lines, {name, line_ + 1}});
        if (lines) line_ += std::count(parts_.back().text.begin(), parts_.back().text.end(), '\n');
      }
      line_ = 0;
      bytes_ += file.size();
    }
  }
  [[nodiscard]] std::int64_t parts() const { return static_cast<std::int64_t>(parts_.size()); }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

  void texts(std::int64_t index, const std::function<void(std::string_view)>& each) const {
    const Part& part = parts_[static_cast<std::size_t>(index)];
    if (!part.lines) return each(part.text);
    LinePlace place = part.first;
    for (std::string_view line : split(part.text, '\n')) {
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.empty()) each(text_in(line, key_, place));
      ++place.line;
    }
  }

 private:
  static constexpr std::size_t part_size = 1 << 20;
  struct Part {
    std::string_view text;
    bool lines = false;
    LinePlace first;
  };
  static std::vector<Span> line_parts(std::string_view text) {
    std::vector<Span> parts;
    for (std::size_t begin = 0; begin < text.size();) {
      const auto end = text.find('\n', std::min(begin + part_size, text.size()) - 1);
      parts.push_back({begin, end == std::string_view::npos ? text.size() : end + 1});
      begin = parts.back().end;
    }
    return parts;
  }

  std::deque<MappedFile> files_;
  std::vector<Part> parts_;
  std::string key_;
  std::int64_t line_ = 0, bytes_ = 0;
};

void write(const std::string& directory, const TrainedBpe& bpe) {
  const std::filesystem::path to(directory);
  make_directories(to);
  write_atomically(to / "vocab.json", vocab_json(bpe));
  write_atomically(to / "merges.txt", merges_txt(bpe));
  write_atomically(to / "tokenizer.json", tokenizer_json(bpe));
}

}  // namespace

int train_tokenizer(Args args) {
  TrainFlags flags;
  Fields fields(flags);
  const std::vector<std::string> files = read_flags(fields, args);
  if (files.empty()) fail(Kind::usage, "tokenizer train: expected files of text or JSON lines to learn from");
  if (flags.output.empty()) fail(Kind::usage, "tokenizer train: expected --output DIRECTORY");
  const int threads =
      flags.workers > 0 ? flags.workers : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const std::string_view pattern = pattern_named(flags.pattern);
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  const Stopwatch watch;

  const Corpus corpus(files, flags);
  const auto texts = [&](std::int64_t part, const auto& each) { corpus.texts(part, each); };
  const WordCounts words = count_words(corpus.parts(), texts, pattern, threads);
  const double counted = watch.seconds();
  std::cerr << text("counted ", human_count(static_cast<double>(words.size())), " different words in ",
                    human_bytes(corpus.bytes()), ", ", human_duration(counted), "\n");
  const auto told = [&](std::int64_t tokens) {
    if (terminal) std::cerr << "\r" << tokens << " of " << flags.vocab_size << " tokens " << std::flush;
  };
  const TrainedBpe bpe = train_bpe(
      words, pattern,
      {.vocabulary = flags.vocab_size, .min_frequency = flags.min_frequency, .special = flags.special_tokens},
      told);
  write(flags.output, bpe);
  std::cerr << text(terminal ? "\r" : "", "learned ", bpe.merges.size(), " merges, ", bpe.tokens.size(),
                    " tokens, ", human_duration(watch.seconds() - counted), "; wrote ", flags.output,
                    "/vocab.json, merges.txt and tokenizer.json\n");
  if (static_cast<std::int64_t>(bpe.tokens.size()) < flags.vocab_size) {
    std::cerr << text("the corpus gave ", bpe.tokens.size(), " of ", flags.vocab_size,
                      " tokens: no further pair occurs ", flags.min_frequency, " times\n");
  }
  return static_cast<int>(Exit::done);
}

Topic train_topic() {
  TrainFlags flags;
  const Fields fields(flags);
  Topic out{"train", {}};
  for (const auto& field : fields.all()) {
    out.options.push_back({flag_of(*field), value_name(*field), help_with_default(*field)});
  }
  return out;
}

}  // namespace weft::cli
