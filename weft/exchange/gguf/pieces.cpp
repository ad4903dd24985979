// The pieces of a SentencePiece model: a protobuf message, of which field 1 is a piece, 2 how it was trained
// and 3 how texts are made plain.
#include <bit>
#include <cstring>

#include "weft/base/error.h"
#include "weft/exchange/gguf/vocabulary.h"

namespace weft::exchange::gguf {
namespace {

struct Field {
  std::uint64_t number = 0, value = 0;  // value: of a varint or of four bytes
  std::string_view content;             // of a text or a message
};

class Message {
 public:
  Message(std::string_view bytes, const std::string& who) : bytes_(bytes), who_(who) {}

  bool next(Field& out) {
    if (at_ == bytes_.size()) return false;
    const std::uint64_t key = varint();
    out = {.number = key >> 3};
    switch (key & 7) {
      case 0:
        out.value = varint();
        return true;
      case 1:
        (void)take(8);
        return true;
      case 2:
        out.content = take(varint());
        return true;
      case 5: {
        std::uint32_t bits = 0;
        std::memcpy(&bits, take(4).data(), sizeof bits);
        out.value = bits;
        return true;
      }
      default:
        torn();
    }
  }

 private:
  [[noreturn]] void torn() const {
    fail(Kind::data, who_, ": is no SentencePiece model, or breaks off, at byte ", at_, " of ",
         bytes_.size());
  }
  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) torn();
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }
  std::uint64_t varint() {
    std::uint64_t out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = std::uint8_t(take(1).front());
      out |= std::uint64_t(byte & 0x7f) << shift;
      if (byte < 0x80) return out;
    }
    torn();
  }
  std::string_view bytes_;
  const std::string& who_;
  std::size_t at_ = 0;
};

void add_piece(std::string_view bytes, const std::string& who, Vocabulary& to) {
  std::string token;
  float score = 0;
  std::uint64_t type = std::uint64_t(TokenType::normal);
  Message piece(bytes, who);
  for (Field field; piece.next(field);) {
    if (field.number == 1) token = field.content;
    if (field.number == 2) score = std::bit_cast<float>(std::uint32_t(field.value));
    if (field.number == 3) type = field.value;
  }
  if (type < std::uint64_t(TokenType::normal) || type > std::uint64_t(TokenType::byte))
    fail(Kind::data, who, ": piece ", to.tokens.size(), " is of kind ", type, ", expected 1 to 6");
  to.tokens.push_back(std::move(token));
  to.scores.push_back(as_written(score));
  to.types.push_back(std::int64_t(type));
}

struct Training {
  std::uint64_t kind = 1;  // unigram, if nothing is said
  std::int64_t unknown = 0, begin = 1, end = 2, pad = -1;
};
Training training_of(std::string_view bytes, const std::string& who) {
  Training out;
  Message spec(bytes, who);
  for (Field field; spec.next(field);) {
    if (field.number == 3) out.kind = field.value;
    if (field.number == 40) out.unknown = std::int64_t(field.value);
    if (field.number == 41) out.begin = std::int64_t(field.value);
    if (field.number == 42) out.end = std::int64_t(field.value);
    if (field.number == 43) out.pad = std::int64_t(field.value);
  }
  return out;
}

}  // namespace

void read_pieces(std::string_view model, const std::string& who, Vocabulary& to) {
  constexpr std::uint64_t joined_by_scores = 2;
  Training training;
  bool space = true;
  Message message(model, who);
  for (Field field; message.next(field);) {
    if (field.number == 1) add_piece(field.content, who, to);
    if (field.number == 2) training = training_of(field.content, who);
    if (field.number != 3) continue;
    Message plain(field.content, who);
    for (Field one; plain.next(one);)
      if (one.number == 3) space = one.value != 0;
  }
  if (to.tokens.empty()) fail(Kind::data, who, ": holds no piece");
  if (training.kind != joined_by_scores)
    fail(Kind::usage, who, ": is no model of pairs that are joined (its kind is ", training.kind,
         ", expected 2, which is BPE): llama.cpp splits other texts for it; give another tokenizer");
  const auto within = [&](std::int64_t id) {
    return id >= 0 && id < std::ssize(to.tokens) ? std::optional(id) : std::nullopt;
  };
  to.unknown = within(training.unknown);
  to.begin = within(training.begin);
  to.end = within(training.end);
  to.pad = within(training.pad);
  to.add_space = space;
}

}  // namespace weft::exchange::gguf
