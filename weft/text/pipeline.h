// Pipeline: the tokenizer most others are made of. Added tokens are cut out, the rest is normalized, cut and
// encoded.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "weft/text/added.h"
#include "weft/text/tokenizer.h"
#include "weft/text/vocabulary.h"

namespace weft {

/// Text to text, before tokens are looked for.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  [[nodiscard]] virtual std::string apply(std::string text) const = 0;
};

/// Encodes a stretch of normalized text that holds no added token.
class StretchEncoder {
 public:
  virtual ~StretchEncoder() = default;
  /// `head` bytes at the stretch's front come from the text's first character; 0: it does not begin the text.
  virtual void encode(std::string_view stretch, std::size_t head, std::vector<std::int32_t>& ids) const = 0;
};

/// Tokens to text.
class Decoder {
 public:
  virtual ~Decoder() = default;
  [[nodiscard]] virtual std::string decode(std::vector<std::string> tokens) const = 0;
};

struct PipelineParts {
  Vocabulary vocabulary;  // added tokens included
  std::vector<AddedToken> added;
  bool split_special = false;              // special tokens are text like any other
  std::unique_ptr<Normalizer> normalizer;  // may be null
  std::unique_ptr<StretchEncoder> encoder;
  std::unique_ptr<Decoder> decoder;
  std::vector<std::int32_t> before, after;   // what the post-processor puts around a text
  std::map<std::string, std::string> named;  // "eod" -> "<|endoftext|>"
};

/// Special tokens a person asked for: those that the vocabulary has keep their ids, others get the next ones.
void add_special(const std::vector<std::string>& tokens, PipelineParts& parts);

class Pipeline final : public Tokenizer {
 public:
  explicit Pipeline(PipelineParts parts);
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view utf8) const override;
  [[nodiscard]] std::string decode(std::span<const std::int32_t> ids) const override;
  [[nodiscard]] std::int32_t size() const override { return parts_.vocabulary.size(); }
  [[nodiscard]] std::optional<std::int32_t> special(std::string_view name) const override;
  [[nodiscard]] std::string token(std::int32_t id) const override { return parts_.vocabulary.token(id); }
  [[nodiscard]] bool is_special(std::int32_t id) const override { return special_ids_.contains(id); }

 private:
  void encode_rest(std::string_view text, std::size_t head, std::vector<std::int32_t>& ids) const;

  [[nodiscard]] std::size_t normalized_head(std::string_view text, std::string_view normalized) const;

  PipelineParts parts_;
  AddedTokens raw_, normalized_;
  std::set<std::int32_t> special_ids_;
};

/// Refuses an id that no vocabulary of `size` holds.
void check_id(std::int32_t id, std::int32_t size);

}  // namespace weft
