#include "weft/data/masked_dataset.h"

#include <algorithm>
#include <utility>

#include "weft/base/error.h"

namespace weft::data {
namespace {

using Tokens = std::vector<std::int32_t>;

void append(Tokens& to, const Tokens& from) { to.insert(to.end(), from.begin(), from.end()); }

Tokens flat(const std::vector<Tokens>& parts, std::size_t begin, std::size_t end) {
  Tokens all;
  for (std::size_t i = begin; i < end; ++i) append(all, parts[i]);
  return all;
}

// Takes tokens off the longer part, at either end, until both fit.
bool cut_pair(Tokens& a, Tokens& b, std::int64_t target, NumpyRandom& random) {
  bool cut = false;
  while (static_cast<std::int64_t>(a.size() + b.size()) > target) {
    Tokens& longer = a.size() > b.size() ? a : b;
    if (random.uniform() < 0.5) {
      longer.erase(longer.begin());
    } else {
      longer.pop_back();
    }
    cut = true;
  }
  return cut;
}

// 1 where a token is there, 0 where it is padding. The original writes the padding's id for the latter, which
// says of a vocabulary whose padding is 1 that all of it is there.
Tokens presence(const Tokens& tokens, std::int32_t pad) {
  Tokens mask(tokens.size());
  std::transform(tokens.begin(), tokens.end(), mask.begin(),
                 [&](std::int32_t token) { return token == pad ? 0 : 1; });
  return mask;
}

void pad_to(Tokens& tokens, std::int64_t length, std::int32_t with, const char* what) {
  if (static_cast<std::int64_t>(tokens.size()) > length) {
    fail(Kind::data, "t5: ", what, " of ", tokens.size(), " tokens, there is room for ", length,
         "; lengthen {model.decoder_sequence}");
  }
  tokens.resize(static_cast<std::size_t>(length), with);
}

}  // namespace

MaskingRules usual_masking(MaskedModel model) {
  return model == MaskedModel::bert ? MaskingRules{.max_ngram = 3}
                                    : MaskingRules{.max_ngram = 10, .geometric = true};
}

MaskedVocabulary masked_vocabulary(const Tokenizer& tokenizer, MaskedModel model) {
  const auto need = [&](const char* name) {
    const auto id = tokenizer.special(name);
    if (!id)
      fail(Kind::usage, model == MaskedModel::bert ? "bert" : "t5", ": the tokenizer has no ", name,
           " token");
    return *id;
  };
  MaskedVocabulary v{.pad = need("pad"), .size = tokenizer.size(), .continues = {}, .sentinels = {}};
  v.continues.resize(static_cast<std::size_t>(v.size));
  for (std::int32_t id = 0; id < v.size; ++id)
    v.continues[static_cast<std::size_t>(id)] = tokenizer.token(id).starts_with("##") ? 1 : 0;
  if (model == MaskedModel::bert) {
    v.mask = need("mask");
    v.cls = need("cls");
    v.sep = need("sep");
    return v;
  }
  // Hidden spans leave through their sentinels: the mask only says where they were. A decoder without a token
  // of its own to start with starts with padding, as T5's own tokenizers have it.
  v.mask = tokenizer.special("mask").value_or(v.pad);
  v.cls = tokenizer.special("cls").value_or(-1);
  v.sep = tokenizer.special("sep").value_or(-1);
  v.bos = decoder_start(tokenizer).value_or(v.pad);
  v.eos = need("eos");
  for (int k = 0;; ++k) {
    const auto id = tokenizer.special(text("<extra_id_", k, ">"));
    if (!id) break;
    v.sentinels.push_back(*id);
  }
  if (v.sentinels.empty())
    fail(Kind::usage, "t5: the tokenizer has no <extra_id_0>; give {data.tokenizer.extra_ids} 100");
  return v;
}

MaskedDataset::MaskedDataset(std::shared_ptr<const Source> text, Array<std::uint32_t> mapping,
                             MaskedRules rules, MaskedVocabulary vocabulary)
    : text_(std::move(text)),
      mapping_(std::move(mapping)),
      rules_(rules),
      vocabulary_(std::move(vocabulary)) {}

MaskedDataset::Row MaskedDataset::row(std::int64_t i) const {
  if (i < 0 || i >= size()) fail(Kind::data, text_->name(), ": sample ", i, " asked for, there are ", size());
  const auto at = 3 * static_cast<std::size_t>(i);
  const Row r{mapping_[at], mapping_[at + 1], mapping_[at + 2]};
  if (r.end <= r.begin || r.end > text_->num_sequences() || r.target > rules_.max_length()) {
    fail(Kind::data, text_->name(), ": the cached index does not fit the data at sample ", i,
         "; remove the cache and start again");
  }
  return r;
}

std::vector<Tokens> MaskedDataset::sentences(const Row& r) const {
  std::vector<Tokens> out;
  for (std::int64_t s = r.begin; s < r.end; ++s) {
    out.emplace_back(static_cast<std::size_t>(text_->length(s)));
    text_->read(s, 0, out.back());
    for (const std::int32_t token : out.back())
      if (token < 0 || token >= vocabulary_.size)
        fail(Kind::data, text_->name(), ": token ", token, " in sequence ", s, ", the vocabulary has ",
             vocabulary_.size, " tokens; was the data made with another tokenizer?");
  }
  return out;
}

void MaskedDataset::fill(std::int64_t i, Sample& into) const {
  const NumpyRandom random(rules_.seed + static_cast<std::uint32_t>(i));
  into = rules_.model == MaskedModel::bert ? bert(row(i), random) : t5(row(i), random);
}

std::vector<Origin> MaskedDataset::origins(std::int64_t i) const {
  const Row r = row(i);
  std::vector<Origin> out;
  for (std::int64_t s = r.begin; s < r.end; ++s) out.push_back({text_->name(), s, 0, text_->length(s)});
  return out;
}

Sample MaskedDataset::bert(const Row& r, NumpyRandom random) const {
  const auto parts = sentences(r);
  const auto length = static_cast<std::size_t>(rules_.sequence_length);
  Tokens a, b;
  bool swapped = false;
  if (rules_.sentence_order) {
    const std::size_t pivot =
        parts.size() < 3
            ? 1
            : static_cast<std::size_t>(random.randint(1, static_cast<std::int64_t>(parts.size())));
    swapped = random.uniform() < 0.5;
    a = flat(parts, 0, pivot);
    b = flat(parts, pivot, parts.size());
    if (swapped) std::swap(a, b);
  } else {
    a = flat(parts, 0, parts.size());
  }
  Sample sample;
  const bool cut = cut_pair(a, b, r.target, random);
  Tokens tokens = {vocabulary_.cls};
  append(tokens, a);
  tokens.push_back(vocabulary_.sep);
  Tokens types(tokens.size(), 0);
  append(tokens, b);
  if (!b.empty()) tokens.push_back(vocabulary_.sep);
  types.resize(tokens.size(), 1);
  Masked masked =
      mask_tokens(std::move(tokens), r.target, {vocabulary_, rules_.masking, Replacement::bert}, random);
  masked.tokens.resize(length, vocabulary_.pad);
  types.resize(length, 0);  // the original: the padding's id, of which a table of two types may have no row
  Tokens labels(length, -1), loss_mask(length, 0);
  for (const auto& hidden : masked.hidden) {
    labels[static_cast<std::size_t>(hidden.position)] = hidden.original;
    loss_mask[static_cast<std::size_t>(hidden.position)] = 1;
  }
  sample[Field::encoder_mask] = presence(masked.tokens, vocabulary_.pad);
  std::replace(masked.tokens.begin(), masked.tokens.end(), vocabulary_.pad, 0);
  std::replace(labels.begin(), labels.end(), vocabulary_.pad, 0);
  sample[Field::tokens] = std::move(masked.tokens);
  sample[Field::token_types] = std::move(types);
  sample[Field::labels] = std::move(labels);
  sample[Field::loss_mask] = std::move(loss_mask);
  sample[Field::sentence_order] = {swapped ? 1 : 0};
  sample[Field::truncated] = {cut ? 1 : 0};
  return sample;
}

Sample MaskedDataset::t5(const Row& r, NumpyRandom random) const {
  const auto parts = sentences(r);
  Tokens tokens = flat(parts, 0, parts.size());
  const bool cut = static_cast<std::int64_t>(tokens.size()) > r.target;
  if (cut) tokens.resize(static_cast<std::size_t>(r.target));
  const Tokens original = tokens;
  const Masked masked =
      mask_tokens(std::move(tokens), r.target, {vocabulary_, rules_.masking, Replacement::t5}, random);
  if (masked.spans.size() > vocabulary_.sentinels.size()) {
    fail(Kind::usage, "t5: ", masked.spans.size(), " spans are hidden, the tokenizer has ",
         vocabulary_.sentinels.size(), " sentinels; give more {data.tokenizer.extra_ids}");
  }
  Tokens encoder, decoder = {vocabulary_.bos}, labels;
  std::size_t at = 0;
  for (std::size_t k = 0; k < masked.spans.size(); ++k) {
    const auto begin = static_cast<std::size_t>(masked.spans[k].front()),
               end = static_cast<std::size_t>(masked.spans[k].back()) + 1;
    encoder.insert(encoder.end(), masked.tokens.begin() + static_cast<std::ptrdiff_t>(at),
                   masked.tokens.begin() + static_cast<std::ptrdiff_t>(begin));
    encoder.push_back(vocabulary_.sentinels[k]);
    labels.push_back(vocabulary_.sentinels[k]);
    labels.insert(labels.end(), original.begin() + static_cast<std::ptrdiff_t>(begin),
                  original.begin() + static_cast<std::ptrdiff_t>(end));
    at = end;
  }
  encoder.insert(encoder.end(), masked.tokens.begin() + static_cast<std::ptrdiff_t>(at), masked.tokens.end());
  append(decoder, labels);
  labels.push_back(vocabulary_.eos);
  Tokens loss_mask(decoder.size(), 1);
  pad_to(encoder, rules_.sequence_length, vocabulary_.pad, "the encoder's input");
  pad_to(decoder, rules_.decoder_length, vocabulary_.pad, "the decoder's input");
  pad_to(labels, rules_.decoder_length, -1, "the decoder's output");
  loss_mask.resize(decoder.size(), 0);
  Sample sample;
  sample[Field::encoder_mask] = presence(encoder, vocabulary_.pad);
  Tokens read = presence(decoder, vocabulary_.pad);
  read.front() = 1;  // even where it starts with padding
  sample[Field::decoder_mask] = std::move(read);
  for (Tokens* row : {&encoder, &decoder, &labels})
    std::replace(row->begin(), row->end(), vocabulary_.pad, 0);
  sample[Field::encoder_tokens] = std::move(encoder);
  sample[Field::tokens] = std::move(decoder);
  sample[Field::labels] = std::move(labels);
  sample[Field::loss_mask] = std::move(loss_mask);
  sample[Field::truncated] = {cut ? 1 : 0};
  return sample;
}

}  // namespace weft::data
