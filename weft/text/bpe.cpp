#include "weft/text/bpe.h"

#include <algorithm>
#include <bit>
#include <queue>
#include <unordered_map>

namespace weft {

PairTable::PairTable(std::span<const Merge> merges) {
  const std::size_t slots = std::bit_ceil(merges.size() * 2 + 16);
  slots_.assign(slots, Merge{.left = -1, .right = -1, .result = -1, .rank = none});
  mask_ = slots - 1;
  shift_ = 64 - std::countr_zero(slots);
  for (const Merge& merge : merges) {
    std::size_t at = home(merge.left, merge.right);
    while (slots_[at].left >= 0 && (slots_[at].left != merge.left || slots_[at].right != merge.right)) {
      at = (at + 1) & mask_;
    }
    // A pair listed twice keeps its last rank, as a map built line by line does.
    slots_[at] = merge;
  }
}

std::size_t Joiner::join_short(std::int32_t* symbols, std::size_t count) const {
  PairTable::MergeResult pair[long_word];
  for (std::size_t k = 0; k + 1 < count; ++k) pair[k] = pairs_.find(symbols[k], symbols[k + 1]);
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t k = 1; k + 1 < count; ++k) {
      if (pair[k].rank < pair[best].rank) best = k;
    }
    if (pair[best].rank == PairTable::none) break;
    symbols[best] = pair[best].result;
    --count;
    for (std::size_t k = best + 1; k < count; ++k) {
      symbols[k] = symbols[k + 1];
      pair[k - 1] = pair[k];
    }
    if (best + 1 < count) pair[best] = pairs_.find(symbols[best], symbols[best + 1]);
    if (best > 0) pair[best - 1] = pairs_.find(symbols[best - 1], symbols[best]);
  }
  return count;
}

void Joiner::join(std::vector<std::int32_t>& symbols) const {
  if (symbols.size() < long_word) {
    symbols.resize(join_short(symbols.data(), symbols.size()));
  } else {
    join_long(symbols);
  }
}

