// weft tokenizer train|encode|decode|inspect|chat: vocabularies, and text to numbers and back.
#include <algorithm>
#include <array>
#include <iostream>
#include <thread>

#include "weft/base/error.h"
#include "weft/base/flags.h"
#include "weft/base/format.h"
#include "weft/base/nearest.h"
#include "weft/cli/dialect/spelling.h"
#include "weft/cli/tokenizer_lines.h"
#include "weft/cli/verbs.h"
#include "weft/text/open.h"
#include "weft/text/tokenizer.h"
#include "weft/text/unicode.h"

namespace weft::cli {
namespace {

struct UseOptions {
  TokenizerOptions tokenizer;
  std::string name;  // --tokenizer
  std::string text;
  std::string json_key = "text";
  bool jsonl = false, json = false, skip_special = false;
};

template <class Visitor>
void describe(Visitor& v, UseOptions& o) {
  v("tokenizer", o.name,
    "gpt2:vocab.json,merges.txt, hf:FILE, tiktoken:FILE, spm:FILE, bert:FILE, byte, null:SIZE");
  v("text", o.text, "takes this text and no file");
  v("jsonl", o.jsonl, "reads and writes a line of JSON a document");
  v("json_key", o.json_key, "the key that holds the text");
  v("json", o.json, "inspect: one JSON object");
  v("skip_special", o.skip_special, "decode: leaves special tokens out");
  describe(v, o.tokenizer);
}

/// What a sub-verb reads beside the tokenizer's own options.
struct Reads {
  std::string_view sub;
  std::vector<std::string_view> options;
  bool files = true;
};

bool said(const Fields& fields, std::string_view path) {
  return fields.at(path).origin() != Origin::built_in;
}

/// A setting that would be ignored is an error.
void must_be_read(const Fields& fields, const std::vector<std::string>& files, const Reads& reads) {
  const auto refuse = [&](const auto&... why) { fail(Kind::usage, "tokenizer ", reads.sub, ": ", why...); };
  for (const char* path : {"text", "jsonl", "json_key", "json", "skip_special"})
    if (said(fields, path) && std::ranges::find(reads.options, path) == reads.options.end())
      refuse(flag_of(fields.at(path)), " has no effect on it: leave it out");
  if (!reads.files && !files.empty()) refuse("it reads no file, found ", files[0], "; --text gives a text");
  if (said(fields, "text") && !files.empty())
    refuse("--text and ", files[0], " are both given: leave one of them out");
  if (said(fields, "text") && said(fields, "jsonl"))
    refuse("--text is one text, and --jsonl reads lines of JSON: leave one of them out");
  if (said(fields, "json_key") && !said(fields, "jsonl")) refuse("--json-key has no effect without --jsonl");
}

struct Use {
  UseOptions options;
  std::vector<std::string> files;
  std::unique_ptr<Tokenizer> tokenizer;
  bool has_text = false;

