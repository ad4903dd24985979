// weft preprocess: text to token files, and joining, cutting and looking at them.
#include "weft/cli/preprocess.h"
#include "weft/cli/dialect/spelling.h"

#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "weft/base/clock.h"
#include "weft/base/error.h"
#include "weft/base/flags.h"
#include "weft/base/format.h"
#include "weft/cli/verbs.h"
#include "weft/data/token_writer.h"

namespace weft::cli {
// Not in the unnamed namespace: the list of fields is found by the struct's own.
template <class Visitor>
void describe(Visitor& v, PreprocessFlags& f) {
  v("input", f.work.input,
    "files and patterns; .gz and .zst are unpacked; with --merge a folder, with --cut a prefix");
  v("output_prefix", f.work.output_prefix, "where to write: PREFIX_KEY_document.bin and .idx");
  v("json_keys", f.work.json_keys, "keys that hold texts, a data set for each");
  v("input_format", f.input_format,
    "json: an object a line; text: a document a line; auto: text for .txt, else json");
  v("broken_lines", f.broken_lines, "stop at a line that cannot be read, or skip and count them");
  v("append_eod", f.work.append_eod, "ends every document with the end-of-document token");
  v("split_sentences", f.work.split_sentences,
    "a sequence for each sentence, by weft's own rules; lists of sentences are taken as they are");
  v("keep_newlines", f.keep_newlines, "leaves the white space behind a sentence with it");
  v("lang", f.lang, "english is the only language with rules for sentences");
  v("workers", f.work.workers, "threads that encode", legal::from_to(1, 1024));
  v("partitions", f.work.partitions, "deals lines out to so many parts in turn and joins them",
    legal::degree);
  v("keep_sequential_samples", f.work.keep_sequential_samples,
    "partitions are consecutive: the order of the input");
  v("find_optimal_num_workers", f.find_optimal_num_workers,
    "tries the numbers of --workers-to-check and writes nothing");
  v("workers_to_check", f.workers_to_check, "numbers of workers to try", legal::from_to(1, 1024));
  v("max_documents", f.max_documents, "documents of each try", legal::size);
  v("log_interval", f.log_interval, "documents between two lines of progress in a file", legal::size);
  v("merge", f.merge, "joins the data sets of the folder --input");
  v("multimodal", f.multimodal, "merges modes as well");
  v("cut", f.cut, "cuts the data set --input into so many", legal::size);
  v("inspect", f.inspect, "shows a data set");
  v("documents", f.documents, "how many documents --inspect shows", legal::count);
  v("json", f.json, "reports one JSON object");
  v("tokenizer", f.tokenizer_name,
    "gpt2:vocab.json,merges.txt, hf:FILE, tiktoken:FILE, spm:FILE, bert:FILE, byte, null:SIZE");
  describe(v, f.tokenizer);
}

namespace {

// Progress on standard error: one line that changes on a terminal, a line every so many documents in a file.
class Reporter {
 public:
  explicit Reporter(std::int64_t interval) : interval_(interval), terminal_(isatty(STDERR_FILENO) != 0) {}
  ~Reporter() {
    if (terminal_ && told_) std::cerr << '\n';
  }
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

  void tell(const data::PreprocessReport& so_far, double share) {
    if (terminal_ ? since_.seconds() < 0.2 && share < 1 : so_far.documents < next_) return;
    since_.restart();
    while (next_ <= so_far.documents) next_ += interval_;
    told_ = true;
    const double seconds = std::max(whole_.seconds(), 1e-9);
    const double left = share > 0 ? seconds * (1 - share) / share : 0;
    std::cerr << (terminal_ ? "\r\033[K" : "")
              << text("processed ", so_far.documents, " documents (",
                      human_count(static_cast<double>(so_far.documents) / seconds), " docs/s, ",
                      human_bytes(static_cast<std::int64_t>(static_cast<double>(so_far.bytes) / seconds)),
                      "/s, ", static_cast<int>(share * 100), " %, ", human_duration(left), " left)")
              << (terminal_ ? "" : "\n") << std::flush;
  }

