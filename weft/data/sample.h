// A sample: named rows of integers, all a model may ask of one piece of text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace weft::data {

/// Rows of a sample. GPT: the first four, and documents where attention stops between them. BERT: token
/// types, and which tokens are padding. T5: tokens and labels are the decoder's.
enum class Field : std::uint8_t {
  tokens,
  labels,
  loss_mask,  // 1 where the loss counts
  positions,
  documents,  // attention stays within equal numbers
  token_types,
  encoder_tokens,
  encoder_mask,    // 1 where the encoder's input is not padding
  decoder_mask,    // 1 where the decoder's input is not padding
  sentence_order,  // one number: 1 where BERT's two parts were swapped
  truncated,       // one number: 1 where text was cut off
};
inline constexpr std::size_t num_fields = 11;
std::string_view name(Field field);

/// Tokens of a document, or of another sequence.
struct Piece {
  std::int64_t sequence, from, count;
};

class Sample {
 public:
  std::vector<std::int32_t>& operator[](Field field) { return rows_[static_cast<std::size_t>(field)]; }
  const std::vector<std::int32_t>& operator[](Field field) const {
    return rows_[static_cast<std::size_t>(field)];
  }
  bool has(Field field) const { return !(*this)[field].empty(); }
  /// What its tokens were put together from, where the data set knows.
  std::vector<Piece>& pieces() { return pieces_; }
  /// Empty again; the memory stays for the next one.
  void clear() {
    for (auto& row : rows_) row.clear();
    pieces_.clear();
  }

 private:
  std::array<std::vector<std::int32_t>, num_fields> rows_;
  std::vector<Piece> pieces_;
};

}  // namespace weft::data
