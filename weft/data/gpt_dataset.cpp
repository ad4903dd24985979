#include "weft/data/gpt_dataset.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "weft/base/error.h"

namespace weft::data {
namespace {

class IndexedComposition : public Composition {
 public:
  IndexedComposition(std::shared_ptr<const Source> source, GptIndex index, const Order& order)
      : source_(std::move(source)),
        index_(std::move(index)),
        sequences_(source_->num_sequences()),
        length_(order.sequence_length),
        extra_(order.extra_token ? 1 : 0) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(index_.shuffle.size()); }

  void pieces(std::int64_t i, std::vector<Piece>& into) const override {
    const std::size_t row = index_.shuffle[static_cast<std::size_t>(i)];
    // A cache file may hold anything: what comes out of it is checked before it is used as a place.
    if (2 * row + 3 >= index_.samples.size()) damaged("sample", i);
    const std::int64_t first = index_.samples[2 * row], begin = index_.samples[2 * row + 1];
    const std::int64_t last = index_.samples[2 * row + 2], end = index_.samples[2 * row + 3] + extra_;
    if (first < 0 || last < first || last >= static_cast<std::int64_t>(index_.documents.size()))
      damaged("sample", i);
    std::int64_t missing = length_ + extra_;
    for (std::int64_t d = first; d <= last; ++d) {
      const std::int64_t sequence = index_.documents[static_cast<std::size_t>(d)];
      if (sequence < 0 || sequence >= sequences_) damaged("document", sequence);
      const std::int64_t length = source_->length(sequence);
      const std::int64_t from = d == first ? begin : 0;
      const std::int64_t to = d == last ? end : length;
      if (from < 0 || to < from || to > length) damaged("document", sequence);
      into.push_back({sequence, from, to - from});
      missing -= to - from;
    }
    const bool is_last = 2 * row + 4 == index_.samples.size();
    if (missing < 0 || (missing > 0 && !is_last)) damaged("sample", i);
  }

 private:
  [[noreturn]] void damaged(const char* what, std::int64_t number) const {
    fail(Kind::data, source_->name(), ": the cached index does not fit the data at ", what, " ", number,
         "; was the data made anew? Remove the cache and start again");
  }

  std::shared_ptr<const Source> source_;
  GptIndex index_;
  std::int64_t sequences_, length_, extra_;
};

// No branches and a store for every place: the compiler makes vector code of these loops.
void mask_loss(Sample& sample, const GptRows& rows) {
  auto& tokens = sample[Field::tokens];
  auto& labels = sample[Field::labels];
  auto& mask = sample[Field::loss_mask];
  const std::size_t length = tokens.size();
  mask.resize(length);
  const std::int32_t pad = rows.pad;
  for (std::size_t i = 0; i < length; ++i) mask[i] = labels[i] != pad ? 1 : 0;
  if (rows.mask_eod_loss) {
    for (std::size_t i = 0; i < length; ++i) mask[i] &= tokens[i] != rows.eod ? 1 : 0;
  }
  for (std::size_t i = 0; i < length; ++i) tokens[i] = tokens[i] == pad ? 0 : tokens[i];
  for (std::size_t i = 0; i < length; ++i) labels[i] = labels[i] == pad ? 0 : labels[i];
}

// Numbers and segments by end-of-document tokens: the token itself still belongs to what it ends.
void place_by_eod(Sample& sample, const GptRows& rows) {
  const auto& tokens = sample[Field::tokens];
  auto& positions = sample[Field::positions];
  positions.resize(static_cast<std::size_t>(rows.sequence_length));
  std::iota(positions.begin(), positions.end(), 0);
  if (!rows.reset_positions && !rows.reset_attention) return;
  auto& segments = sample[Field::documents];
  if (rows.reset_attention) segments.resize(positions.size());
  std::int32_t begin = 0, segment = 0;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (rows.reset_positions) positions[i] = static_cast<std::int32_t>(i) - begin;
    if (rows.reset_attention) segments[i] = segment;
    if (tokens[i] != rows.eod) continue;
    begin = static_cast<std::int32_t>(i) + 1;
    ++segment;
  }
}

