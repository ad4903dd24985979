// What the files beside a model say of its tokenizer, in llama.cpp's words.
#include "weft/exchange/gguf/vocabulary.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/format.h"

namespace weft::exchange::gguf {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double score_of_padding = -10000, score_of_added = -1000;
constexpr std::string_view space_mark = "\u2581";

json object_in(const fs::path& file) {
  std::error_code error;
  if (file.empty() || !fs::is_regular_file(file, error)) return json::object();
  json out = json::parse(read_file(file), nullptr, false);
  if (!out.is_object()) fail(Kind::data, file.string(), ": is no JSON object");
  return out;
}

/// A token in a configuration: its text, or an object that has it.
std::string content_of(const json& token) {
  if (token.is_string()) return token.get<std::string>();
  return token.is_object() ? token.value("content", "") : "";
}

// As the converter of llama.cpp sees it: programs mark fewer as special than are.
bool looks_special(const std::string& token) {
  return (token.starts_with("<|") && token.ends_with("|>")) ||
         (token.starts_with("<\uff5c") && token.ends_with("\uff5c>"));
}

class FromJson {
 public:
  FromJson(const TokenizerFiles& files, Vocabulary& out)
      : who_(files.json.string()), tokenizer_(object_in(files.json)), out_(out) {
    model_ = tokenizer_.value("model", json::object());
    const std::string type = model_.is_object() ? model_.value("type", "BPE") : "";
    if (type != "BPE")
      fail(Kind::usage, who_, ": is a tokenizer of the kind ", type.empty() ? "?" : type,
           ", and weft writes BPE and SentencePiece models of pairs to GGUF files; give another "
           "tokenizer");
    for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (!model_.value(name, json()).is_null() && model_.value(name, json()) != "")
        fail(Kind::usage, who_, ": its ", name, " is ", model_.value(name, json()).dump(),
             ", which llama.cpp's BPE has not");
  }

  bool is_byte_level() const { return !model_.value("byte_fallback", false); }

  void take_byte_level() {
    out_.model = "gpt2";
    check_normalizer();
    out_.pre = name_of_splits(tokenizer_, who_);
    take_vocabulary();
    out_.merges = merges();
  }

  /// Scores by the rank of the merge that makes a piece: whoever joins by scores then joins as merges do, if
  /// all that make one piece have ranks next to each other.
  void take_by_scores() {
    out_.model = "llama";
    out_.pre = "default";
    take_vocabulary();
    out_.scores.assign(out_.tokens.size(), 0);
    std::map<std::string, std::size_t> ranks;
    std::string last;
    std::size_t rank = 0;
    for (const std::string& merge : merges()) {
      std::string piece = merge;
      piece.erase(piece.find(' '), 1);
      if (piece != last && !ranks.emplace(piece, ++rank).second)
        fail(Kind::usage, who_, ": merges that make ", piece,
             " stand apart, which scores cannot say; put its tokenizer.model beside it");
      last = piece;
    }
    for (std::size_t i = 0; i < out_.tokens.size(); ++i) {
      const auto found = ranks.find(out_.tokens[i]);
      out_.scores[i] = found == ranks.end() ? 0 : -double(found->second);
      const std::string& token = out_.tokens[i];
      if (token.size() == 6 && token.starts_with("<0x") && token.ends_with('>'))
        out_.types[i] = std::int64_t(TokenType::byte);
      if (token == model_.value("unk_token", json())) out_.types[i] = std::int64_t(TokenType::unknown);
    }
    const std::string normalizer = tokenizer_.value("normalizer", json()).dump(),
                      pre = tokenizer_.value("pre_tokenizer", json()).dump();
    const bool marks =
        pre.find("Metaspace") != std::string::npos && pre.find("\"never\"") == std::string::npos;
    out_.add_space = marks || normalizer.find("Prepend") != std::string::npos;
  }

  /// Over tokens that are there, or behind them.
  void add_tokens() {
    for (const json& one : tokenizer_.value("added_tokens", json::array()))
      add_token(one.value("id", std::int64_t{-1}), one.value("content", ""), one.value("special", false));
  }

  /// What the tokenizer puts around every text.
  void take_surroundings() {
    const json post = tokenizer_.value("post_processor", json());
    json all = json::array({post});
    if (post.is_object() && post.contains("processors")) all = post.at("processors");
    out_.add_begin = out_.add_end = false;
    for (const json& one : all)
      if (one.is_object() && one.value("type", "") == "TemplateProcessing") {
        const json single = one.value("single", json::array());
        if (single.size() < 2) continue;
        take_side(single.front(), out_.begin, out_.add_begin);
        take_side(single.back(), out_.end, out_.add_end);
      }
  }

