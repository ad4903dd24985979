// What training writes: vocab.json, merges.txt and tokenizer.json.
#include <nlohmann/json.hpp>

#include "weft/text/train.h"

namespace weft {

using nlohmann::ordered_json;

namespace {

ordered_json vocabulary(const TrainedBpe& bpe, std::size_t count) {
  ordered_json out = ordered_json::object();
  // push_back keeps the order without looking for the key in all that is there.
  auto& object = out.get_ref<ordered_json::object_t&>();
  object.reserve(count);
  for (std::size_t id = 0; id < count; ++id) object.push_back({bpe.tokens[id], id});
  return out;
}

}  // namespace

std::string vocab_json(const TrainedBpe& bpe) { return vocabulary(bpe, bpe.tokens.size()).dump() + "\n"; }

std::string merges_txt(const TrainedBpe& bpe) {
  std::string out = "#version: 0.2\n";
  for (const auto& [left, right] : bpe.merges) out.append(left).append(" ").append(right) += '\n';
  return out;
}

std::string tokenizer_json(const TrainedBpe& bpe) {
  ordered_json added = ordered_json::array();
  const std::size_t plain = bpe.tokens.size() - bpe.special.size();
  for (std::size_t k = 0; k < bpe.special.size(); ++k) {
    added.push_back({{"id", plain + k},
                     {"content", bpe.special[k]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  ordered_json merges = ordered_json::array();
  for (const auto& [left, right] : bpe.merges) merges.push_back({left, right});
  const bool gpt2 = bpe.pattern == gpt2_pattern();
  const ordered_json byte_level{
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", gpt2}};
  ordered_json cut = byte_level;
  if (!gpt2) {
    const ordered_json by_pattern{{"type", "Split"},
                                  {"pattern", {{"Regex", bpe.pattern}}},
                                  {"behavior", "Isolated"},
                                  {"invert", false}};
    cut = {{"type", "Sequence"}, {"pretokenizers", ordered_json::array({by_pattern, byte_level})}};
  }
  ordered_json model{{"type", "BPE"},
                     {"dropout", nullptr},
                     {"unk_token", nullptr},
                     {"continuing_subword_prefix", nullptr},
                     {"end_of_word_suffix", nullptr},
                     {"fuse_unk", false},
                     {"byte_fallback", false},
                     {"ignore_merges", false}};
  model["vocab"] = vocabulary(bpe, plain);
  model["merges"] = std::move(merges);
  ordered_json out{{"version", "1.0"},
                   {"truncation", nullptr},
                   {"padding", nullptr},
                   {"added_tokens", added},
                   {"normalizer", nullptr}};
  out["pre_tokenizer"] = std::move(cut);
  out["post_processor"] = byte_level;
  out["decoder"] = byte_level;
  out["model"] = std::move(model);
  return out.dump(2) + "\n";
}

}  // namespace weft
