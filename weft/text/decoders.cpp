#include "weft/text/decoders.h"

#include <array>
#include <charconv>
#include <functional>

#include "weft/base/error.h"
#include "weft/text/byte_level.h"
#include "weft/text/json.h"
#include "weft/text/pattern.h"
#include "weft/text/unicode.h"

namespace weft {

using nlohmann::json;

namespace {

using Tokens = std::vector<std::string>;
using DecodeStep = std::function<Tokens(Tokens)>;

class DecodeSteps final : public Decoder {
 public:
  explicit DecodeSteps(std::vector<DecodeStep> steps, std::string between = {})
      : steps_(std::move(steps)), between_(std::move(between)) {}
  [[nodiscard]] std::string decode(std::vector<std::string> tokens) const override {
    for (const DecodeStep& step : steps_) tokens = step(std::move(tokens));
    std::string out;
    for (std::size_t k = 0; k < tokens.size(); ++k) out += (k > 0 ? between_ : "") + tokens[k];
    return unicode::valid(out) ? out : unicode::repaired(out);
  }

 private:
  std::vector<DecodeStep> steps_;
  std::string between_;
};

std::string replaced(std::string_view text, std::string_view what, std::string_view with) {
  std::string out;
  std::size_t done = 0;
  for (auto at = what.empty() ? std::string_view::npos : text.find(what); at != std::string_view::npos;
       at = text.find(what, done)) {
    out.append(text.substr(done, at - done)).append(with);
    done = at + what.size();
  }
  return out.append(text.substr(done));
}

std::string cleaned(std::string text) {
  constexpr std::array<std::array<std::string_view, 2>, 11> changes{{{" .", "."},
                                                                     {" ?", "?"},
                                                                     {" !", "!"},
                                                                     {" ,", ","},
                                                                     {" ' ", "'"},
                                                                     {" n't", "n't"},
                                                                     {" 'm", "'m"},
                                                                     {" do not", " don't"},
                                                                     {" 's", "'s"},
                                                                     {" 've", "'ve"},
                                                                     {" 're", "'re"}}};
  for (const auto& change : changes) text = replaced(text, change[0], change[1]);
  return text;
}

// Changes every token; `k` is its place.
DecodeStep each(std::function<std::string(std::string token, std::size_t k, std::size_t count)> change) {
  return [change = std::move(change)](Tokens tokens) {
    for (std::size_t k = 0; k < tokens.size(); ++k)
      tokens[k] = change(std::move(tokens[k]), k, tokens.size());
    return tokens;
  };
}

DecodeStep word_piece(const std::string& prefix, bool cleanup) {
  return each([prefix, cleanup](std::string token, std::size_t k, std::size_t) {
    if (k > 0)
      token = token.starts_with(prefix) && !prefix.empty() ? token.substr(prefix.size()) : " " + token;
    return cleanup ? cleaned(std::move(token)) : token;
  });
}

int byte_of(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int byte = -1;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  return error == std::errc() && end == token.data() + 5 ? byte : -1;
}

// Runs of <0x41> become text, or a replacement for each byte where they are none.
Tokens byte_fallback(Tokens tokens) {
  Tokens out;
  std::string bytes;
  const auto flush = [&] {
    if (unicode::valid(bytes)) {
      if (!bytes.empty()) out.push_back(bytes);
    } else {
      out.insert(out.end(), bytes.size(), "\xef\xbf\xbd");
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const int byte = byte_of(token); byte >= 0) {
      bytes.push_back(static_cast<char>(byte));
    } else {
      flush();
      out.push_back(std::move(token));
    }
  }
  flush();
  return out;
}

Tokens fuse(const Tokens& tokens) {
  std::string all;
  for (const std::string& token : tokens) all += token;
  return {all};
}

DecodeStep metaspace(const json& spec) {
  const char* who = "decoder Metaspace";
  const std::string replacement = text_field(spec, "replacement", who);
  const bool prepends = spec.contains("prepend_scheme") ? text_field(spec, "prepend_scheme", who) != "never"
                                                        : flag_field(spec, "add_prefix_space", true, who);
  return each([replacement, prepends](const std::string& token, std::size_t k, std::size_t) {
    return replaced(token, replacement, k == 0 && prepends ? "" : " ");
  });
}

DecodeStep ctc(const json& spec) {
  const char* who = "decoder CTC";
  const std::string pad = text_field(spec, "pad_token", who),
                    mark = text_field(spec, "word_delimiter_token", who);
  const bool cleanup = flag_field(spec, "cleanup", true, who);
  return [=](const Tokens& tokens) {
    Tokens out;
    for (std::size_t k = 0; k < tokens.size(); ++k) {
      if (k > 0 && tokens[k] == tokens[k - 1]) continue;
      std::string token = replaced(tokens[k], pad, "");
      if (cleanup) token = replaced(cleaned(std::move(token)), mark, " ");
      if (!token.empty()) out.push_back(std::move(token));
    }
    return out;
  };
}

DecodeStep strip(const json& spec) {
  const std::string content = text_field(spec, "content", "decoder Strip");
  const auto count = [&](const char* key) {
    const auto at = spec.find(key);
    if (at == spec.end() || !at->is_number_unsigned())
      fail(Kind::data, "decoder Strip: expected a number in '", key, "'");
    return at->get<std::size_t>();
  };
  const std::size_t start = count("start"), stop = count("stop");
  return each([=](std::string token, std::size_t, std::size_t) {
    for (std::size_t k = 0; k < start && !content.empty() && token.starts_with(content); ++k)
      token.erase(0, content.size());
    for (std::size_t k = 0; k < stop && !content.empty() && token.ends_with(content); ++k) {
      token.resize(token.size() - content.size());
    }
    return token;
  });
}

DecodeStep replace(const json& spec) {
  const Pattern pattern = read_pattern(spec, "decoder Replace");
  const std::string content = text_field(spec, "content", "decoder Replace");
  return each([pattern, content](const std::string& token, std::size_t, std::size_t) {
    if (!unicode::valid(token)) return token;
    std::string out;
    std::size_t done = 0;
    for (const ByteRange& match : pattern.matches(token)) {
      out.append(token, done, match.begin - done).append(content);
      done = match.end;
    }
    return out.append(token, done);
  });
}

void add_steps(const json& spec, std::vector<DecodeStep>& steps) {
  const std::string type = text_field(spec, "type", "decoder");
  const std::string who = "decoder " + type;
  if (type == "Sequence") {
    const auto list = spec.find("decoders");
    if (list == spec.end() || !list->is_array()) fail(Kind::data, who, ": expected a list in 'decoders'");
    for (const json& step : *list) add_steps(step, steps);
  } else if (type == "ByteLevel") {
    const std::shared_ptr<Decoder> decoder = make_byte_level_decoder();
    steps.push_back([decoder](Tokens tokens) { return Tokens{decoder->decode(std::move(tokens))}; });
  } else if (type == "WordPiece") {
    steps.push_back(word_piece(text_field(spec, "prefix", who), flag_field(spec, "cleanup", true, who)));
  } else if (type == "BPEDecoder") {
    const std::string suffix = text_field(spec, "suffix", who);
    steps.push_back(each([suffix](const std::string& token, std::size_t k, std::size_t count) {
      return replaced(token, suffix, k + 1 == count ? "" : " ");
    }));
  } else if (type == "Metaspace") {
    steps.push_back(metaspace(spec));
  } else if (type == "CTC") {
    steps.push_back(ctc(spec));
  } else if (type == "Replace") {
    steps.push_back(replace(spec));
  } else if (type == "Fuse") {
    steps.push_back(fuse);
  } else if (type == "Strip") {
    steps.push_back(strip(spec));
  } else if (type == "ByteFallback") {
    steps.push_back(byte_fallback);
  } else {
    fail(Kind::data, "tokenizer.json: there is no decoder of type '", type, "'");
  }
}

}  // namespace

std::unique_ptr<Decoder> make_word_piece_decoder(const std::string& prefix, bool cleanup) {
  return std::make_unique<DecodeSteps>(std::vector<DecodeStep>{word_piece(prefix, cleanup)});
}

std::unique_ptr<Decoder> make_decoder(const json& spec) {
  std::vector<DecodeStep> steps;
  if (spec.is_null()) return std::make_unique<DecodeSteps>(std::move(steps), " ");
  add_steps(spec, steps);
  return std::make_unique<DecodeSteps>(std::move(steps));
}

}  // namespace weft
