#include "weft/text/plain.h"

#include <algorithm>
#include <charconv>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/text/pipeline.h"
#include "weft/text/unicode.h"

namespace weft {

namespace {

class Bytes final : public Tokenizer {
 public:
  explicit Bytes(ByteOptions options) : options_(std::move(options)) {
    if (options_.vocabulary < 256) {
      fail(Kind::usage, "byte tokenizer: a vocabulary of ", options_.vocabulary, ", expected at least 256");
    }
  }
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view utf8) const override {
    const std::string text = unicode::valid(utf8) ? std::string(utf8) : unicode::repaired(utf8);
    std::vector<std::int32_t> ids;
    ids.reserve(text.size());
    for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
    return ids;
  }
  // Ids above 255 are no bytes and say nothing; what is no UTF-8 is left out, as the original does.
  [[nodiscard]] std::string decode(std::span<const std::int32_t> ids) const override {
    std::string bytes;
    for (const std::int32_t id : ids) {
      check_id(id, size());
      if (id < 256) bytes.push_back(static_cast<char>(id));
    }
    return unicode::repaired(bytes, "");
  }
  [[nodiscard]] std::int32_t size() const override {
    return options_.vocabulary + static_cast<std::int32_t>(options_.special.size());
  }
  [[nodiscard]] std::optional<std::int32_t> special(std::string_view name) const override {
    if (name == "eod" || name == "eos") return 0;
    if (name == "pad") return 1;
    const auto at = std::find(options_.special.begin(), options_.special.end(), name);
    if (at == options_.special.end()) return std::nullopt;
    return size() - 1 - static_cast<std::int32_t>(at - options_.special.begin());
  }
  [[nodiscard]] std::string token(std::int32_t id) const override {
    if (id < 0 || id >= size()) return {};
    if (id < options_.vocabulary) return id < 256 ? std::string(1, static_cast<char>(id)) : std::string();
    return options_.special[static_cast<std::size_t>(size() - 1 - id)];
  }

 private:
  ByteOptions options_;
};

class Null final : public Tokenizer {
 public:
  explicit Null(const NullOptions& options) : options_(options) {
    if (options_.vocabulary < 1) {
      fail(Kind::usage, "null tokenizer: a vocabulary of ", options_.vocabulary,
           ", expected {vocab_size} of at least 1");
    }
  }
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view utf8) const override {
    std::vector<std::int32_t> ids;
    for (const std::string_view word : split(utf8, ' ')) {
      std::int32_t id = -1;
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
      if (error != std::errc() || end != word.data() + word.size() || id < 0 || id >= options_.vocabulary) {
        fail(Kind::data, "null tokenizer: '", unicode::repaired(word.substr(0, 40)),
             "' is not an id from 0 to ", options_.vocabulary - 1);
      }
      ids.push_back(id);
    }
    return ids;
  }
  [[nodiscard]] std::string decode(std::span<const std::int32_t> ids) const override {
    for (const std::int32_t id : ids) check_id(id, size());
    return join(ids, " ");
  }
  [[nodiscard]] std::int32_t size() const override { return options_.vocabulary; }
  [[nodiscard]] std::optional<std::int32_t> special(std::string_view name) const override {
    if (name == "eod" || name == "eos") return options_.eod.value_or(options_.vocabulary - 1);
    if (name == "pad") return options_.pad.value_or(-1);
    if (name == "cls" || name == "sep" || name == "mask") return -1;
    return std::nullopt;
  }
  [[nodiscard]] std::string token(std::int32_t id) const override {
    return id >= 0 && id < size() ? std::to_string(id) : std::string();
  }

 private:
  NullOptions options_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_byte_tokenizer(const ByteOptions& options) {
  return std::make_unique<Bytes>(options);
}

std::unique_ptr<Tokenizer> make_null_tokenizer(const NullOptions& options) {
  return std::make_unique<Null>(options);
}

}  // namespace weft
