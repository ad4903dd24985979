// A tokenizer.json of a GGUF file's keys, where one can say what they do.
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/exchange/gguf/vocabulary.h"

namespace weft::exchange::gguf {
namespace {

using nlohmann::json;
using Ordered = nlohmann::ordered_json;

class FromKeys {
 public:
  FromKeys(const Values& keys, const std::string& who) : keys_(keys), who_(who) {}

  TokenizerMade made() {
    const std::string model = word("model"), pre = word("pre");
    if (model.empty() || model == "none" || model == "no_vocab") return {};
    if (model != "gpt2")
      return {.why_not = text(who_, ": its tokenizer is llama.cpp's \"", model.substr(0, 40),
                              "\", of which weft makes no tokenizer.json: give that of the original")};
    splits_ = splits_of_name(pre);
    if (splits_.is_null())
      return {.why_not = text(who_, ": its tokenizer splits texts as llama.cpp's \"", pre.substr(0, 40),
                              "\", which weft does not know: give that of the original")};
    tokens_ = list<std::string>("tokens");
    types_ = list<std::int64_t>("token_type");
    if (types_.size() != tokens_.size())
      fail(Kind::data, who_, ": has ", tokens_.size(), " tokens and ", types_.size(), " kinds of them");
    return {.json = tokenizer(pre).dump(1, ' ', false, json::error_handler_t::replace) + "\n",
            .config = config().dump(2, ' ', false, json::error_handler_t::replace) + "\n"};
  }

 private:
  static std::string key(std::string_view name) { return "tokenizer.ggml." + std::string(name); }
  std::string word(std::string_view name) const {
    const Value* value = keys_.find(key(name));
    if (value == nullptr) return "";
    if (const auto* found = value->as<std::string>()) return *found;
    fail(Kind::data, who_, ": ", key(name), " is ", what_is(value->type), ", expected a text");
  }
  template <class T>
  std::vector<T> list(std::string_view name) const {
    const Value* value = keys_.find(key(name));
    const auto* found = value == nullptr ? nullptr : value->as<std::vector<T>>();
    if (found == nullptr)
      fail(Kind::data, who_, ": ", key(name), " is ", value == nullptr ? "missing" : what_is(value->type),
           ", expected a list of ", std::is_same_v<T, std::string> ? "texts" : "whole numbers");
    return *found;
  }
  /// The text of a token that a key gives the id of; empty: none does.
  std::string token_at(std::string_view name) const {
    const Value* value = keys_.find(key(name));
    if (value == nullptr) return "";
    const auto* id = value->as<std::int64_t>();
    if (id == nullptr || *id < 0 || *id >= std::ssize(tokens_))
      fail(Kind::data, who_, ": ", key(name), " is ", id == nullptr ? text(what_is(value->type)) : text(*id),
           ", expected an id below ", tokens_.size());
    return tokens_[std::size_t(*id)];
  }
  bool answer(std::string_view name) const {
    const Value* value = keys_.find(key(name));
    const bool* found = value == nullptr ? nullptr : value->as<bool>();
    return found != nullptr && *found;
  }

  Ordered tokenizer(const std::string& pre) const {
    Ordered vocab = Ordered::object(), added = Ordered::array(), merges = Ordered::array();
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      const auto type = TokenType(types_[id]);
      if (type == TokenType::normal) vocab[tokens_[id]] = id;
      if (type == TokenType::control || type == TokenType::user_defined)
        added.push_back({{"id", id},
                         {"content", tokens_[id]},
                         {"single_word", false},
                         {"lstrip", false},
                         {"rstrip", false},
                         {"normalized", false},
                         {"special", type == TokenType::control}});
    }
    for (const std::string& merge : list<std::string>("merges")) {
      const auto space = merge.find(' ', 1);
      if (space == std::string::npos)
        fail(Kind::data, who_, ": a merge of its tokenizer is \"", merge.substr(0, 80),
             "\", expected two tokens");
      merges.push_back({merge.substr(0, space), merge.substr(space + 1)});
    }
    const Ordered bytes{
        {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
    return {{"version", "1.0"},
            {"truncation", nullptr},
            {"padding", nullptr},
            {"added_tokens", added},
            {"normalizer", nullptr},
            {"pre_tokenizer", splits_},
            {"post_processor", surroundings(bytes)},
            {"decoder", bytes},
            {"model",
             {{"type", "BPE"},
              {"dropout", nullptr},
              {"unk_token", nullptr},
              {"continuing_subword_prefix", nullptr},
              {"end_of_word_suffix", nullptr},
              {"fuse_unk", false},
              {"byte_fallback", false},
              {"ignore_merges", ignores_merges(pre)},
              {"vocab", vocab},
              {"merges", merges}}}};
  }

  Ordered surroundings(const Ordered& nothing) const {
    Ordered single = Ordered::array(), special = Ordered::object();
    const auto put = [&](const std::string& token, std::string_view name) {
      single.push_back({{"SpecialToken", {{"id", token}, {"type_id", 0}}}});
      special[token] = {
          {"id", token}, {"ids", {*keys_.find(key(name))->as<std::int64_t>()}}, {"tokens", {token}}};
    };
    const std::string begin = token_at("bos_token_id"), end = token_at("eos_token_id");
    if (answer("add_bos_token") && !begin.empty()) put(begin, "bos_token_id");
    single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
    if (answer("add_eos_token") && !end.empty()) put(end, "eos_token_id");
    if (single.size() == 1) return nothing;
    Ordered pair = single;
    for (Ordered one : single) {
      if (one.contains("Sequence")) one["Sequence"]["id"] = "B";
      pair.push_back(one);
    }
    return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", special}};
  }

  Ordered config() const {
    Ordered out{{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}};
    for (const auto& [theirs, ours] :
         {std::pair{"bos_token", "bos_token_id"}, std::pair{"eos_token", "eos_token_id"},
          std::pair{"unk_token", "unknown_token_id"}, std::pair{"pad_token", "padding_token_id"}})
      if (const std::string token = token_at(ours); !token.empty()) out[theirs] = token;
    const Value* chats = keys_.find("tokenizer.chat_template");
    if (chats != nullptr && chats->as<std::string>() != nullptr)
      out["chat_template"] = *chats->as<std::string>();
    return out;
  }

  const Values& keys_;
  const std::string& who_;
  json splits_;
  std::vector<std::string> tokens_;
  std::vector<std::int64_t> types_;
};

}  // namespace

TokenizerMade tokenizer_of(const Values& keys, const std::string& who) { return FromKeys(keys, who).made(); }

}  // namespace weft::exchange::gguf