 private:
  void check_normalizer() {
    const json normalizer = tokenizer_.value("normalizer", json());
    if (normalizer.is_null()) return;
    const std::string type = normalizer.value("type", "?");
    if (type == "Sequence" && normalizer.value("normalizers", json::array()).empty()) return;
    if (type != "NFC")
      fail(Kind::usage, who_, ": makes texts plain by ", type, ", which llama.cpp's BPE does not");
    out_.notices.push_back(who_ +
                           ": composes accents (NFC), which llama.cpp does not: texts that come decomposed "
                           "are other tokens there");
  }

  void take_vocabulary() {
    const json vocab = model_.value("vocab", json::object());
    for (const auto& [token, id] : vocab.items()) {
      if (!id.is_number_unsigned() || id.get<std::uint64_t>() > 100'000'000)
        fail(Kind::data, who_, ": ", token, " has the id ", id.dump(), ", expected a whole number");
      put(id.get<std::size_t>(), token, TokenType::normal);
    }
  }

  void put(std::size_t id, const std::string& token, TokenType type) {
    if (id >= out_.tokens.size()) {
      out_.tokens.resize(id + 1);
      out_.types.resize(id + 1, std::int64_t(TokenType::unused));
    }
    out_.tokens[id] = token;
    out_.types[id] = std::int64_t(type);
  }

  void add_token(std::int64_t id, std::string token, bool special) {
    if (id < 0 || id > 100'000'000 || token.empty())
      fail(Kind::data, who_, ": an added token has the id ", id, " and ", token.size(), " bytes");
    const bool there = std::size_t(id) < out_.types.size();
    if (there && out_.types[std::size_t(id)] == std::int64_t(TokenType::unknown)) return;
    const bool control = special || looks_special(token);
    if (!control)
      for (auto at = token.find(space_mark); at != std::string::npos; at = token.find(space_mark))
        token.replace(at, space_mark.size(), " ");
    put(std::size_t(id), token, control ? TokenType::control : TokenType::user_defined);
    if (out_.model != "llama") return;
    out_.scores.resize(out_.tokens.size(), score_of_padding);
    out_.scores[std::size_t(id)] = score_of_added;
  }

  std::vector<std::string> merges() const {
    std::vector<std::string> out;
    for (const json& merge : model_.value("merges", json::array())) {
      const bool pair = merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
      out.push_back(pair                ? merge[0].get<std::string>() + " " + merge[1].get<std::string>()
                    : merge.is_string() ? merge.get<std::string>()
                                        : "");
      if (std::ranges::count(out.back(), ' ') != 1 || out.back().front() == ' ' || out.back().back() == ' ')
        fail(Kind::data, who_, ": merge ", out.size() - 1, " is ", merge.dump().substr(0, 80),
             ", expected two tokens");
    }
    return out;
  }

  void take_side(const json& part, std::optional<std::int64_t>& id, std::optional<bool>& adds) const {
    const json special = part.value("SpecialToken", json());
    if (!special.is_object()) return;
    id = out_.id_of(special.value("id", ""));
    adds = id.has_value();
  }

  std::string who_;
  json tokenizer_, model_;
  Vocabulary& out_;
};

void take_gpt2(const TokenizerFiles& files, Vocabulary& out) {
  out.model = "gpt2";
  out.pre = "gpt-2";
  const json vocab = object_in(files.vocab);
  for (const auto& [token, id] : vocab.items()) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= vocab.size())
      fail(Kind::data, files.vocab.string(), ": ", token, " has the id ", id.dump(), ", expected one below ",
           vocab.size());
    out.tokens.resize(vocab.size());
    out.tokens[id.get<std::size_t>()] = token;
  }
  out.types.assign(out.tokens.size(), std::int64_t(TokenType::normal));
  std::istringstream lines(read_file(files.merges));
  for (std::string line; std::getline(lines, line);)
    if (!line.empty() && !line.starts_with("#version")) out.merges.push_back(line);
  out.end = out.id_of("<|endoftext|>");
  out.begin = out.end;
  if (out.end) out.types[std::size_t(*out.end)] = std::int64_t(TokenType::control);
  out.add_begin = out.add_end = false;
}

/// What the files beside say by name counts more than what was guessed.
void take_names(const TokenizerFiles& files, Vocabulary& out) {
  json config = object_in(files.beside / "special_tokens_map.json");
  config.update(object_in(files.beside / "tokenizer_config.json"));
  const auto take = [&](const char* name, std::optional<std::int64_t>& id) {
    const std::string token = content_of(config.value(name, json()));
    if (const auto found = token.empty() ? std::nullopt : out.id_of(token)) id = found;
  };
  take("bos_token", out.begin);
  take("eos_token", out.end);
  take("unk_token", out.unknown);
  take("pad_token", out.pad);
  for (const auto& [name, adds] :
       {std::pair{"add_bos_token", &out.add_begin}, std::pair{"add_eos_token", &out.add_end}})
    if (config.value(name, json()).is_boolean()) *adds = config.at(name).get<bool>();
  std::error_code error;
  json chats = config.value("chat_template", json());
  if (fs::is_regular_file(files.beside / "chat_template.jinja", error))
    chats = read_file(files.beside / "chat_template.jinja");
  if (chats.is_string()) out.template_of_chats = chats.get<std::string>();
  if (!chats.is_array()) return;
  for (const json& one : chats)
    if (one.is_object() && one.value("name", "") == "default")
      out.template_of_chats = one.value("template", "");
}

}  // namespace

