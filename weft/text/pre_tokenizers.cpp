#include "weft/text/pre_tokenizers.h"

#include <algorithm>
#include <functional>

#include "weft/base/error.h"
#include "weft/text/bytes.h"
#include "weft/text/json.h"
#include "weft/text/pattern.h"
#include "weft/text/unicode.h"

namespace weft {

using nlohmann::json;

namespace {

// How much of a head is left behind its first bytes.
std::size_t rest_of(std::size_t head, std::size_t bytes) { return head > bytes ? head - bytes : 0; }

using Matches = std::function<std::vector<ByteRange>(std::string_view)>;

// Cuts every word where something matches.
class Cutter final : public PreTokenizer {
 public:
  Cutter(Matches matches, Behavior behavior, bool invert = false)
      : matches_(std::move(matches)), behavior_(behavior), invert_(invert) {}
  void apply(std::vector<Word>& words) const override {
    std::vector<Word> out;
    for (const Word& word : words) {
      for (const ByteRange& piece : cut(word.text.size(), matches_(word.text), behavior_, invert_)) {
        out.push_back(
            {word.text.substr(piece.begin, piece.end - piece.begin), rest_of(word.head, piece.begin)});
      }
    }
    words = std::move(out);
  }

 private:
  Matches matches_;
  Behavior behavior_;
  bool invert_;
};

// Every code point of which `is` holds is a match of its own.
Matches each_rune(std::function<bool(char32_t)> is) {
  return [is = std::move(is)](std::string_view text) {
    std::vector<ByteRange> found;
    for (std::size_t at = 0; at < text.size();) {
      const unicode::Rune rune = unicode::rune_at(text, at);
      if (is(rune.code)) found.push_back({at, at + rune.bytes});
      at += rune.bytes;
    }
    return found;
  };
}

bool is_bert_punctuation(char32_t code) {
  const bool ascii = (code >= 33 && code <= 47) || (code >= 58 && code <= 64) || (code >= 91 && code <= 96) ||
                     (code >= 123 && code <= 126);
  return ascii || unicode::is_punctuation(code);
}

class Steps final : public PreTokenizer {
 public:
  explicit Steps(std::vector<std::unique_ptr<PreTokenizer>> steps) : steps_(std::move(steps)) {}
  void apply(std::vector<Word>& words) const override {
    for (const auto& step : steps_) step->apply(words);
  }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> steps_;
};

class ByteLevelWords final : public PreTokenizer {
 public:
  ByteLevelWords(bool prefix_space, bool by_pattern)
      : prefix_space_(prefix_space), splitter_(by_pattern ? make_scanner(gpt2_pattern()) : nullptr) {}
  void apply(std::vector<Word>& words) const override {
    std::vector<Word> out;
    for (Word& word : words) {
      if (prefix_space_ && !word.text.starts_with(' ')) {
        word.text.insert(0, " ");
        if (word.head > 0) ++word.head;
      }
      const auto pieces =
          splitter_ ? splitter_->all(word.text) : std::vector<ByteRange>{{0, word.text.size()}};
      for (const ByteRange& piece : pieces) {
        const auto bytes = std::string_view(word.text).substr(piece.begin, piece.end - piece.begin);
        const std::size_t head = std::min(rest_of(word.head, piece.begin), bytes.size());
        out.push_back({byte_alphabet.written(bytes), byte_alphabet.written(bytes.substr(0, head)).size()});
      }
    }
    words = std::move(out);
  }

 private:
  bool prefix_space_;
  std::unique_ptr<Splitter> splitter_;
};

class Metaspace final : public PreTokenizer {
 public:
  enum class Prepend { always, first, never };
  Metaspace(std::string replacement, Prepend prepend, bool cuts)
      : replacement_(std::move(replacement)), prepend_(prepend), cuts_(cuts) {}
  void apply(std::vector<Word>& words) const override {
    for (Word& word : words) {
      std::string text = spaces_replaced(word.text);
      if (word.head > 0) word.head = spaces_replaced(std::string_view(word.text).substr(0, word.head)).size();
      const bool wanted = prepend_ == Prepend::always || (prepend_ == Prepend::first && word.head > 0);
      if (wanted && !text.starts_with(replacement_)) {
        text.insert(0, replacement_);
        if (word.head > 0) word.head += replacement_.size();
      }
      word.text = std::move(text);
    }
    if (cuts_) {
      const Pattern pattern = Pattern::literal(replacement_);
      Cutter([&](std::string_view text) { return pattern.matches(text); }, Behavior::with_next).apply(words);
    }
  }

