#include "weft/text/pipeline.h"

#include <algorithm>
#include <array>

#include "weft/base/error.h"
#include "weft/text/unicode.h"

namespace weft {

void check_id(std::int32_t id, std::int32_t size) {
  if (id < 0 || id >= size) {
    fail(Kind::usage, "tokenizer: id ", id, " is outside a vocabulary of ", size, " tokens");
  }
}

namespace {

// The bytes of a text's first character.
std::size_t head_of(std::string_view text) { return text.empty() ? 0 : unicode::rune_at(text, 0).bytes; }

}  // namespace

void add_special(const std::vector<std::string>& tokens, PipelineParts& parts) {
  for (const std::string& token : tokens) {
    if (!parts.vocabulary.id(token)) parts.vocabulary.set(token, parts.vocabulary.size(), "special tokens");
    parts.added.push_back({.content = token, .id = *parts.vocabulary.id(token)});
  }
}

Pipeline::Pipeline(PipelineParts parts) : parts_(std::move(parts)) {
  std::vector<AddedToken> raw, normalized;
  for (const AddedToken& token : parts_.added) {
    if (token.special) special_ids_.insert(token.id);
    if (token.special && parts_.split_special) continue;
    if (!token.normalized || parts_.normalizer == nullptr) {
      // Without a normalizer both kinds are looked for in the same text, those of the raw text first.
      (token.normalized ? normalized : raw).push_back(token);
    } else {
      AddedToken changed = token;
      changed.content = parts_.normalizer->apply(changed.content);
      normalized.push_back(changed);
    }
  }
  raw_ = AddedTokens(std::move(raw));
  normalized_ = AddedTokens(std::move(normalized));
}

std::vector<std::int32_t> Pipeline::encode(std::string_view utf8) const {
  std::string repaired;
  if (!unicode::valid(utf8)) {
    repaired = unicode::repaired(utf8);
    utf8 = repaired;
  }
  std::vector<std::int32_t> ids;
  ids.reserve(utf8.size() / 3 + 16);
  ids.insert(ids.end(), parts_.before.begin(), parts_.before.end());
  std::vector<AddedTokens::TextPart> parts;
  raw_.split(utf8, parts);
  for (const auto& part : parts) {
    if (part.id >= 0) {
      ids.push_back(part.id);
      continue;
    }
    const std::string_view stretch = utf8.substr(part.begin, part.end - part.begin);
    if (parts_.normalizer == nullptr) {
      encode_rest(stretch, part.begin == 0 ? head_of(stretch) : 0, ids);
    } else {
      const std::string normalized = parts_.normalizer->apply(std::string(stretch));
      encode_rest(normalized, part.begin == 0 ? normalized_head(stretch, normalized) : 0, ids);
    }
  }
  ids.insert(ids.end(), parts_.after.begin(), parts_.after.end());
  return ids;
}

// What the text's first character became: as much of it as still stands there where a normalizer joined it
// with its neighbors, and a byte at least if it did not fall away.
std::size_t Pipeline::normalized_head(std::string_view text, std::string_view normalized) const {
  const std::string head = parts_.normalizer->apply(std::string(text.substr(0, head_of(text))));
  const auto kept = static_cast<std::size_t>(std::ranges::mismatch(head, normalized).in1 - head.begin());
  return head.empty() ? 0 : std::max<std::size_t>(kept, 1);
}

void Pipeline::encode_rest(std::string_view text, std::size_t head, std::vector<std::int32_t>& ids) const {
  if (normalized_.empty()) {
    if (!text.empty()) parts_.encoder->encode(text, head, ids);
    return;
  }
  std::vector<AddedTokens::TextPart> parts;
  normalized_.split(text, parts);
  for (const auto& part : parts) {
    if (part.id >= 0) {
      ids.push_back(part.id);
    } else {
      const std::size_t rest = head > part.begin ? head - part.begin : 0;
      parts_.encoder->encode(text.substr(part.begin, part.end - part.begin), rest, ids);
    }
  }
}

std::string Pipeline::decode(std::span<const std::int32_t> ids) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const std::int32_t id : ids) {
    check_id(id, size());
    if (parts_.vocabulary.names(id)) tokens.push_back(parts_.vocabulary.token(id));
  }
  return parts_.decoder->decode(std::move(tokens));
}

std::optional<std::int32_t> Pipeline::special(std::string_view name) const {
  const auto named = parts_.named.find(std::string(name));
  if (named != parts_.named.end()) return parts_.vocabulary.id(named->second);
  // A part that no token has is none: "pad" may be an ordinary word.
  constexpr std::array<std::string_view, 8> token_parts = {"eod", "bos", "eos", "pad",
                                                           "unk", "cls", "sep", "mask"};
  if (std::ranges::find(token_parts, name) != token_parts.end()) return std::nullopt;
  return parts_.vocabulary.id(name);
}

}  // namespace weft
