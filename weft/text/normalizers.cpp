#include "weft/text/normalizers.h"

#include <functional>

#include "weft/base/error.h"
#include "weft/text/base64.h"
#include "weft/text/bytes.h"
#include "weft/text/json.h"
#include "weft/text/pattern.h"
#include "weft/text/unicode.h"

namespace weft {

using nlohmann::json;

namespace {

// A normalizer that is one function.
class Function final : public Normalizer {
 public:
  explicit Function(std::function<std::string(std::string)> apply) : apply_(std::move(apply)) {}
  [[nodiscard]] std::string apply(std::string text) const override { return apply_(std::move(text)); }

 private:
  std::function<std::string(std::string)> apply_;
};

class Steps final : public Normalizer {
 public:
  explicit Steps(std::vector<std::unique_ptr<Normalizer>> steps) : steps_(std::move(steps)) {}
  [[nodiscard]] std::string apply(std::string text) const override {
    for (const auto& step : steps_) text = step->apply(std::move(text));
    return text;
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> steps_;
};

std::unique_ptr<Normalizer> function(std::function<std::string(std::string)> apply) {
  return std::make_unique<Function>(std::move(apply));
}

// Calls `each` with every code point; what it appends is the result.
template <class Each>
std::string mapped(std::string_view text, const Each& each) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const unicode::Rune rune = unicode::rune_at(text, at);
    each(out, rune.code);
    at += rune.bytes;
  }
  return out;
}

std::string lowered(std::string_view text) {
  return mapped(text, [](std::string& out, char32_t code) { unicode::append_lower(out, code); });
}

std::string without_accents(std::string_view text) {
  return mapped(unicode::normalized(text, unicode::Form::nfd), [](std::string& out, char32_t code) {
    if (!unicode::is_nonspacing_mark(code)) unicode::append(out, code);
  });
}

void clean(std::string& out, char32_t code) {
  const bool white = code == '\t' || code == '\n' || code == '\r';
  if (code == 0 || code == 0xfffd || (!white && unicode::is_other(code))) return;
  if (white || unicode::is_space(code)) {
    out.push_back(' ');
  } else {
    unicode::append(out, code);
  }
}

void split_ideograph(std::string& out, char32_t code) {
  const bool alone = unicode::is_cjk(code);
  if (alone) out.push_back(' ');
  unicode::append(out, code);
  if (alone) out.push_back(' ');
}

std::string stripped(std::string_view text, bool left, bool right) {
  std::size_t begin = 0, end = text.size();
  while (left && begin < end) {
    const unicode::Rune rune = unicode::rune_at(text, begin);
    if (!unicode::is_space(rune.code)) break;
    begin += rune.bytes;
  }
  while (right && end > begin) {
    const std::size_t last = unicode::previous(text, end);
    if (!unicode::is_space(unicode::rune_at(text, last).code)) break;
    end = last;
  }
  return std::string(text.substr(begin, end - begin));
}

// SentencePiece's nmt rules: controls go, odd white space becomes a space.
void nmt(std::string& out, char32_t code) {
  const bool control = (code >= 1 && code <= 8) || code == 0xb || (code >= 0xe && code <= 0x1f) ||
                       code == 0x7f || code == 0x8f || code == 0x9f;
  if (control) return;
  const bool white = code == 9 || code == 0xa || code == 0xc || code == 0xd || code == 0x1680 ||
                     (code >= 0x200b && code <= 0x200f) || code == 0x2028 || code == 0x2029 ||
                     code == 0x2581 || code == 0xfeff || code == 0xfffd;
  unicode::append(out, white ? U' ' : code);
}

std::unique_ptr<Normalizer> replace(const json& spec) {
  const Pattern pattern = read_pattern(spec, "normalizer Replace");
  const std::string content = text_field(spec, "content", "normalizer Replace");
  return function([pattern, content](const std::string& text) {
    std::string out;
    std::size_t done = 0;
    for (const ByteRange& match : pattern.matches(text)) {
      out.append(text, done, match.begin - done).append(content);
      done = match.end;
    }
    return out.append(text, done);
  });
}

std::unique_ptr<Normalizer> sequence(const json& spec) {
  std::vector<std::unique_ptr<Normalizer>> steps;
  const auto list = spec.find("normalizers");
  if (list == spec.end() || !list->is_array())
    fail(Kind::data, "normalizer Sequence: expected a list in 'normalizers'");
  for (const json& step : *list) steps.push_back(make_normalizer(step));
  std::erase(steps, nullptr);
  return std::make_unique<Steps>(std::move(steps));
}

std::unique_ptr<Normalizer> bert(const json& spec) {
  const char* who = "normalizer BertNormalizer";
  BertNormalizerOptions options{.clean = flag_field(spec, "clean_text", true, who),
                                .split_chinese = flag_field(spec, "handle_chinese_chars", true, who),
                                .strip_accents = true,
                                .lower = flag_field(spec, "lowercase", true, who)};
  options.strip_accents = flag_field(spec, "strip_accents", options.lower, who);
  return make_bert_normalizer(options);
}

}  // namespace

std::unique_ptr<Normalizer> make_bert_normalizer(const BertNormalizerOptions& options) {
  return function([options](std::string text) {
    if (options.clean) text = mapped(text, clean);
    if (options.split_chinese) text = mapped(text, split_ideograph);
    if (options.strip_accents) text = without_accents(text);
    return options.lower ? lowered(text) : text;
  });
}

std::unique_ptr<Normalizer> make_normalizer(const json& spec) {
  if (spec.is_null()) return nullptr;
  const std::string type = text_field(spec, "type", "normalizer");
  const auto form = [](unicode::Form f) {
    return function([f](const std::string& text) { return unicode::normalized(text, f); });
  };
  if (type == "Sequence") return sequence(spec);
  if (type == "BertNormalizer") return bert(spec);
  if (type == "NFC") return form(unicode::Form::nfc);
  if (type == "NFD") return form(unicode::Form::nfd);
  if (type == "NFKC") return form(unicode::Form::nfkc);
  if (type == "NFKD") return form(unicode::Form::nfkd);
  if (type == "Lowercase") return function([](const std::string& text) { return lowered(text); });
  if (type == "Nmt") return function([](const std::string& text) { return mapped(text, nmt); });
  if (type == "ByteLevel")
    return function([](const std::string& text) { return byte_alphabet.written(text); });
  if (type == "Replace") return replace(spec);
  if (type == "StripAccents") {
    // Only marks that stand alone: the original expects NFD before it.
    return function([](const std::string& text) {
      return mapped(text, [](std::string& out, char32_t code) {
        if (!unicode::is_mark(code)) unicode::append(out, code);
      });
    });
  }
  if (type == "Strip") {
    const bool left = flag_field(spec, "strip_left", true, "normalizer Strip");
    const bool right = flag_field(spec, "strip_right", true, "normalizer Strip");
    return function([left, right](const std::string& text) { return stripped(text, left, right); });
  }
  if (type == "Prepend") {
    const std::string what = text_field(spec, "prepend", "normalizer Prepend");
    return function([what](const std::string& text) { return text.empty() ? text : what + text; });
  }
  if (type == "Precompiled") {
    return make_charsmap(base64_decoded(text_field(spec, "precompiled_charsmap", "normalizer Precompiled"),
                                        "normalizer Precompiled"));
  }
  fail(Kind::data, "tokenizer.json: there is no normalizer of type '", type, "'");
}

}  // namespace weft
