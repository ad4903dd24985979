// The pipeline: one thread reads and writes in order, workers encode blocks of lines; a window of blocks
// bounds the memory.
#include "weft/data/preprocess.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <future>
#include <utility>

#include "weft/base/clock.h"
#include "weft/base/error.h"
#include "weft/base/workers.h"
#include "weft/data/json_texts.h"
#include "weft/data/token_writer.h"

namespace weft::data {
namespace {

// Documents of one block for one key, flattened.
struct EncodedDocuments {
  std::vector<std::int32_t> tokens, sentence_lengths;
  std::vector<std::size_t> sentences, counts;  // of each document: how many sentences, how many tokens

  void add(const std::vector<std::vector<std::int32_t>>& parts, std::optional<std::int32_t> eod) {
    const std::size_t before = tokens.size(), sentences_before = sentence_lengths.size();
    for (const auto& part : parts) {
      if (part.empty()) continue;
      tokens.insert(tokens.end(), part.begin(), part.end());
      sentence_lengths.push_back(static_cast<std::int32_t>(part.size()));
    }
    if (eod && tokens.size() > before) {
      tokens.push_back(*eod);
      ++sentence_lengths.back();
    }
    sentences.push_back(sentence_lengths.size() - sentences_before);
    counts.push_back(tokens.size() - before);
  }
};

struct EncodedBlock {
  std::vector<EncodedDocuments> columns;  // key after key of the first partition, then of the next
  std::int64_t broken = 0;
  std::string first_broken;
};

// What all workers share; nothing in it changes.
struct SharedInput {
  const PreprocessOptions& options;
  const Tokenizer& tokenizer;
  std::optional<std::int32_t> eod;
  std::size_t num_keys;
  std::size_t num_parts;  // partitions that lines are dealt out to in turn
};

bool is_text(const PreprocessOptions& options, const std::string& file) {
  if (options.kind != InputKind::by_name) return options.kind == InputKind::text;
  std::string_view name = file;
  for (const std::string_view ending : {".gz", ".zst"})
    if (name.ends_with(ending)) name.remove_suffix(ending.size());
  return name.ends_with(".txt");
}

void encode_texts(const SharedInput& job, const std::vector<std::vector<std::string_view>>& texts,
                  std::span<EncodedDocuments> keys) {
  std::vector<std::vector<std::int32_t>> parts;
  for (std::size_t k = 0; k < texts.size(); ++k) {
    parts.clear();
    for (const std::string_view text : texts[k]) {
      if (!job.options.split_sentences || texts[k].size() > 1) {
        parts.push_back(job.tokenizer.encode(text));
        continue;
      }
      for (const std::string_view sentence : sentences_of(text, job.options.newlines))
        parts.push_back(job.tokenizer.encode(sentence));
    }
    keys[k].add(parts, job.eod);
  }
}

/// What some editors write before a text is no part of it.
std::string_view without_byte_order_mark(std::string_view first_line) {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  if (first_line.starts_with(mark)) first_line.remove_prefix(mark.size());
  return first_line;
}

EncodedBlock encode_block(const SharedInput& job, const LineBlock& block) {
  EncodedBlock out;
  out.columns.resize(job.num_keys * job.num_parts);
  JsonTexts json(job.options.json_keys);
  const bool text_file = is_text(job.options, block.file);
  std::vector<std::vector<std::string_view>> line_as_text(1);
  for (std::size_t i = 0; i < block.size(); ++i) {
    const std::string_view line = block.line(i);
    const std::size_t part = (static_cast<std::size_t>(block.index) + i) % job.num_parts;
    const auto keys = std::span(out.columns).subspan(part * job.num_keys, job.num_keys);
    if (text_file) {
      const bool first = block.first + static_cast<std::int64_t>(i) == 1;
      line_as_text[0] = {first ? without_byte_order_mark(line) : line};
      encode_texts(job, line_as_text, keys);
      continue;
    }
    try {
      encode_texts(job, json.read(line), keys);
    } catch (const Error& e) {
      if (e.kind() != Kind::data) throw;
      const std::string what =
          text(block.file, ':', block.first + static_cast<std::int64_t>(i), ": ", e.what());
      if (job.options.broken == BrokenLines::stop)
        fail(Kind::data, what, "; correct the line, or give {broken_lines} skip");
      if (out.broken++ == 0) out.first_broken = what;
    }
  }
  return out;
}

// Where encoded documents go, if anywhere: a data set for each key, which several partitions first write in
// parts beside it.
class Output {
 public:
  Output(const SharedInput& job, bool writes) : num_keys_(job.num_keys), num_parts_(job.num_parts) {
    const auto& options = job.options;
    for (const std::string& key : options.json_keys)
      prefixes_.push_back(
          text(options.output_prefix, '_', key, options.split_sentences ? "_sentence" : "_document"));
    const TokenWriter::Options as{.type = token_type_for(job.tokenizer.size())};
    for (std::size_t part = 0; writes && part < num_parts_; ++part)
      for (std::size_t k = 0; k < num_keys_; ++k)
        writers_.push_back(std::make_unique<TokenWriter>(prefix_of(k, part), as));
  }
  ~Output() { remove_parts(); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void put(const EncodedBlock& block, PreprocessReport& report) {
    for (std::size_t c = 0; c < block.columns.size(); ++c) {
      const EncodedDocuments& documents = block.columns[c];
      report.tokens += static_cast<std::int64_t>(documents.tokens.size());
      report.sentences += static_cast<std::int64_t>(documents.sentence_lengths.size());
      if (c % num_keys_ == 0) report.documents += static_cast<std::int64_t>(documents.counts.size());
      if (!writers_.empty()) write(documents, *writers_[c]);
    }
    if (report.broken == 0) report.first_broken = block.first_broken;
    report.broken += block.broken;
  }

  std::vector<std::string> finish() {
    if (writers_.empty()) return {};
    for (const auto& writer : writers_) writer->finish();
    for (std::size_t k = 0; k < num_keys_ && num_parts_ > 1; ++k) merge(parts_of(k), prefixes_[k]);
    remove_parts();
    return prefixes_;
  }

 private:
  std::string prefix_of(std::size_t key, std::size_t part) const {
    return num_parts_ == 1 ? prefixes_[key] : text(prefixes_[key], ".part", part);
  }
  std::vector<std::string> parts_of(std::size_t key) const {
    std::vector<std::string> prefixes;
    for (std::size_t part = 0; part < num_parts_; ++part) prefixes.push_back(prefix_of(key, part));
    return prefixes;
  }
  void remove_parts() const {
    for (std::size_t k = 0; k < num_keys_ && num_parts_ > 1 && !writers_.empty(); ++k) {
      for (const std::string& prefix : parts_of(k)) {
        std::error_code gone_already;
        std::filesystem::remove(index_path(prefix), gone_already);
        std::filesystem::remove(bin_path(prefix), gone_already);
      }
    }
  }
  static void write(const EncodedDocuments& documents, TokenWriter& writer) {
    std::span<const std::int32_t> tokens = documents.tokens, lengths = documents.sentence_lengths;
    for (std::size_t d = 0; d < documents.counts.size(); ++d) {
      writer.add_document(tokens.first(documents.counts[d]), lengths.first(documents.sentences[d]));
      tokens = tokens.subspan(documents.counts[d]);
      lengths = lengths.subspan(documents.sentences[d]);
    }
  }

  std::size_t num_keys_, num_parts_;
  std::vector<std::string> prefixes_;
  std::vector<std::unique_ptr<TokenWriter>> writers_;
};

std::optional<std::int32_t> eod_of(const PreprocessOptions& options, const Tokenizer& tokenizer) {
  if (!options.append_eod) return std::nullopt;
  const auto eod = tokenizer.special("eod");
  if (!eod) fail(Kind::usage, "{append_eod}: the tokenizer has no end-of-document token");
  return eod;
}

void check_settings(const PreprocessOptions& options) {
  if (options.workers < 1) fail(Kind::usage, "{workers} ", options.workers, ": expected at least 1");
  if (options.partitions < 1) fail(Kind::usage, "{partitions} ", options.partitions, ": expected at least 1");
  if (options.workers % options.partitions != 0) {
    fail(Kind::usage, "{workers} ", options.workers, " is not a multiple of {partitions} ",
         options.partitions);
  }
  if (options.json_keys.empty()) fail(Kind::usage, "{json_keys}: no keys");
}

void walk(const SharedInput& job, Output& output, PreprocessReport& report, const Progress& progress) {
  const auto& options = job.options;
  Workers workers(options.workers);
  LineReader reader(files_of(options.input));
  std::deque<std::future<EncodedBlock>> under_way;
  const Stopwatch watch;
  const auto settle = [&] {
    const EncodedBlock block = under_way.front().get();
    under_way.pop_front();
    output.put(block, report);
    report.bytes = reader.bytes_read();
    report.seconds = watch.seconds();
    if (progress) progress(report, reader.progress());
  };
  const auto window = 4 * static_cast<std::size_t>(options.workers);
  for (;;) {
    auto block = std::make_shared<LineBlock>();
    const bool enough = options.max_documents && report.documents >= *options.max_documents;
    if (enough || !reader.next(*block)) break;
    under_way.push_back(workers.submit([&job, block] { return encode_block(job, *block); }));
    if (under_way.size() >= window) settle();
  }
  while (!under_way.empty()) settle();
  report.empty = reader.empty();
}

PreprocessReport run(const PreprocessOptions& options, const Tokenizer& tokenizer, const Progress& progress,
                     bool writes) {
  check_settings(options);
  const int parts = options.keep_sequential_samples ? 1 : options.partitions;
  const SharedInput job{options, tokenizer, eod_of(options, tokenizer), options.json_keys.size(),
                        static_cast<std::size_t>(parts)};
  const auto files = files_of(options.input);
  const bool any_text = std::any_of(files.begin(), files.end(),
                                    [&](const auto& file) { return is_text(options, file.string()); });
  if (any_text && options.json_keys.size() > 1) {
    fail(Kind::usage, "{json_keys}: ", options.json_keys.size(),
         " keys, but lines of plain text have only one");
  }
  PreprocessReport report;
  Output output(job, writes);
  walk(job, output, report, progress);
  report.prefixes = output.finish();
  return report;
}

}  // namespace

PreprocessReport preprocess(const PreprocessOptions& options, const Tokenizer& tokenizer,
                            const Progress& progress) {
  if (options.output_prefix.empty()) fail(Kind::usage, "{output_prefix}: expected where to write");
  return run(options, tokenizer, progress, true);
}

PreprocessReport rehearse_preprocess(const PreprocessOptions& options, const Tokenizer& tokenizer) {
  PreprocessOptions one_pass = options;
  one_pass.partitions = 1;
  return run(one_pass, tokenizer, {}, false);
}

}  // namespace weft::data