 private:
  std::string spaces_replaced(std::string_view from) const {
    std::string text;
    for (const char letter : from) {
      if (letter == ' ')
        text += replacement_;
      else
        text.push_back(letter);
    }
    return text;
  }

  std::string replacement_;
  Prepend prepend_;
  bool cuts_;
};

Behavior behavior_of(const json& spec, Behavior otherwise, std::string_view who) {
  if (!spec.contains("behavior")) return otherwise;
  const std::string name = text_field(spec, "behavior", who);
  if (name == "Removed") return Behavior::removed;
  if (name == "Isolated") return Behavior::isolated;
  if (name == "MergedWithPrevious") return Behavior::with_previous;
  if (name == "MergedWithNext") return Behavior::with_next;
  if (name == "Contiguous") return Behavior::contiguous;
  fail(Kind::data, who, ": there is no behavior '", name, "'");
}

std::unique_ptr<PreTokenizer> metaspace(const json& spec) {
  const char* who = "pre_tokenizer Metaspace";
  auto prepend = Metaspace::Prepend::always;
  if (spec.contains("prepend_scheme")) {
    const std::string scheme = text_field(spec, "prepend_scheme", who);
    if (scheme == "first")
      prepend = Metaspace::Prepend::first;
    else if (scheme == "never")
      prepend = Metaspace::Prepend::never;
    else if (scheme != "always")
      fail(Kind::data, who, ": there is no prepend_scheme '", scheme, "'");
  } else if (!flag_field(spec, "add_prefix_space", true, who)) {
    prepend = Metaspace::Prepend::never;
  }
  return std::make_unique<Metaspace>(text_field(spec, "replacement", who), prepend,
                                     flag_field(spec, "split", true, who));
}

std::unique_ptr<PreTokenizer> split_by_pattern(const json& spec) {
  const char* who = "pre_tokenizer Split";
  const Pattern pattern = read_pattern(spec, who);
  return std::make_unique<Cutter>([pattern](std::string_view text) { return pattern.matches(text); },
                                  behavior_of(spec, Behavior::isolated, who),
                                  flag_field(spec, "invert", false, who));
}

// Runs of `length` code points.
std::unique_ptr<PreTokenizer> fixed_length(const json& spec) {
  const auto length = spec.find("length");
  if (length == spec.end() || !length->is_number_unsigned() || *length == 0) {
    fail(Kind::data, "pre_tokenizer FixedLength: expected a number above 0 in 'length'");
  }
  const auto most = length->get<std::uint64_t>();
  const auto chunks = [most](std::string_view text) {
    std::vector<ByteRange> found;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t begin = at;
      for (std::uint64_t k = 0; k < most && at < text.size(); ++k) at += unicode::rune_at(text, at).bytes;
      found.push_back({begin, at});
    }
    return found;
  };
  return std::make_unique<Cutter>(chunks, Behavior::isolated);
}

std::unique_ptr<PreTokenizer> sequence(const json& spec) {
  const auto list = spec.find("pretokenizers");
  if (list == spec.end() || !list->is_array())
    fail(Kind::data, "pre_tokenizer Sequence: expected a list in 'pretokenizers'");
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  for (const json& step : *list) steps.push_back(make_pre_tokenizer(step));
  std::erase(steps, nullptr);
  return std::make_unique<Steps>(std::move(steps));
}

// The one pattern that the original gives to Rust's engine, which counts joiners among the word's characters.
std::unique_ptr<PreTokenizer> regex_words() {
  const std::shared_ptr<const Splitter> words = make_splitter(R"(\w+|[^\w\s]+)", Dialect::rust);
  return std::make_unique<Cutter>([words](std::string_view text) { return words->all(text); },
                                  Behavior::removed, true);
}

}  // namespace

