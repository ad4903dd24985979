// The fields of what a run reads: data sets, tokenizer, and how samples are made of them.
#pragma once

#include "weft/base/legal.h"
#include "weft/base/on_resume.h"
#include "weft/text/open.h"
#include "weft/train/config.h"

namespace weft {

template <class Visitor>
void describe(Visitor& v, TokenizerConfig& c) {
  v("type", c.type, OnResume::free, "kind of tokenizer");
  v("model", c.model, OnResume::free, "tokenizer file, or directory of a Hugging Face model");
  v("vocab_file", c.vocab_file, OnResume::free, "vocabulary");
  v("merge_file", c.merge_file, OnResume::free, "merges of a byte-level BPE");
  v("pattern", c.pattern, OnResume::free, "which split pattern a tiktoken file goes with");
  v("num_special", c.num_special, OnResume::free, "special ids before the ranks of a tiktoken file",
    special_token_count);
  v("special", c.special, OnResume::free, "further special tokens");
  v("extra_ids", c.extra_ids, OnResume::free, "sentinel ids at the end of the vocabulary",
    special_token_count);
  v("legacy", c.legacy, OnResume::free,
    "BERT's vocabularies as Megatron had them up to 0.14: [BOS] and [EOS] behind the words");
  v("wraps_text", c.wraps_text, OnResume::free, "keep what a tokenizer.json puts around every text");
  v("legacy_pieces", c.legacy_pieces, OnResume::free, "special tokens behind a SentencePiece model's pieces");
  v("drops_spaces", c.drops_spaces, OnResume::free,
    "let a SentencePiece model drop repeated spaces, if it does");
  v("eod_id", c.eod_id, OnResume::free, "end of document of NullTokenizer, in place of the last id",
    legal::size_or_none);
  v("pad_id", c.pad_id, OnResume::free, "padding of NullTokenizer", legal::from_to(-1, legal::size_limit));
}

template <class Visitor>
void describe(Visitor& v, FimConfig& c) {
  v("on", c.on, OnResume::step, "cut documents in three, and ask for the middle last");
  v("rate", c.rate, OnResume::step, "part of the documents that are cut", legal::fraction);
  v("suffix_first_rate", c.suffix_first_rate, OnResume::step,
    "part of these whose suffix comes before the prefix", legal::fraction);
  v("split", c.split, OnResume::step,
    "a token that ends fragments of a document, which are then cut one by one");
  v("fragment_rate", c.fragment_rate, OnResume::step, "part of the fragments that are cut", legal::fraction);
  v("spared", c.spared, OnResume::step, "documents that begin with this text stay as they are");
  v("prefix", c.prefix, OnResume::step, "token before the prefix");
  v("middle", c.middle, OnResume::step, "token before the middle");
  v("suffix", c.suffix, OnResume::step, "token before the suffix");
  v("pad", c.pad, OnResume::step, "token that fills what a sample got shorter by");
  v("eod", c.eod, OnResume::step, "token that ends documents");
}

template <class Visitor>
void describe(Visitor& v, ChatConfig& c) {
  v("on", c.on, OnResume::step, "train on conversations: JSON lines of messages, loss on the answers");
  v("format", c.format, OnResume::step,
    "how messages become text: nemotron-h-aligned, nemotron-nano-v2, identity, or default, the template that "
    "came with the tokenizer");
  v("learned", c.learned, OnResume::step,
    "what the loss counts: the answers alone, the last answer of each conversation, all words, or what goes "
    "with the format: answers, and with default all");
}

template <class Visitor>
void describe(Visitor& v, MaskingConfig& c) {
  v("probability", c.probability, OnResume::step, "share of the words that BERT and T5 are to guess",
    legal::fraction);
  v("short_probability", c.short_probability, OnResume::step,
    "share of samples that are cut for a shorter length", legal::fraction);
}

template <class Visitor>
void describe(Visitor& v, DifficultyConfig& c) {
  v("metrics", c.metrics, OnResume::step,
    "samples by difficulty: NAME:key=value,… for each metric, whose keys are samples, values, by, clusters, "
    "curve, least, most, steps, multiple, root, levels and until");
  v("seed", c.seed, OnResume::step, "of the order of samples by difficulty", legal::from_to(0, 4294967295.0));
}

template <class Visitor>
void describe(Visitor& v, DataConfig& c) {
  v("paths", c.paths, OnResume::step,
    "token files without .bin or .idx, or weight and file in turn; cut by the split");
  v("train_paths", c.train_paths, OnResume::step, "token files for training");
  v("valid_paths", c.valid_paths, OnResume::step, "token files for validation");
  v("test_paths", c.test_paths, OnResume::step, "token files for the final test");
  v("paths_file", c.paths_file, OnResume::step, "a file that holds the list of token files");
  v("per_split_file", c.per_split_file, OnResume::step,
    "a JSON file with a list of token files for each split");
  v("split", c.split, OnResume::step, "proportions of training, validation and test documents");
  v("mock", c.mock, OnResume::step, "train on made-up documents");
  v("cache", c.cache, OnResume::free, "where indices are kept");
  v("cache_version", c.cache_version, OnResume::free,
    "the release of Megatron core that names cached indices, such as 0.16; left out: the newest");
  v("cache_tokenizer", c.cache_tokenizer, OnResume::free,
    "a JSON file that stands for the tokenizer in the names of cached indices");
  v("index", c.index, OnResume::step, "a stored shuffle as Megatron's, or one that is computed");
  v("exact_epochs", c.exact_epochs, OnResume::step,
    "so many epochs of the training documents, no more and no fewer (0: as many as the run takes)",
    legal::from_to(0, 1e6));
  v("order", c.order, OnResume::step, "one pass over the samples, or shuffled passes");
  v("sharded_cycles", c.sharded_cycles, OnResume::step,
    "cyclic: every data-parallel rank shuffles a part of its own");
  v("mask_eod_loss", c.mask_eod_loss, OnResume::step, "no loss where the end of a document is predicted");
  v("reset_positions", c.reset_positions, OnResume::step,
    "positions start again after the end of a document");
  v("reset_attention", c.reset_attention, OnResume::step, "a document does not see the one before it");
  v("between_documents", c.between_documents, OnResume::step,
    "attention and positions begin anew with each document of the data, whatever its tokens");
  v("ambiguous_pad", c.ambiguous_pad, OnResume::step,
    "a padding token counts as such even where it is another one too");
  v("partial_validation", c.partial_validation, OnResume::step,
    "pad and keep the last, shorter validation sample");
  v("separate_validation", c.separate_validation, OnResume::step,
    "a loss for each validation set instead of their blend");
  v("validation_names", c.validation_names, OnResume::step,
    "names of the validation sets, in place of their numbers");
  v.group("tokenizer", c.tokenizer);
  v.group("fim", c.fim);
  v.group("chat", c.chat);
  v.group("masking", c.masking);
  v.group("difficulty", c.difficulty);
}

}  // namespace weft