// Numbers and segments by the documents that the pieces are of; padding belongs to the last one.
void place_by_document(Sample& sample, const GptRows& rows, std::span<const Piece> pieces) {
  auto& positions = sample[Field::positions];
  auto& segments = sample[Field::documents];
  const auto length = static_cast<std::size_t>(rows.sequence_length);
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    const std::size_t left = length - positions.size();
    const bool last = p + 1 == pieces.size();
    const std::size_t count = last ? left : std::min(left, static_cast<std::size_t>(pieces[p].count));
    for (std::size_t k = 0; k < count; ++k) positions.push_back(static_cast<std::int32_t>(k));
    segments.insert(segments.end(), count, static_cast<std::int32_t>(p));
  }
}

}  // namespace

void complete_gpt_sample(Sample& sample, const GptRows& rows) {
  const auto length = static_cast<std::size_t>(rows.sequence_length);
  auto& tokens = sample[Field::tokens];
  tokens.resize(length + 1, rows.pad);  // without the extra token, the label of the last one is padding
  sample[Field::labels].assign(tokens.begin() + 1, tokens.end());
  tokens.pop_back();
  if (rows.between_documents) {
    place_by_document(sample, rows, sample.pieces());
  } else {
    place_by_eod(sample, rows);
  }
  mask_loss(sample, rows);
}

std::unique_ptr<Composition> indexed_composition(std::shared_ptr<const Source> source, GptIndex index,
                                                 const Order& order) {
  return std::make_unique<IndexedComposition>(std::move(source), std::move(index), order);
}

GptDataset::GptDataset(std::shared_ptr<const Source> source, std::unique_ptr<Composition> composition,
                       GptRows rows)
    : source_(std::move(source)), composition_(std::move(composition)), rows_(rows) {}

void GptDataset::fill(std::int64_t i, Sample& into) const {
  if (i < 0 || i >= size())
    fail(Kind::data, source_->name(), ": sample ", i, " asked for, there are ", size());
  into.clear();
  composition_->pieces(i, into.pieces());
  auto& tokens = into[Field::tokens];
  tokens.reserve(static_cast<std::size_t>(rows_.sequence_length) + 1);
  for (const Piece& piece : into.pieces()) {
    const std::size_t at = tokens.size();
    tokens.resize(at + static_cast<std::size_t>(piece.count));
    const auto part = std::span(tokens).subspan(at);
    source_->read(piece.sequence, piece.from, part);
    check_ids(part, piece.sequence);
  }
  complete_gpt_sample(into, rows_);
}

void GptDataset::check_ids(std::span<const std::int32_t> tokens, std::int64_t sequence) const {
  const auto most = static_cast<std::uint32_t>(rows_.vocabulary > 0 ? rows_.vocabulary - 1 : 0x7fffffff);
  std::uint32_t highest = 0;  // a negative id is a very high one
  for (const std::int32_t token : tokens) highest = std::max(highest, static_cast<std::uint32_t>(token));
  if (highest <= most) return;
  fail(Kind::data, source_->name(), ": token ", static_cast<std::int32_t>(highest), " in sequence ", sequence,
       ", the vocabulary has ", most + 1LL, " tokens; was the data made with another tokenizer?");
}

std::vector<Origin> GptDataset::origins(std::int64_t i) const {
  std::vector<Piece> pieces;
  composition_->pieces(i, pieces);
  std::vector<Origin> origins;
  for (const Piece& piece : pieces) {
    if (piece.count > 0) origins.push_back({source_->name(), piece.sequence, piece.from, piece.count});
  }
  return origins;
}

std::int32_t effective_pad(std::optional<std::int32_t> pad, std::span<const std::int32_t> other_specials,
                           bool allow_ambiguous) {
  const bool ambiguous =
      pad && std::find(other_specials.begin(), other_specials.end(), *pad) != other_specials.end();
  return !pad || (ambiguous && !allow_ambiguous) ? -1 : *pad;
}

}  // namespace weft::data
