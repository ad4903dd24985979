// weft tokenizer train: reads a corpus with many threads, learns merges, writes three files.
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <future>
#include <iostream>
#include <span>
#include <thread>
#include <utility>

#include "weft/base/clock.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/flags.h"
#include "weft/base/format.h"
#include "weft/cli/tokenizer_lines.h"
#include "weft/data/byte_stream.h"
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
  v("vocab_size", o.vocab_size, "tokens, special ones included", legal::at_least(1));
  v("output", o.output, "the directory for vocab.json, merges.txt and tokenizer.json");
  v("pattern", o.pattern, "gpt2, cl100k, o200k, v1, v2 or a regular expression");
  v("min_frequency", o.min_frequency, "a pair seen less often is not merged", legal::count);
  v("special_tokens", o.special_tokens, "the last ids");
  v("jsonl", o.jsonl, "every file holds lines of JSON, whatever its name (.jsonl files always do)");
  v("json_key", o.json_key, "the key that holds the text");
  v("workers", o.workers, "threads (0: one a core)", legal::from_to(0, 1024));
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

constexpr std::size_t part_size = 1 << 20;

// A stretch of a file: whole lines of JSON, or text that no pattern joins to what is beside it.
struct FilePart {
  std::string_view text;
  bool lines = false;
  LinePlace first;
};

std::vector<ByteRange> line_parts(std::string_view text) {
  std::vector<ByteRange> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = text.find('\n', std::min(begin + part_size, text.size()) - 1);
    parts.push_back({begin, end == std::string_view::npos ? text.size() : end + 1});
    begin = parts.back().end;
  }
  return parts;
}

// The parts of a text; `first` is the place of its first line, and then of the one behind it.
std::vector<FilePart> cut(std::string_view text, bool lines, LinePlace& first) {
  std::vector<FilePart> parts;
  for (const ByteRange& part : lines ? line_parts(text) : parts_of(text, part_size)) {
    parts.push_back({text.substr(part.begin, part.end - part.begin), lines, first});
    if (lines) first.line += std::count(parts.back().text.begin(), parts.back().text.end(), '\n');
  }
  return parts;
}

// A packed file, unpacked a batch of parts at a time, so that memory does not grow with the file.
class Unpacking {
 public:
  Unpacking(const std::string& name, bool lines)
      : stream_(data::open_stream(name)), lines_(lines), place_{name, 1} {}

  struct Batch {
    std::unique_ptr<std::string> text;  // what the parts point into
    std::vector<FilePart> parts;
  };
  /// No parts at the end of the file.
  Batch next() {
    Batch batch{std::make_unique<std::string>(std::exchange(rest_, {})), {}};
    std::string& text = *batch.text;
    while (!at_end_) {
      read_more(text);
      const std::size_t end = at_end_ ? 0 : last_cut(text);
      if (end == 0) continue;
      rest_ = text.substr(end);
      text.resize(end);
      break;
    }
    batch.parts = cut(text, lines_, place_);
    return batch;
  }

 private:
  void read_more(std::string& text) {
    const std::size_t before = text.size();
    text.resize(before + batch_bytes_);
    const std::size_t count = stream_->read(std::as_writable_bytes(std::span(text).subspan(before)));
    text.resize(before + count);
    at_end_ = count < batch_bytes_;
    batch_bytes_ = std::min(2 * batch_bytes_, std::size_t{32} << 20);
  }
  // Where the last part begins, 0 if there is but one: what is behind may still belong to it.
  std::size_t last_cut(std::string_view text) const {
    if (lines_) return text.rfind('\n') + 1;
    const auto parts = parts_of(text, part_size);
    return parts.empty() ? 0 : parts.back().begin;
  }

  std::unique_ptr<data::ByteStream> stream_;
  bool lines_;
  LinePlace place_;
  std::size_t batch_bytes_ = std::size_t{4} << 20;  // grows, so that a small file needs little
  std::string rest_;
  bool at_end_ = false;
};

// Counts the words of files: mapped ones all together, packed ones a batch at a time, the next one read
// meanwhile.
class Counting {
 public:
  Counting(const TrainFlags& flags, std::string_view pattern, int threads)
      : flags_(flags), pattern_(pattern), threads_(threads) {}

  WordCounts count(const std::vector<std::string>& names) {
    std::deque<MappedFile> files;
    std::vector<FilePart> parts;
    WordCounts words;
    for (const std::string& name : names) {
      const bool lines = flags_.jsonl || named_jsonl(name);
      if (data::is_packed(name)) {
        count_packed(name, lines, words);
        continue;
      }
      const auto bytes = files.emplace_back(name).bytes();
      LinePlace place{name, 1};
      for (FilePart& part : cut({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, lines, place))
        parts.push_back(std::move(part));
    }
    if (!parts.empty()) add(parts, words);
    return words;
  }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  static bool named_jsonl(std::string_view name) {
    for (const std::string_view ending : {".gz", ".zst"})
      if (name.ends_with(ending)) name.remove_suffix(ending.size());
    return name.ends_with(".jsonl");
  }

  void count_packed(const std::string& name, bool lines, WordCounts& words) {
    Unpacking file(name, lines);
    const auto next = [&file] { return file.next(); };
    for (Unpacking::Batch batch = next(); !batch.parts.empty();) {
      std::future<Unpacking::Batch> ahead = std::async(std::launch::async, next);
      add(batch.parts, words);
      batch = ahead.get();
    }
  }

  void add(const std::vector<FilePart>& parts, WordCounts& words) {
    for (const FilePart& part : parts) bytes_ += static_cast<std::int64_t>(part.text.size());
    const auto texts = [&](std::int64_t index, const auto& each) {
      texts_of(parts[static_cast<std::size_t>(index)], each);
    };
    WordCounts more = count_words(static_cast<std::int64_t>(parts.size()), texts, pattern_, threads_);
    if (words.size() == 0)
      words = std::move(more);
    else
      words.add(more);
  }

  void texts_of(const FilePart& part, const std::function<void(std::string_view)>& each) const {
    if (!part.lines) return each(part.text);
    LinePlace place = part.first;
    for (std::string_view line : split(part.text, '\n')) {
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.empty()) each(text_in(line, flags_.json_key, place));
      ++place.line;
    }
  }

  const TrainFlags& flags_;
  std::string_view pattern_;
  int threads_;
  std::int64_t bytes_ = 0;
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

  Counting counting(flags, pattern, threads);
  const WordCounts words = counting.count(files);
  const double counted = watch.seconds();
  std::cerr << text("counted ", human_count(static_cast<double>(words.size())), " different words in ",
                    human_bytes(counting.bytes()), ", ", human_duration(counted), "\n");
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