std::optional<std::int64_t> Vocabulary::id_of(const std::string& token) const {
  const auto found = std::ranges::find(tokens, token);
  return found == tokens.end() ? std::nullopt : std::optional(found - tokens.begin());
}

void Vocabulary::fill_up(std::int64_t rows, const std::string& who) {
  if (std::ssize(tokens) > rows)
    fail(Kind::usage, who, ": has ids up to ", tokens.size() - 1, ", and the model has ", rows, " words");
  tokens.resize(std::size_t(rows));
  types.resize(std::size_t(rows), std::int64_t(TokenType::unused));
  if (model == "llama") scores.resize(std::size_t(rows), score_of_padding);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i].empty()) {
      tokens[i] = text("[PAD", i, "]");
      types[i] = std::int64_t(TokenType::unused);
    }
}

TokenizerFiles tokenizer_files(const fs::path& where) {
  std::error_code error;
  TokenizerFiles out;
  if (fs::is_regular_file(where, error)) {
    out.beside = where.parent_path();
    (where.extension() == ".json" ? out.json : out.sentencepiece) = where;
    return out;
  }
  out.beside = where;
  const auto found = [&](const char* name) {
    return fs::is_regular_file(where / name, error) ? where / name : fs::path();
  };
  out.json = found("tokenizer.json");
  out.sentencepiece = found("tokenizer.model");
  out.vocab = found("vocab.json");
  out.merges = found("merges.txt");
  return out;
}

namespace {

/// Whose ids count, for messages.
std::string take_files(const TokenizerFiles& files, Vocabulary& out) {
  std::string who = files.json.string();
  if (!files.json.empty()) {
    FromJson from(files, out);
    if (from.is_byte_level()) {
      from.take_byte_level();
    } else if (files.sentencepiece.empty()) {
      from.take_by_scores();
    } else {
      out.model = "llama";
      out.pre = "default";
      read_pieces(read_file(files.sentencepiece), files.sentencepiece.string(), out);
    }
    from.add_tokens();
    from.take_surroundings();
  } else if (!files.sentencepiece.empty()) {
    who = files.sentencepiece.string();
    out.model = "llama";
    out.pre = "default";
    read_pieces(read_file(files.sentencepiece), who, out);
    out.add_begin = true;
    out.add_end = false;
  } else if (!files.vocab.empty() && !files.merges.empty()) {
    who = files.vocab.string();
    take_gpt2(files, out);
  } else {
    fail(Kind::usage, files.beside.string(),
         ": holds neither tokenizer.json nor tokenizer.model, nor vocab.json with merges.txt, of which a "
         "GGUF file's tokenizer is made");
  }
  take_names(files, out);
  return who;
}

}  // namespace

// What is of another kind than a tokenizer has is found by the library that reads it.
Vocabulary vocabulary_of(const TokenizerFiles& files, std::int64_t rows, std::optional<std::int64_t> end) {
  Vocabulary out;
  std::string who;
  try {
    who = take_files(files, out);
  } catch (const json::exception& error) {
    fail(Kind::data, files.beside.string(), ": its tokenizer is not as one should be: ", error.what());
  }
  if (!out.end && end && *end < std::ssize(out.tokens)) out.end = end;
  out.fill_up(rows, who);
  return out;
}

Values keys_of(const Vocabulary& v) {
  Values out;
  const auto add = [&](std::string_view name, Value value) {
    (void)out.add("tokenizer." + std::string(name), std::move(value));
  };
  add("ggml.model", text_of(v.model));
  add("ggml.pre", text_of(v.pre));
  add("ggml.tokens", words_of(v.tokens));
  if (v.model == "llama") add("ggml.scores", reals_of(v.scores));
  add("ggml.token_type", wholes_of(v.types));
  if (v.model == "gpt2") add("ggml.merges", words_of(v.merges));
  for (const auto& [name, id] :
       {std::pair{"ggml.bos_token_id", v.begin}, std::pair{"ggml.eos_token_id", v.end},
        std::pair{"ggml.unknown_token_id", v.unknown}, std::pair{"ggml.padding_token_id", v.pad}})
    if (id) add(name, whole(*id));
  for (const auto& [name, answer] :
       {std::pair{"ggml.add_bos_token", v.add_begin}, std::pair{"ggml.add_eos_token", v.add_end},
        std::pair{"ggml.add_space_prefix", v.add_space}})
    if (answer) add(name, yes(*answer));
  if (!v.template_of_chats.empty()) add("chat_template", text_of(v.template_of_chats));
  return out;
}

}  // namespace weft::exchange::gguf