  Use(const Reads& reads, Args args) {
    Fields fields(options);
    files = read_flags(fields, args);
    must_be_read(fields, files, reads);
    has_text = said(fields, "text");
    if (!options.name.empty()) {
      const TokenizerOptions named = tokenizer_named(options.name);
      options.tokenizer.tokenizer_type = named.tokenizer_type;
      options.tokenizer.vocab_file = named.vocab_file;
      options.tokenizer.merge_file = named.merge_file;
      options.tokenizer.tokenizer_model = named.tokenizer_model;
      if (named.vocab_size) options.tokenizer.vocab_size = named.vocab_size;
    }
    for (const std::string& sentence : unread_options(options.tokenizer))
      std::cerr << spelled(sentence) << '\n';
    tokenizer = open_tokenizer(options.tokenizer);
  }
  // Calls `each` with every line of the files, or of standard input.
  void lines(const std::function<void(const LinePlace&, std::string_view)>& each) const {
    if (files.empty()) return each_line("-", each);
    for (const std::string& file : files) each_line(file, each);
  }
  // All of the input as one text.
  [[nodiscard]] std::string whole() const {
    if (has_text) return options.text;
    std::string all;
    if (files.empty()) return whole_input("-");
    for (const std::string& file : files) all += whole_input(file);
    return all;
  }
};

int encode_input(Args args) {
  const Use use({"encode", {"text", "jsonl", "json_key"}}, args);
  Output out;
  if (use.options.jsonl) {
    use.lines([&](const LinePlace& place, std::string_view line) {
      out.ids_line(use.tokenizer->encode(text_in(line, use.options.json_key, place)));
    });
  } else {
    out.plain_ids(use.tokenizer->encode(use.whole()));
  }
  return static_cast<int>(Exit::done);
}

std::vector<std::int32_t> without_special(const Use& use, std::vector<std::int32_t> ids) {
  if (use.options.skip_special) {
    std::erase_if(ids, [&](std::int32_t id) { return use.tokenizer->is_special(id); });
  }
  return ids;
}

int decode(Args args) {
  const Use use({"decode", {"text", "jsonl", "json_key", "skip_special"}}, args);
  Output out;
  if (use.options.jsonl) {
    use.lines([&](const LinePlace& place, std::string_view line) {
      out.text_line(use.tokenizer->decode(without_special(use, ids_in(line, place))), use.options.json_key);
    });
  } else {
    out.raw(use.tokenizer->decode(without_special(use, plain_ids_in(use.whole()))));
    out.raw("\n");
  }
  return static_cast<int>(Exit::done);
}

int inspect(Args args) {
  const Use use({"inspect", {"text", "json"}, false}, args);
  const Tokenizer& t = *use.tokenizer;
  std::vector<std::pair<std::string, std::int32_t>> special;
  for (const char* part : {"eod", "bos", "eos", "pad", "unk", "cls", "sep", "mask"}) {
    if (const auto id = t.special(part)) special.emplace_back(part, *id);
  }
  Output out;
  const auto ids = use.options.text.empty() ? std::vector<std::int32_t>{} : t.encode(use.options.text);
  if (use.options.json) {
    out.inspect_json(t, special, ids);
    return static_cast<int>(Exit::done);
  }
  out.raw(text("vocabulary  ", t.size(), " tokens, ", padded_vocabulary(t.size()), " when padded to 128\n"));
  for (const auto& [part, id] : special)
    out.raw(text(part, std::string(12 - part.size(), ' '), id, "  ", t.token(id), "\n"));
  for (const std::int32_t id : ids) out.raw(text(id, "\t", t.token(id), "\n"));
  return static_cast<int>(Exit::done);
}

struct Sub {
  std::string_view name;
  int (*run)(Args);
};
constexpr std::array subs{Sub{"train", train_tokenizer}, Sub{"encode", encode_input}, Sub{"decode", decode},
                          Sub{"inspect", inspect}, Sub{"chat", chat_tokenizer}};

int run_tokenizer(Args args) {
  std::vector<std::string_view> names;
  for (const Sub& sub : subs) names.push_back(sub.name);
  if (args.empty()) fail(Kind::usage, "tokenizer: expected ", join(names, ", "));
  for (const Sub& sub : subs) {
    if (sub.name == args[0]) return sub.run(args.subspan(1));
  }
  fail(Kind::usage, "tokenizer: '", args[0], "' is none of ", join(names, ", "),
       did_you_mean(args[0], names));
}

Topic topic(std::string title, const Fields& fields) {
  Topic out{std::move(title), {}};
  for (const auto& field : fields.all()) {
    out.options.push_back({flag_of(*field), value_name(*field), help_with_default(*field)});
  }
  return out;
}

VerbHelp about_tokenizer() {
  UseOptions use;
  Fields fields(use);
  return {.usage = "weft tokenizer train|encode|decode|inspect|chat [options] [FILE ...]",
          .examples =
              {{"weft tokenizer train --vocab-size 32000 --output tok corpus.txt",
                "learns a byte-level BPE; writes vocab.json, merges.txt and tokenizer.json"},
               {"weft tokenizer encode --tokenizer hf:tok/tokenizer.json --text 'Hello world'", "prints ids"},
               {"weft tokenizer encode --jsonl --tokenizer gpt2:tok/vocab.json,tok/merges.txt corpus.jsonl",
                "{\"text\": …} lines to {\"ids\": […]} lines"},
               {"weft tokenizer encode --jsonl --tokenizer hf:tok corpus.jsonl.zst",
                "gzip and zstd are unpacked on the way"},
               {"weft tokenizer decode --tokenizer hf:tok ids.txt", "numbers back to text"},
               {"weft tokenizer inspect --tokenizer hf:tok --text 'What is this?'",
                "size, special tokens, pieces"},
               {"weft tokenizer chat --tokenizer Qwen3-0.6B --answer-next conversations.jsonl",
                "conversations as the model reads them, by the tokenizer's own chat template"}},
          .topics = {train_topic(), topic("encode, decode, inspect", fields), chat_topic()}};
}

}  // namespace

Verb tokenizer_verb() {
  return {"tokenizer", "trains a vocabulary; turns text into numbers and back", run_tokenizer,
          about_tokenizer};
}

}  // namespace weft::cli
