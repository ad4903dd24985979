// Shorter samples out of whole ones: the front of each, or as many pieces as it holds.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "weft/data/batch.h"

namespace weft::data {

/// DeepSpeed's two ways: seqlen_truncate and seqlen_reshape.
enum class ExcerptForm : std::uint8_t { truncate, reshape };
constexpr std::array<std::string_view, 2> words(ExcerptForm) { return {"truncate", "reshape"}; }

/// What a step reads of its samples.
struct Excerpt {
  std::int64_t length = 0;  // 0: all of them
  ExcerptForm form = ExcerptForm::truncate;
};

/// So many rows of so many tokens.
struct Rows {
  std::int64_t count = 0, length = 0;
  std::int64_t tokens() const { return count * length; }
};
/// What becomes of such rows. A piece takes one token more than it has, as its last one guesses that; a last
/// piece of each row ends with the row and may hold again what others hold. As many pieces are kept as there
/// would be without those that hold something twice, and an even number of them where that is more than one.
Rows rows_of(const Rows& whole, const Excerpt& excerpt);

/// What `part` held is gone, its memory used again. Fields of one number a sample stay whole. Pieces come in
/// the order of samples, the last ones of all samples behind the others, and positions begin anew in each.
void cut(const HostBatch& whole, const Excerpt& excerpt, HostBatch& part);

/// One row of a batch, by itself.
void take_row(const HostBatch& whole, std::int64_t row, HostBatch& into);

/// Pieces of one sample have a number each, by which their random numbers differ.
inline constexpr std::int64_t most_pieces_of_a_sample = 8191;
std::int64_t number_of_piece(std::int64_t sample, std::int64_t piece);
/// The sample that a piece is of; a sample's own number is that of its first piece.
std::int64_t sample_of(std::int64_t number);

}  // namespace weft::data