// Symbols form a linked list through `next` and `before`; a joined symbol lives on at its left end and its
// right part becomes -1. The heap holds every pair that ever was adjacent; one that no longer is, is known by
// its symbols.
void Joiner::join_long(std::vector<std::int32_t>& symbols) const {
  struct Waiting {
    std::int32_t rank, result, left, right;
    std::size_t at;
    bool operator>(const Waiting& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  const std::size_t end = symbols.size();
  std::vector<std::size_t> next(end), before(end);
  std::vector<Waiting> first;
  const auto pair_at = [&](std::size_t at) {
    const auto found = pairs_.find(symbols[at], symbols[next[at]]);
    return Waiting{found.rank, found.result, symbols[at], symbols[next[at]], at};
  };
  for (std::size_t k = 0; k < end; ++k) next[k] = k + 1, before[k] = k == 0 ? end : k - 1;
  for (std::size_t k = 0; k + 1 < end; ++k) {
    if (const Waiting one = pair_at(k); one.rank != PairTable::none) first.push_back(one);
  }
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> queue({}, std::move(first));
  while (!queue.empty()) {
    const Waiting top = queue.top();
    queue.pop();
    const std::size_t at = top.at;
    if (symbols[at] != top.left || next[at] >= end || symbols[next[at]] != top.right) continue;
    const std::size_t gone = next[at];
    symbols[at] = top.result;
    symbols[gone] = -1;
    next[at] = next[gone];
    if (next[at] < end) before[next[at]] = at;
    for (const std::size_t left : {before[at], at}) {
      if (left >= end || next[left] >= end) continue;
      if (const Waiting one = pair_at(left); one.rank != PairTable::none) queue.push(one);
    }
  }
  std::erase_if(symbols, [](std::int32_t symbol) { return symbol < 0; });
}

BytePairs::BytePairs(const BytePairParts& parts)
    : joiner_(PairTable(parts.merges)),
      byte_ids_(256, -1),
      words_(std::size_t(std::ranges::count_if(parts.tokens, [](const auto& x) { return !x.empty(); }))) {
  for (std::size_t id = 0; id < parts.tokens.size(); ++id) {
    const std::string& token = parts.tokens[id];
    if (token.size() == 1) byte_ids_[static_cast<unsigned char>(token[0])] = static_cast<std::int32_t>(id);
  }
  std::vector<std::int32_t> ids;
  for (std::size_t id = 0; id < parts.tokens.size(); ++id) {
    const std::string& token = parts.tokens[id];
    const auto symbol = static_cast<std::int32_t>(id);
    if (!parts.whole_first) {
      // A token is found whole only if the merges make it from its own bytes.
      ids.clear();
      merge(token, ids);
      if (ids.size() != 1 || ids[0] != symbol) continue;
    }
    words_.insert(token, symbol);
  }
}

void BytePairs::merge(std::string_view piece, std::vector<std::int32_t>& ids) const {
  if (piece.size() < Joiner::long_word) {
    std::int32_t symbols[Joiner::long_word];
    std::size_t count = 0;
    for (const char byte : piece) {
      const std::int32_t symbol = byte_ids_[static_cast<unsigned char>(byte)];
      symbols[count] = symbol;
      count += symbol >= 0 ? 1 : 0;
    }
    const std::size_t left = joiner_.join_short(symbols, count);
    ids.insert(ids.end(), symbols, symbols + left);
    return;
  }
  std::vector<std::int32_t> symbols;
  symbols.reserve(piece.size());
  for (const char byte : piece) {
    const std::int32_t symbol = byte_ids_[static_cast<unsigned char>(byte)];
    if (symbol >= 0) symbols.push_back(symbol);
  }
  joiner_.join(symbols);
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

void BytePairs::encode(std::string_view piece, std::vector<std::int32_t>& ids) const {
  if (const std::int32_t id = words_.find(piece); id >= 0) {
    ids.push_back(id);
  } else {
    merge(piece, ids);
  }
}

void BytePairs::encode(std::string_view piece, std::vector<std::int32_t>& ids, WordCache& cache) const {
  if (piece.size() > WordKey::most) return encode(piece, ids);
  if (const std::int32_t id = words_.find(piece); id >= 0) {
    ids.push_back(id);
    return;
  }
  const WordKey key(piece);
  WordCache::Entry& entry = cache.place(key, piece.size());
  if (WordCache::holds(entry, key, piece.size())) {
    ids.insert(ids.end(), entry.ids, entry.ids + entry.count);
    return;
  }
  const std::size_t start = ids.size();
  merge(piece, ids);
  const std::size_t count = ids.size() - start;
  if (count > WordCache::most_ids) return;
  entry.low = key.low;
  entry.high = key.high;
  entry.length = static_cast<std::uint32_t>(piece.size());
  entry.count = static_cast<std::uint32_t>(count);
  std::copy(ids.begin() + static_cast<std::ptrdiff_t>(start), ids.end(), entry.ids);
}

std::vector<Merge> merges_of_ranks(std::span<const std::string> tokens_by_rank,
                                   std::span<const std::int32_t> ids) {
  std::unordered_map<std::string_view, std::int32_t> id_of;
  id_of.reserve(tokens_by_rank.size() * 2);
  for (std::size_t k = 0; k < tokens_by_rank.size(); ++k) id_of.try_emplace(tokens_by_rank[k], ids[k]);
  std::vector<Merge> merges;
  for (std::size_t k = 0; k < tokens_by_rank.size(); ++k) {
    const std::string_view token = tokens_by_rank[k];
    for (std::size_t cut = 1; cut < token.size(); ++cut) {
      const auto left = id_of.find(token.substr(0, cut));
      if (left == id_of.end()) continue;
      const auto right = id_of.find(token.substr(cut));
      if (right == id_of.end()) continue;
      merges.push_back({left->second, right->second, ids[k], static_cast<std::int32_t>(k)});
    }
  }
  return merges;
}

}  // namespace weft
