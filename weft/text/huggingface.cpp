// tokenizer.json: reading its parts and joining them to a pipeline.
#include "weft/text/huggingface.h"

#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/text/byte_level.h"
#include "weft/text/bytes.h"
#include "weft/text/config_tokens.h"
#include "weft/text/decoders.h"
#include "weft/text/json.h"
#include "weft/text/models.h"
#include "weft/text/normalizers.h"
#include "weft/text/pattern.h"
#include "weft/text/pipeline.h"
#include "weft/text/pre_tokenizers.h"

namespace weft {

using nlohmann::json;

std::unique_ptr<StretchEncoder> make_word_encoder(std::unique_ptr<PreTokenizer> cutter,
                                                  std::unique_ptr<WordModel> model);

namespace {

constexpr const char* who = "tokenizer.json";

// A part of an object, null where it is missing or the object is none.
const json& part(const json& object, const char* key) {
  static const json nothing;
  const auto at = object.find(key);
  return at == object.end() ? nothing : *at;
}

// How a byte-level pre-tokenizer cuts, if it is one that BytePairs can follow.
struct ByteLevelCut {
  bool prefix_space = false, keep_gaps = true;
  std::string pattern;  // empty: a stretch is one piece
};

std::optional<ByteLevelCut> byte_level_cut(const json& spec) {
  if (!spec.is_object()) return std::nullopt;
  const std::string type = text_field(spec, "type", "pre_tokenizer");
  if (type == "ByteLevel") {
    ByteLevelCut out{.prefix_space = flag_field(spec, "add_prefix_space", true, who), .pattern = {}};
    if (flag_field(spec, "use_regex", true, who)) out.pattern = gpt2_pattern();
    return out;
  }
  const json& list = part(spec, "pretokenizers");
  if (type != "Sequence" || !list.is_array() || list.size() != 2 || !list[0].is_object() ||
      !list[1].is_object()) {
    return std::nullopt;
  }
  const json &cutter = list[0], &bytes = list[1];
  const bool plain = text_field(bytes, "type", who) == "ByteLevel" &&
                     !flag_field(bytes, "use_regex", true, who) &&
                     !flag_field(bytes, "add_prefix_space", true, who);
  const std::string pattern = text_field(cutter, "type", who) == "Split" ? regex_of(cutter) : "";
  if (!plain || pattern.empty()) return std::nullopt;
  const std::string behavior = cutter.contains("behavior") ? text_field(cutter, "behavior", who) : "";
  const bool invert = flag_field(cutter, "invert", false, who);
  if (behavior == "Isolated") return ByteLevelCut{.keep_gaps = true, .pattern = pattern};
  if (behavior == "Removed" && invert) return ByteLevelCut{.keep_gaps = false, .pattern = pattern};
  return std::nullopt;
}

// Byte-level BPE takes the fast road if every byte is a token, so that nothing is ever unknown, and tokens
// are plain.
std::unique_ptr<StretchEncoder> fast_encoder(const json& file, const Vocabulary& vocabulary) {
  const json& model = part(file, "model");
  const auto set = [&](const char* key) {
    return model.contains(key) && model[key].is_string() && model[key] != "";
  };
  if (model_type(model) != "BPE" || set("continuing_subword_prefix") || set("end_of_word_suffix"))
    return nullptr;
  if (model.contains("dropout") && !model["dropout"].is_null()) return nullptr;
  const auto cut = byte_level_cut(part(file, "pre_tokenizer"));
  // That looks at what is matched alone, and a cut may lie where nothing is.
  if (!cut || (!cut->pattern.empty() && may_match_nothing(cut->pattern, Dialect::oniguruma))) return nullptr;
  for (int byte = 0; byte < 256; ++byte) {
    if (!vocabulary.id(byte_alphabet.written(std::string(1, static_cast<char>(byte))))) return nullptr;
  }
  ByteLevelParts parts{
      .splitter = cut->pattern.empty() ? nullptr : make_splitter(cut->pattern, Dialect::oniguruma),
      .pairs = byte_pair_parts(vocabulary, model_merges(model)),
      .prefix_space = cut->prefix_space,
      .keep_gaps = cut->keep_gaps};
  parts.pairs.whole_first = flag_field(model, "ignore_merges", false, who);
  return make_byte_level(std::move(parts));
}

void read_added(const json& file, PipelineParts& parts) {
  const json& list = part(file, "added_tokens");
  for (const json& token : list) {
    if (!token.is_object() || !part(token, "id").is_number_integer())
      fail(Kind::data, who, ": an added token has no id");
    AddedToken added{
        .content = text_field(token, "content", who),
        .id = -1,
        .special = flag_field(token, "special", false, who),
        .single_word = flag_field(token, "single_word", false, who),
        .lstrip = flag_field(token, "lstrip", false, who),
        .rstrip = flag_field(token, "rstrip", false, who),
        .normalized = flag_field(token, "normalized", !flag_field(token, "special", false, who), who)};
    // A token that the model knows already keeps the model's id.
    if (!parts.vocabulary.id(added.content))
      parts.vocabulary.set(added.content, token["id"].get<std::int64_t>(), who);
    added.id = *parts.vocabulary.id(added.content);
    parts.added.push_back(std::move(added));
  }
}

std::int32_t id_in(const json& value) {
  if (!value.is_number_unsigned() ||
      value.get<std::uint64_t>() >= static_cast<std::uint64_t>(Vocabulary::most)) {
    fail(Kind::data, who, ": the post-processor has ",
         value.dump(-1, ' ', false, json::error_handler_t::replace), " for an id");
  }
  return value.get<std::int32_t>();
}

void read_template(const json& spec, std::vector<std::int32_t>& before, std::vector<std::int32_t>& after) {
  const json &single = part(spec, "single"), &special = part(spec, "special_tokens");
  int sequences = 0;
  for (const json& piece : single) {
    if (piece.is_object() && piece.contains("Sequence")) {
      ++sequences;
      continue;
    }
    const std::string name =
        text_field(part(piece, "SpecialToken"), "id", "post_processor TemplateProcessing");
    for (const json& id : part(part(special, name.c_str()), "ids"))
      (sequences == 0 ? before : after).push_back(id_in(id));
  }
  if (sequences != 1)
    fail(Kind::data, who, ": the template names the text ", sequences, " times, expected once");
}

// What is put around a text; a later post-processor goes around the earlier ones.
void read_post_processor(const json& spec, PipelineParts& parts) {
  if (spec.is_null()) return;
  const std::string type = text_field(spec, "type", "post_processor");
  std::vector<std::int32_t> before, after;
  if (type == "Sequence") {
    for (const json& step : part(spec, "processors")) read_post_processor(step, parts);
  } else if (type == "TemplateProcessing") {
    read_template(spec, before, after);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    const json &cls = part(spec, "cls"), &sep = part(spec, "sep");
    if (!cls.is_array() || !sep.is_array() || cls.size() != 2 || sep.size() != 2) {
      fail(Kind::data, who, ": ", type, " has no 'cls' and 'sep' of a token and an id");
    }
    before.push_back(id_in(cls[1]));
    after.push_back(id_in(sep[1]));
  } else if (type != "ByteLevel") {
    fail(Kind::data, who, ": there is no post_processor of type '", type, "'");
  }
  parts.before.insert(parts.before.begin(), before.begin(), before.end());
  parts.after.insert(parts.after.end(), after.begin(), after.end());
}

void guess_names(PipelineParts& parts) {
  const std::map<std::string, std::vector<std::string>> usual{
      {"eos", {"<|endoftext|>", "</s>", "<|end_of_text|>", "<eos>", "<|eot_id|>", "<|im_end|>"}},
      {"bos", {"<s>", "<|begin_of_text|>", "<bos>", "<|startoftext|>"}},
      {"pad", {"<pad>", "[PAD]", "<|pad|>"}},
      {"unk", {"<unk>", "[UNK]"}},
      {"cls", {"[CLS]", "<cls>"}},
      {"sep", {"[SEP]", "<sep>"}},
      {"mask", {"[MASK]", "<mask>"}}};
  for (const auto& [name, tokens] : usual) {
    for (const std::string& token : tokens) {
      if (parts.vocabulary.id(token)) parts.named.try_emplace(name, token);
    }
  }
}

// Missing parts are filled from their likes: sep and eos, cls and bos; eod is eos.
void fill_names(std::map<std::string, std::string>& named) {
  const auto fill = [&](const char* to, const char* from) {
    if (const auto at = named.find(from); at != named.end()) named.try_emplace(to, at->second);
  };
  fill("sep", "eos");
  fill("eos", "sep");
  fill("cls", "bos");
  fill("bos", "cls");
  fill("eod", "eos");
}

// A token that is looked for in normalized text is decoded as it stands there.
void rename_normalized(PipelineParts& parts) {
  if (parts.normalizer == nullptr) return;
  for (const AddedToken& token : parts.added) {
    if (token.normalized) parts.vocabulary.set(parts.normalizer->apply(token.content), token.id, who);
  }
}

}  // namespace

std::unique_ptr<Tokenizer> make_huggingface(const HuggingFaceFiles& files,
                                            const HuggingFaceOptions& options) {
  const json file = parse_json(files.tokenizer, who);
  if (!file.is_object() || !part(file, "model").is_object())
    fail(Kind::data, who, ": expected an object with a 'model'");
  PipelineParts parts;
  read_model_vocabulary(file["model"], parts.vocabulary);
  parts.encoder = fast_encoder(file, parts.vocabulary);
  if (parts.encoder == nullptr) {
    parts.encoder =
        make_word_encoder(make_pre_tokenizer(part(file, "pre_tokenizer")), make_model(file["model"]));
  }
  parts.normalizer = make_normalizer(part(file, "normalizer"));
  parts.decoder = make_decoder(part(file, "decoder"));
  read_added(file, parts);
  NamedTokens beside = read_named_tokens(files);
  add_named(beside, parts);
  add_special(options.special, parts);
  if (options.include_special) read_post_processor(part(file, "post_processor"), parts);
  for (const auto* ids : {&parts.before, &parts.after}) {
    for (const std::int32_t id : *ids) check_id(id, parts.vocabulary.size());
  }
  parts.named = std::move(beside.named);
  if (parts.named.empty()) guess_names(parts);
  fill_names(parts.named);
  rename_normalized(parts);
  return std::make_unique<Pipeline>(std::move(parts));
}

}  // namespace weft
