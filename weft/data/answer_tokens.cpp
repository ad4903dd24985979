#include "weft/data/answer_tokens.h"

#include <algorithm>
#include <optional>
#include <string>

#include "weft/base/error.h"

namespace weft::data {
namespace {

using Flags = std::vector<std::uint8_t>;

// Where pieces have the tokens of the whole, each piece's tokens are its own.
std::optional<Flags> by_pieces(const Tokenizer& tokenizer, std::string_view text,
                               std::span<const std::int32_t> tokens, std::span<const ByteRange> parts) {
  Flags flags;
  std::vector<std::int32_t> joined;
  const auto add = [&](std::size_t from, std::size_t to, std::uint8_t flag) {
    const auto ids = tokenizer.encode(text.substr(from, to - from));
    joined.insert(joined.end(), ids.begin(), ids.end());
    flags.resize(joined.size(), flag);
  };
  std::size_t at = 0;
  for (const ByteRange& part : parts) {
    add(at, part.begin, 0);
    add(part.begin, part.end, 1);
    at = part.end;
  }
  add(at, text.size(), 0);
  if (!std::ranges::equal(joined, tokens)) return std::nullopt;
  return flags;
}

// The first count of tokens whose text holds so many bytes: decoded to less than the whole they may end
// within a character, which then reads otherwise.
std::size_t tokens_for(const Tokenizer& tokenizer, std::string_view text,
                       std::span<const std::int32_t> tokens, std::size_t bytes) {
  std::size_t low = 0, high = tokens.size();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    const std::string decoded = tokenizer.decode(tokens.first(middle));
    const auto [end, same] = std::ranges::mismatch(decoded, text);
    if (static_cast<std::size_t>(end - decoded.begin()) >= bytes) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace

std::vector<std::uint8_t> tokens_within(const Tokenizer& tokenizer, std::string_view text,
                                        std::span<const std::int32_t> tokens,
                                        std::span<const ByteRange> parts) {
  if (auto flags = by_pieces(tokenizer, text, tokens, parts)) return *std::move(flags);
  if (tokenizer.decode(tokens) != text)
    fail(Kind::data,
         "which tokens are the answers' is not known: the tokenizer changes the text (its tokens read "
         "otherwise); take {data.chat.learned=all}");
  Flags flags(tokens.size(), 0);
  for (const ByteRange& part : parts) {
    if (part.begin == part.end) continue;
    const std::size_t first = tokens_for(tokenizer, text, tokens, part.begin + 1);
    const std::size_t last = tokens_for(tokenizer, text, tokens, part.end);
    std::fill(flags.begin() + std::ptrdiff_t(first) - 1, flags.begin() + std::ptrdiff_t(last), 1);
  }
  return flags;
}

}  // namespace weft::data