 private:
  std::int64_t interval_, next_ = interval_;
  bool terminal_, told_ = false;
  Stopwatch since_, whole_;
};

template <class Choice>
Choice chosen(const std::string& flag, const std::string& word,
              std::initializer_list<std::pair<const char*, Choice>> choices) {
  std::string names;
  for (const auto& [name, choice] : choices) {
    if (word == name) return choice;
    names += text(names.empty() ? "" : ", ", name);
  }
  fail(Kind::usage, "preprocess: --", flag, ' ', word, ": expected ", names);
}

data::PreprocessOptions work_of(const PreprocessFlags& f) {
  using namespace data;
  PreprocessOptions work = f.work;
  work.broken = chosen<BrokenLines>("broken-lines", f.broken_lines,
                                    {{"stop", BrokenLines::stop}, {"skip", BrokenLines::skip}});
  work.kind =
      chosen<InputKind>("input-format", f.input_format,
                        {{"auto", InputKind::by_name}, {"json", InputKind::json}, {"text", InputKind::text}});
  work.newlines = f.keep_newlines ? Newlines::kept : Newlines::dropped;
  if (work.split_sentences && f.lang != "english")
    fail(Kind::usage, "preprocess: --lang ", f.lang,
         ": weft knows sentences of english only; give lists of sentences in the input");
  return work;
}

// An empty data set is as good as any to the program, and hardly what a person wanted.
void warn(const data::PreprocessReport& report) {
  for (const std::string& file : report.empty) std::cerr << "warning: " << file << " holds no line\n";
  if (report.tokens == 0)
    std::cerr << "warning: the input holds no token, so nothing can be trained on "
              << join(report.prefixes, ", ") << '\n';
}

void say(const PreprocessFlags& f, const data::PreprocessReport& report) {
  warn(report);
  if (f.json) {
    const nlohmann::json object = {{"documents", report.documents}, {"sequences", report.sentences},
                                   {"tokens", report.tokens},       {"broken_lines", report.broken},
                                   {"input_bytes", report.bytes},   {"seconds", report.seconds},
                                   {"prefixes", report.prefixes},   {"empty_inputs", report.empty}};
    std::cout << object.dump() << '\n';
    return;
  }
  if (report.broken > 0)
    std::cerr << "skipped " << report.broken << " broken lines, the first one: " << report.first_broken
              << '\n';
  for (const std::string& prefix : report.prefixes) std::cout << prefix << '\n';
  std::cerr << report.documents << " documents, " << report.sentences << " sequences, " << report.tokens
            << " tokens\n";
}

int encode_texts(const PreprocessFlags& f) {
  const auto tokenizer = tokenizer_of(f);
  if (!tokenizer)
    fail(Kind::usage, "preprocess: no tokenizer; give --tokenizer-type with its files, or --tokenizer");
  if (f.work.input.empty()) fail(Kind::usage, "preprocess: --input: expected files to read");
  Reporter reporter(f.log_interval);
  const auto report = data::preprocess(
      work_of(f), *tokenizer, [&](const auto& so_far, double share) { reporter.tell(so_far, share); });
  say(f, report);
  return static_cast<int>(Exit::done);
}

int find_workers(const PreprocessFlags& f) {
  const auto tokenizer = tokenizer_of(f);
  if (!tokenizer)
    fail(Kind::usage, "preprocess: no tokenizer; give --tokenizer-type with its files, or --tokenizer");
  int best = 0;
  double best_rate = 0;
  for (const int workers : f.workers_to_check) {
    data::PreprocessOptions work = work_of(f);
    work.workers = workers;
    work.partitions = 1;
    work.max_documents = f.max_documents;
    const auto report = data::rehearse_preprocess(work, *tokenizer);
    const double rate = static_cast<double>(report.documents) / std::max(report.seconds, 1e-9);
    std::cerr << workers << " workers: " << human_count(rate) << " docs/s\n";
    if (rate > best_rate) {
      best_rate = rate;
      best = workers;
    }
  }
  std::cout << "best: --workers " << best << '\n';
  return static_cast<int>(Exit::done);
}

int merge_folder(const PreprocessFlags& f) {
  if (f.work.input.size() != 1)
    fail(Kind::usage, "preprocess: --merge takes one folder as --input, got ", f.work.input.size());
  if (f.work.output_prefix.empty()) fail(Kind::usage, "preprocess: --output-prefix: expected where to write");
  data::merge(data::prefixes_in(f.work.input[0]), f.work.output_prefix,
              f.multimodal ? data::Modes::wanted : data::Modes::ignored);
  std::cout << f.work.output_prefix << '\n';
  return static_cast<int>(Exit::done);
}

int cut(const PreprocessFlags& f) {
  if (f.work.input.size() != 1)
    fail(Kind::usage, "preprocess: --cut takes one prefix as --input, got ", f.work.input.size());
  if (f.work.output_prefix.empty()) fail(Kind::usage, "preprocess: --output-prefix: expected where to write");
  data::split(f.work.input[0], f.cut, f.work.output_prefix);
  for (int part = 0; part < f.cut; ++part) std::cout << f.work.output_prefix << '_' << part << '\n';
  return static_cast<int>(Exit::done);
}

int run_preprocess(Args args) {
  PreprocessFlags flags;
  Fields fields(flags);
  const auto others = read_flags(fields, args);
  if (!others.empty())
    fail(Kind::usage, "preprocess: takes no '", others[0], "'; files are given with --input");
  const int tasks = (flags.merge ? 1 : 0) + (flags.cut != 0 ? 1 : 0) + (flags.inspect.empty() ? 0 : 1) +
                    (flags.find_optimal_num_workers ? 1 : 0);
  if (tasks > 1)
    fail(Kind::usage,
         "preprocess: --merge, --cut, --inspect and --find-optimal-num-workers are tasks of their own; give "
         "one");
  if (flags.merge) return merge_folder(flags);
  if (flags.cut != 0) return cut(flags);
  if (flags.find_optimal_num_workers) return find_workers(flags);
  if (flags.inspect.empty()) return encode_texts(flags);
  inspect_data(flags);
  return static_cast<int>(Exit::done);
}

VerbHelp about_preprocess() {
  VerbHelp help{
      .usage = "weft preprocess --input FILES --output-prefix PREFIX --tokenizer-type TYPE … [options]",
      .examples = {},
      .topics = {}};
  help.examples = {
      {"weft preprocess --input wiki.jsonl.gz --output-prefix wiki --tokenizer gpt2:vocab.json,merges.txt "
       "--append-eod --workers 8",
       "writes wiki_text_document.bin and .idx"},
      {"weft preprocess --inspect wiki_text_document --tokenizer gpt2:vocab.json,merges.txt",
       "shows what is in it"},
      {"weft preprocess --merge --input parts/ --output-prefix all", "joins the data sets of a folder"},
      {"weft preprocess --cut 8 --input all --output-prefix part", "cuts one into part_0 to part_7"}};
  PreprocessFlags flags;
  const Fields fields(flags);
  Topic topic{"options", {}};
  for (const auto& field : fields.all())
    topic.options.push_back({flag_of(*field), value_name(*field), help_with_default(*field)});
  help.topics = {topic};
  return help;
}

}  // namespace

std::unique_ptr<Tokenizer> tokenizer_of(const PreprocessFlags& flags) {
  TokenizerOptions options = flags.tokenizer;
  if (!flags.tokenizer_name.empty()) {
    const TokenizerOptions named = tokenizer_named(flags.tokenizer_name);
    options.tokenizer_type = named.tokenizer_type;
    options.vocab_file = named.vocab_file;
    options.merge_file = named.merge_file;
    options.tokenizer_model = named.tokenizer_model;
    if (named.vocab_size) options.vocab_size = named.vocab_size;
  }
  const bool any =
      !options.tokenizer_type.empty() || !options.vocab_file.empty() || !options.tokenizer_model.empty();
  if (!any) return nullptr;
  for (const std::string& sentence : unread_options(options)) std::cerr << spelled(sentence) << '\n';
  return open_tokenizer(options);
}

Verb preprocess_verb() {
  return {"preprocess", "turns text into token files, and joins, cuts and shows them", run_preprocess,
          about_preprocess};
}

}  // namespace weft::cli
