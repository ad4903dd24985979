#include "weft/text/train.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <numeric>
#include <queue>
#include <unordered_map>

#include "weft/base/error.h"
#include "weft/base/workers.h"
#include "weft/text/bytes.h"

namespace weft {

WordCounts count_words(std::int64_t parts, const TextsOf& texts, std::string_view pattern, int threads) {
  const auto splitter = make_splitter(pattern, Dialect::oniguruma);
  const int team = std::max(threads, 1);
  std::vector<WordCounts> counts(static_cast<std::size_t>(team));
  std::atomic<std::int64_t> next = 0;
  Workers workers(team - 1);
  const auto count = [&](std::int64_t begin, std::int64_t) {
    WordCounts& mine = counts[static_cast<std::size_t>(begin)];
    const auto each = [&](std::string_view text) { mine.add_text(text, *splitter); };
    for (std::int64_t part = next++; part < parts; part = next++) texts(part, each);
  };
  workers.parallel_for(team, count, team);
  for (std::size_t k = 1; k < counts.size(); ++k) counts[0].add(counts[k]);
  return std::move(counts[0]);
}

std::vector<ByteRange> parts_of(std::string_view text, std::size_t about) {
  const auto white = [](char letter) { return letter == ' ' || (letter >= '\t' && letter <= '\r'); };
  std::vector<ByteRange> parts;
  std::size_t begin = 0;
  for (std::size_t at = about; at < text.size(); ++at) {
    at = text.find('\n', at);
    if (at == std::string_view::npos || at + 1 >= text.size()) break;
    // Behind "x\n" and before a letter or digit every known pattern ends a piece.
    const auto after = static_cast<unsigned char>(text[at + 1]);
    const bool plain = std::isalnum(after) != 0;
    if (white(text[at - 1]) || static_cast<unsigned char>(text[at - 1]) >= 0x80 || !plain) continue;
    parts.push_back({begin, at + 1});
    begin = at + 1;
    at += about;
  }
  if (begin < text.size()) parts.push_back({begin, text.size()});
  return parts;
}

namespace {

using Pair = std::uint64_t;

Pair pair_of(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

struct PairState {
  Pair pair = 0;
  std::int64_t times = 0;
  std::vector<std::uint32_t> words;  // where it was seen; it may be gone since
  bool fresh = false;                // seen more often since it was last put into the heap
};

// Pairs by name, in an open table.
class Pairs {
 public:
  Pairs() : slots_(std::size_t{1} << 12) {}
  std::uint32_t index(Pair pair) {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = hash(pair) & mask;; at = (at + 1) & mask) {
      if (slots_[at] == 0) {
        states_.push_back({.pair = pair, .times = 0, .words = {}, .fresh = false});
        slots_[at] = static_cast<std::uint32_t>(states_.size());
        if (states_.size() * 2 > slots_.size()) grow();
        return static_cast<std::uint32_t>(states_.size() - 1);
      }
      if (states_[slots_[at] - 1].pair == pair) return slots_[at] - 1;
    }
  }
  PairState& operator[](std::uint32_t index) { return states_[index]; }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(states_.size()); }

 private:
  static std::size_t hash(Pair pair) {
    const std::uint64_t mixed = pair * 0x9e3779b97f4a7c15u;
    return static_cast<std::size_t>(mixed ^ mixed >> 29);
  }
  void grow() {
    slots_.assign(slots_.size() * 2, 0);
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t k = 0; k < states_.size(); ++k) {
      std::size_t at = hash(states_[k].pair) & mask;
      while (slots_[at] != 0) at = (at + 1) & mask;
      slots_[at] = static_cast<std::uint32_t>(k + 1);
    }
  }
  std::vector<PairState> states_;
  std::vector<std::uint32_t> slots_;
};

// The words as symbols, the pairs they hold, and the heap of what to merge next.
class Trainer {
 public:
  explicit Trainer(const WordCounts& words) {
    std::array<std::int32_t, 256> id_of_byte{};
    std::array<int, 256> order{};
    std::iota(order.begin(), order.end(), 0);
    const auto code = [](int byte) { return byte_alphabet.code_of(static_cast<unsigned char>(byte)); };
    std::sort(order.begin(), order.end(), [&](int a, int b) { return code(a) < code(b); });
    for (std::size_t k = 0; k < 256; ++k) {
      id_of_byte[static_cast<std::size_t>(order[k])] = static_cast<std::int32_t>(k);
      add_token(byte_alphabet.written(std::string(1, static_cast<char>(order[k]))));
    }
    for (std::size_t k = 0; k < words.size(); ++k) {
      if (words.word(k).size() < 2) continue;
      const auto begin = static_cast<std::uint32_t>(symbols_.size());
      if (symbols_.size() + words.word(k).size() > UINT32_MAX) {
        fail(Kind::data, "tokenizer train: more than ", UINT32_MAX, " bytes of different words");
      }
      for (const char byte : words.word(k)) symbols_.push_back(id_of_byte[static_cast<unsigned char>(byte)]);
      words_.push_back({begin, static_cast<std::uint32_t>(words.word(k).size()), words.times(k)});
    }
    count_pairs();
  }

