#include "weft/text/byte_level.h"

#include <mutex>

#include "weft/text/bytes.h"
#include "weft/text/unicode.h"

namespace weft {

namespace {

// Lends a cache to each call; there are never more of them than calls at one time.
class CachePool {
 public:
  class Lent {
   public:
    explicit Lent(CachePool& pool) : pool_(pool), cache_(pool.take()) {}
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;
    ~Lent() { pool_.put(std::move(cache_)); }
    WordCache& operator*() const { return *cache_; }

   private:
    CachePool& pool_;
    std::unique_ptr<WordCache> cache_;
  };

 private:
  std::unique_ptr<WordCache> take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<WordCache>();
    auto cache = std::move(idle_.back());
    idle_.pop_back();
    return cache;
  }
  void put(std::unique_ptr<WordCache> cache) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(cache));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<WordCache>> idle_;
};

class ByteLevel final : public StretchEncoder {
 public:
  explicit ByteLevel(ByteLevelParts parts)
      : pairs_(parts.pairs),
        splitter_(std::move(parts.splitter)),
        prefix_space_(parts.prefix_space),
        keep_gaps_(parts.keep_gaps) {}

  void encode(std::string_view stretch, std::size_t, std::vector<std::int32_t>& ids) const override {
    const CachePool::Lent cache(caches_);
    if (prefix_space_ && !stretch.starts_with(' ')) {
      encode_pieces(" " + std::string(stretch), ids, *cache);
    } else {
      encode_pieces(stretch, ids, *cache);
    }
  }

 private:
  void encode_pieces(std::string_view text, std::vector<std::int32_t>& ids, WordCache& cache) const {
    if (splitter_ == nullptr) return pairs_.encode(text, ids, cache);
    // Pieces are found a few hundred at a time, so that they are still in cache when they are encoded.
    constexpr std::size_t batch = 512;
    std::vector<ByteRange> pieces;
    pieces.reserve(batch);
    std::size_t done = 0;
    for (std::size_t at = 0; at < text.size();) {
      pieces.clear();
      at = splitter_->split(text, at, batch, pieces);
      for (const ByteRange& piece : pieces) {
        if (piece.begin > done && keep_gaps_)
          pairs_.encode(text.substr(done, piece.begin - done), ids, cache);
        pairs_.encode(text.substr(piece.begin, piece.end - piece.begin), ids, cache);
        done = piece.end;
      }
    }
    if (done < text.size() && keep_gaps_) pairs_.encode(text.substr(done), ids, cache);
  }

  BytePairs pairs_;
  std::unique_ptr<Splitter> splitter_;
  bool prefix_space_, keep_gaps_;
  mutable CachePool caches_;
};

class ByteLevelDecoder final : public Decoder {
 public:
  [[nodiscard]] std::string decode(std::vector<std::string> tokens) const override {
    std::string bytes;
    for (const std::string& token : tokens) bytes += byte_alphabet.bytes(token).value_or(token);
    return unicode::valid(bytes) ? bytes : unicode::repaired(bytes);
  }
};

}  // namespace

std::unique_ptr<StretchEncoder> make_byte_level(ByteLevelParts parts) {
  return std::make_unique<ByteLevel>(std::move(parts));
}

std::unique_ptr<Decoder> make_byte_level_decoder() { return std::make_unique<ByteLevelDecoder>(); }

}  // namespace weft
