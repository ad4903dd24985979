// The general road: words cut by a pre-tokenizer, each encoded by a model. And BERT's, which takes it.
#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/text/decoders.h"
#include "weft/text/huggingface.h"
#include "weft/text/models.h"
#include "weft/text/normalizers.h"
#include "weft/text/pipeline.h"
#include "weft/text/pre_tokenizers.h"
#include "weft/text/unicode.h"

namespace weft {

namespace {

class WordEncoder final : public StretchEncoder {
 public:
  WordEncoder(std::unique_ptr<PreTokenizer> cutter, std::unique_ptr<WordModel> model)
      : cutter_(std::move(cutter)), model_(std::move(model)) {}
  void encode(std::string_view stretch, std::size_t head, std::vector<std::int32_t>& ids) const override {
    std::vector<Word> words{{std::string(stretch), head}};
    if (cutter_ != nullptr) cutter_->apply(words);
    for (const Word& word : words) {
      if (!word.text.empty()) model_->encode(word.text, ids);
    }
  }

 private:
  std::unique_ptr<PreTokenizer> cutter_;
  std::unique_ptr<WordModel> model_;
};

}  // namespace

std::unique_ptr<StretchEncoder> make_word_encoder(std::unique_ptr<PreTokenizer> cutter,
                                                  std::unique_ptr<WordModel> model) {
  return std::make_unique<WordEncoder>(std::move(cutter), std::move(model));
}

std::unique_ptr<Tokenizer> make_bert(std::string_view vocab_txt, const BertOptions& options) {
  constexpr const char* who = "vocab.txt";
  if (!unicode::valid(vocab_txt)) fail(Kind::data, who, ": is not UTF-8");
  PipelineParts parts;
  std::int64_t id = 0;
  if (vocab_txt.ends_with('\n')) vocab_txt.remove_suffix(1);
  for (std::string_view line : split(vocab_txt, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    parts.vocabulary.set(std::string(line), id++, who);
  }
  WordPieceParts model{.vocabulary = parts.vocabulary};
  parts.encoder = make_word_encoder(make_bert_pre_tokenizer(), make_word_piece(std::move(model)));
  parts.normalizer = make_bert_normalizer({.strip_accents = options.lower, .lower = options.lower});
  parts.decoder = make_word_piece_decoder("##", true);
  for (const auto& [part, token] : std::map<std::string, std::string>{
           {"pad", "[PAD]"}, {"unk", "[UNK]"}, {"cls", "[CLS]"}, {"sep", "[SEP]"}, {"mask", "[MASK]"}}) {
    if (const auto known = parts.vocabulary.id(token))
      parts.added.push_back({.content = token, .id = *known});
    parts.named[part] = token;
  }
  parts.named["eod"] = parts.named["eos"] = "[SEP]";
  parts.named["bos"] = "[CLS]";
  if (options.bounds) {
    add_special({"[BOS]", "[EOS]"}, parts);
    parts.named["bos"] = "[BOS]";
    parts.named["eos"] = "[EOS]";
  }
  add_special(options.special, parts);
  if (options.include_special) {
    const auto id_of = [&](const char* token) {
      if (const auto known = parts.vocabulary.id(token)) return *known;
      fail(Kind::data, who, ": holds no '", token, "'");
    };
    parts.before.push_back(id_of("[CLS]"));
    parts.after.push_back(id_of("[SEP]"));
  }
  return std::make_unique<Pipeline>(std::move(parts));
}

}  // namespace weft
