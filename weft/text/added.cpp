// AddedTokens: a trie over contents, and the rules of words and white space around a match.
#include "weft/text/added.h"

#include <algorithm>

#include "weft/text/unicode.h"

namespace weft {

namespace {

bool word_before(std::string_view text, std::size_t at) {
  return at > 0 && unicode::is_word(unicode::rune_at(text, unicode::previous(text, at)).code);
}

bool word_after(std::string_view text, std::size_t at) {
  return at < text.size() && unicode::is_word(unicode::rune_at(text, at).code);
}

std::size_t spaces_before(std::string_view text, std::size_t at) {
  while (at > 0) {
    const std::size_t previous = unicode::previous(text, at);
    if (!unicode::is_space(unicode::rune_at(text, previous).code)) break;
    at = previous;
  }
  return at;
}

std::size_t spaces_after(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const unicode::Rune rune = unicode::rune_at(text, at);
    if (!unicode::is_space(rune.code)) break;
    at += rune.bytes;
  }
  return at;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)), nodes_(1) {
  for (std::size_t k = 0; k < tokens_.size(); ++k) {
    const std::string& content = tokens_[k].content;
    if (content.empty()) continue;
    std::uint32_t node = 0;
    for (const char letter : content) {
      const auto byte = static_cast<unsigned char>(letter);
      const auto [at, fresh] = nodes_[node].next.try_emplace(byte, static_cast<std::uint32_t>(nodes_.size()));
      node = at->second;
      if (fresh) nodes_.emplace_back();
    }
    if (nodes_[node].token < 0) nodes_[node].token = static_cast<std::int32_t>(k);
    starts_[static_cast<unsigned char>(content[0])] = true;
  }
}

AddedTokens::TokenMatch AddedTokens::find(std::string_view text, std::size_t from) const {
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    if (!starts_[static_cast<unsigned char>(text[begin])]) continue;
    TokenMatch found;
    std::uint32_t node = 0;
    for (std::size_t at = begin; at < text.size(); ++at) {
      const auto& next = nodes_[node].next;
      const auto step = next.find(static_cast<unsigned char>(text[at]));
      if (step == next.end()) break;
      node = step->second;
      if (nodes_[node].token >= 0) found = {begin, at + 1, nodes_[node].token};
    }
    if (found.token >= 0) return found;
  }
  return {text.size(), text.size(), -1};
}

void AddedTokens::split(std::string_view text, std::vector<TextPart>& parts) const {
  std::size_t done = 0;
  for (std::size_t from = 0; !tokens_.empty() && from < text.size();) {
    const TokenMatch found = find(text, from);
    if (found.token < 0) break;
    from = found.end;
    const AddedToken& token = tokens_[static_cast<std::size_t>(found.token)];
    if (token.single_word && (word_before(text, found.begin) || word_after(text, found.end))) continue;
    // White space that the token before has taken stays taken; what this one takes is not searched again only
    // up to its own end, as in the original.
    const std::size_t begin = token.lstrip ? std::max(spaces_before(text, found.begin), done) : found.begin;
    const std::size_t end = token.rstrip ? spaces_after(text, found.end) : found.end;
    if (begin > done) parts.push_back({done, begin});
    parts.push_back({begin, end, token.id});
    done = end;
  }
  if (done < text.size()) parts.push_back({done, text.size()});
}

}  // namespace weft