  // Merges the most frequent pair; false where none is frequent enough.
  bool step(std::int64_t min_frequency) {
    while (!heap_.empty()) {
      Waiting top = heap_.top();
      heap_.pop();
      PairState& state = pairs_[top.index];
      if (top.times != state.times) {
        top.times = state.times;
        if (top.times > 0) heap_.push(top);
        continue;
      }
      if (top.times < std::max<std::int64_t>(min_frequency, 1)) return false;
      merge(top.index);
      return true;
    }
    return false;
  }
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }
  [[nodiscard]] TrainedBpe result() && {
    return {.tokens = std::move(tokens_), .merges = std::move(merges_), .pattern = {}, .special = {}};
  }

 private:
  struct Word {
    std::uint32_t begin = 0, length = 0;
    std::int64_t times = 0;
  };
  struct Waiting {
    std::int64_t times;
    Pair pair;
    std::uint32_t index;
    bool operator<(const Waiting& other) const {
      return times != other.times ? times < other.times : pair > other.pair;
    }
  };

  std::int32_t add_token(const std::string& token) {
    const auto [at, fresh] = ids_.try_emplace(token, static_cast<std::int32_t>(tokens_.size()));
    if (fresh) tokens_.push_back(token);
    return at->second;
  }

  void count_pairs() {
    for (std::uint32_t w = 0; w < words_.size(); ++w) {
      const Word& word = words_[w];
      for (std::uint32_t k = word.begin; k + 1 < word.begin + word.length; ++k) {
        PairState& state = pairs_[pairs_.index(pair_of(symbols_[k], symbols_[k + 1]))];
        state.times += word.times;
        if (state.words.empty() || state.words.back() != w) state.words.push_back(w);
      }
    }
    std::vector<Waiting> first;
    for (std::uint32_t k = 0; k < pairs_.size(); ++k) first.push_back({pairs_[k].times, pairs_[k].pair, k});
    heap_ = std::priority_queue<Waiting>({}, std::move(first));
  }

  void change(std::int32_t left, std::int32_t right, std::int64_t by, std::uint32_t w) {
    const std::uint32_t index = pairs_.index(pair_of(left, right));
    PairState& state = pairs_[index];
    state.times += by;
    if (by < 0) return;
    if (state.words.empty() || state.words.back() != w) state.words.push_back(w);
    if (!state.fresh) {
      state.fresh = true;
      risen_.push_back(index);
    }
  }

  void merge(std::uint32_t index) {
    const Pair pair = pairs_[index].pair;
    const auto left = static_cast<std::int32_t>(pair >> 32), right = static_cast<std::int32_t>(pair);
    merges_.emplace_back(tokens_[static_cast<std::size_t>(left)], tokens_[static_cast<std::size_t>(right)]);
    const std::int32_t joined = add_token(merges_.back().first + merges_.back().second);
    const std::vector<std::uint32_t> where = std::move(pairs_[index].words);
    pairs_[index].words.clear();
    for (const std::uint32_t w : where) merge_in(w, left, right, joined);
    pairs_[index].times = 0;
    for (const std::uint32_t risen : risen_) {
      PairState& state = pairs_[risen];
      state.fresh = false;
      if (state.times > 0) heap_.push({state.times, state.pair, risen});
    }
    risen_.clear();
  }

  void merge_in(std::uint32_t w, std::int32_t left, std::int32_t right, std::int32_t joined) {
    Word& word = words_[w];
    std::int32_t* symbols = symbols_.data() + word.begin;
    std::uint32_t to = 0;
    for (std::uint32_t from = 0; from < word.length; ++to) {
      if (symbols[from] != left || from + 1 == word.length || symbols[from + 1] != right) {
        symbols[to] = symbols[from++];
        continue;
      }
      if (to > 0) {
        change(symbols[to - 1], left, -word.times, w);
        change(symbols[to - 1], joined, word.times, w);
      }
      from += 2;
      if (from < word.length) {
        change(right, symbols[from], -word.times, w);
        change(joined, symbols[from], word.times, w);
      }
      symbols[to] = joined;
    }
    word.length = to;
  }

  std::vector<std::string> tokens_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::vector<std::pair<std::string, std::string>> merges_;
  std::vector<std::int32_t> symbols_;
  std::vector<Word> words_;
  Pairs pairs_;
  std::priority_queue<Waiting> heap_;
  std::vector<std::uint32_t> risen_;
};

}  // namespace

TrainedBpe train_bpe(const WordCounts& words, std::string_view pattern, const TrainBpeOptions& options,
                     const std::function<void(std::int64_t)>& told) {
  const auto special = static_cast<std::int64_t>(options.special.size());
  if (options.vocabulary < 256 + special) {
    fail(Kind::usage, "tokenizer train: a vocabulary of ", options.vocabulary,
         ", expected at least 256 bytes and ", special, " special tokens: ", 256 + special);
  }
  Trainer trainer(words);
  while (trainer.size() < options.vocabulary - special && trainer.step(options.min_frequency)) {
    if (told && trainer.size() % 256 == 0) told(trainer.size());
  }
  TrainedBpe bpe = std::move(trainer).result();
  for (const std::string& token : options.special) {
    if (std::find(bpe.tokens.begin(), bpe.tokens.end(), token) != bpe.tokens.end()) {
      fail(Kind::usage, "tokenizer train: special token '", token, "' is a token already");
    }
    bpe.tokens.push_back(token);
  }
  bpe.special = options.special;
  bpe.pattern = pattern;
  return bpe;
}

}  // namespace weft