std::vector<ByteRange> cut(std::size_t size, const std::vector<ByteRange>& matches, Behavior behavior,
                           bool invert) {
  struct Stretch {
    ByteRange span;
    bool match;
  };
  std::vector<Stretch> parts;
  std::size_t done = 0;
  for (const ByteRange& match : matches) {
    if (match.begin > done) parts.push_back({{done, match.begin}, invert});
    parts.push_back({match, !invert});
    done = match.end;
  }
  if (done < size) parts.push_back({{done, size}, invert});

  std::vector<ByteRange> pieces;
  bool before = false;
  if (behavior == Behavior::with_next) std::reverse(parts.begin(), parts.end());
  for (const Stretch& part : parts) {
    const bool joins =
        (behavior == Behavior::contiguous && part.match == before) ||
        ((behavior == Behavior::with_previous || behavior == Behavior::with_next) && part.match && !before);
    before = part.match;
    if (behavior == Behavior::removed && part.match) continue;
    if (joins && !pieces.empty()) {
      pieces.back() = {std::min(pieces.back().begin, part.span.begin),
                       std::max(pieces.back().end, part.span.end)};
    } else {
      pieces.push_back(part.span);
    }
  }
  if (behavior == Behavior::with_next) std::reverse(pieces.begin(), pieces.end());
  std::erase_if(pieces, [](const ByteRange& piece) { return piece.begin == piece.end; });
  return pieces;
}

std::unique_ptr<PreTokenizer> make_bert_pre_tokenizer() {
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  steps.push_back(std::make_unique<Cutter>(each_rune(unicode::is_space), Behavior::removed));
  steps.push_back(std::make_unique<Cutter>(each_rune(is_bert_punctuation), Behavior::isolated));
  return std::make_unique<Steps>(std::move(steps));
}

std::unique_ptr<PreTokenizer> make_pre_tokenizer(const json& spec) {
  if (spec.is_null()) return nullptr;
  const std::string type = text_field(spec, "type", "pre_tokenizer");
  const std::string who = "pre_tokenizer " + type;
  if (type == "Sequence") return sequence(spec);
  if (type == "Split") return split_by_pattern(spec);
  if (type == "Metaspace") return metaspace(spec);
  if (type == "BertPreTokenizer") return make_bert_pre_tokenizer();
  if (type == "Whitespace") return regex_words();
  if (type == "FixedLength") return fixed_length(spec);
  if (type == "UnicodeScripts")
    fail(Kind::data, "tokenizer.json: weft does not cut by script (UnicodeScripts)");
  if (type == "ByteLevel") {
    return std::make_unique<ByteLevelWords>(flag_field(spec, "add_prefix_space", true, who),
                                            flag_field(spec, "use_regex", true, who));
  }
  if (type == "WhitespaceSplit")
    return std::make_unique<Cutter>(each_rune(unicode::is_space), Behavior::removed);
  if (type == "Punctuation") {
    return std::make_unique<Cutter>(each_rune(is_bert_punctuation),
                                    behavior_of(spec, Behavior::isolated, who));
  }
  if (type == "Digits") {
    const bool alone = flag_field(spec, "individual_digits", false, who);
    return std::make_unique<Cutter>(each_rune(unicode::is_number),
                                    alone ? Behavior::isolated : Behavior::contiguous);
  }
  if (type == "CharDelimiterSplit") {
    const std::u32string delimiter = unicode::decoded(text_field(spec, "delimiter", who));
    if (delimiter.size() != 1) fail(Kind::data, who, ": expected one character in 'delimiter'");
    const char32_t mark = delimiter[0];
    return std::make_unique<Cutter>(each_rune([mark](char32_t code) { return code == mark; }),
                                    Behavior::removed);
  }
  fail(Kind::data, "tokenizer.json: there is no pre_tokenizer of type '", type, "'");
}

}  // namespace weft
