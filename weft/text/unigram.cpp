// Unigram: the most probable cut, found from left to right over a trie of pieces.
#include <algorithm>
#include <limits>

#include "weft/base/error.h"
#include "weft/text/bpe.h"
#include "weft/text/char_bpe.h"
#include "weft/text/models.h"
#include "weft/text/split.h"
#include "weft/text/unicode.h"

namespace weft {

namespace {

constexpr double unknown_penalty = 10;  // below the worst piece

class Unigram final : public WordModel {
 public:
  explicit Unigram(UnigramParts parts) : parts_(std::move(parts)) {
    // Nodes and bytes are the pairs of a table: (node, byte) -> node, with the piece that ends there for a
    // rank.
    std::vector<Merge> edges;
    std::vector<std::int32_t> piece_at{-1};
    double worst = std::numeric_limits<double>::infinity();
    std::unordered_map<std::uint64_t, std::int32_t> known;
    for (std::size_t k = 0; k < parts_.pieces.size(); ++k) {
      const auto& [piece, score] = parts_.pieces[k];
      vocabulary_.set(piece, static_cast<std::int64_t>(k), "Unigram");
      worst = std::min(worst, score);
      std::int32_t node = 0;
      for (const char letter : piece) {
        const auto byte = static_cast<unsigned char>(letter);
        const auto fresh = static_cast<std::int32_t>(piece_at.size());
        const auto [at, made] = known.try_emplace(static_cast<std::uint64_t>(node) << 8 | byte, fresh);
        if (made) {
          edges.push_back({node, byte, fresh, 0});
          piece_at.push_back(-1);
        }
        node = at->second;
      }
      if (!piece.empty()) piece_at[static_cast<std::size_t>(node)] = static_cast<std::int32_t>(k);
    }
    for (Merge& edge : edges) edge.rank = piece_at[static_cast<std::size_t>(edge.result)];
    trie_ = PairTable(edges);
    unknown_score_ = worst - unknown_penalty;
  }

  void encode(std::string_view word, std::vector<std::int32_t>& ids) const override {
    std::vector<Best> best(word.size() + 1);
    for (std::size_t begin = 0; begin < word.size();) begin += extend(word, begin, best);
    // Unknown pieces that touch are one, and may be a piece after all, or bytes.
    std::vector<ByteRange> cuts;
    bool unknown_before = false;
    for (std::size_t end = word.size(); end > 0; end = best[end].begin) {
      const bool unknown = parts_.unknown >= 0 && best[end].piece == parts_.unknown;
      if (unknown && unknown_before) {
        cuts.back().begin = best[end].begin;
      } else {
        cuts.push_back({best[end].begin, end});
      }
      unknown_before = unknown;
    }
    for (auto cut = cuts.rbegin(); cut != cuts.rend(); ++cut)
      add(word.substr(cut->begin, cut->end - cut->begin), ids);
  }

 private:
  struct Best {
    double score = 0;
    std::size_t begin = none;
    std::int32_t piece = -1;
    static constexpr std::size_t none = SIZE_MAX;
    void offer(double other, std::size_t from, std::int32_t with) {
      if (begin == none || other > score) *this = {other, from, with};
    }
  };

  // Offers every piece that begins here; returns the length of the character.
  std::size_t extend(std::string_view word, std::size_t begin, std::vector<Best>& best) const {
    const std::size_t character = unicode::rune_at(word, begin).bytes;
    const double here = best[begin].score;
    bool single = false;
    std::int32_t node = 0;
    for (std::size_t at = begin; at < word.size(); ++at) {
      const auto step = trie_.find(node, static_cast<unsigned char>(word[at]));
      if (step.result < 0) break;
      node = step.result;
      if (step.rank < 0) continue;
      const double score = parts_.pieces[static_cast<std::size_t>(step.rank)].second;
      best[at + 1].offer(here + score, begin, step.rank);
      single = single || at + 1 - begin == character;
    }
    if (!single) {
      if (parts_.unknown < 0) {
        fail(Kind::data, "Unigram: '", word.substr(begin, character),
             "' is in no piece, and the model has no unknown one");
      }
      best[begin + character].offer(here + unknown_score_, begin, parts_.unknown);
    }
    return character;
  }

  void add(std::string_view piece, std::vector<std::int32_t>& ids) const {
    if (const auto id = vocabulary_.id(piece)) {
      ids.push_back(*id);
    } else if (!parts_.byte_fallback || !append_byte_tokens(piece, vocabulary_, ids)) {
      ids.push_back(parts_.unknown);
    }
  }

  UnigramParts parts_;
  Vocabulary vocabulary_;
  PairTable trie_;
  double unknown_score_ = 0;
};

}  // namespace

std::unique_ptr<WordModel> make_unigram(UnigramParts parts) {
  return std::make_unique<Unigram>(std::move(parts));
}

}  // namespace weft
