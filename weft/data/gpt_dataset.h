// Samples for GPT: a window on the shuffled stream of documents, with labels, masks and positions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "weft/data/dataset.h"
#include "weft/data/index.h"
#include "weft/data/source.h"

namespace weft::data {

/// How tokens become a sample.
struct GptRows {
  std::int64_t sequence_length = 0;
  bool extra_token = true;
  std::int32_t eod = -1;
  std::int32_t pad = -1;         // -1: no token is padding
  std::int64_t vocabulary = 0;   // 0: ids are not checked against it
  bool reset_positions = false;  // --reset-position-ids: numbers begin anew behind each eod
  bool reset_attention = false;  // --reset-attention-mask: segments end with each eod
  bool mask_eod_loss = false;    // --eod-mask-loss
  bool between_documents =
      false;  // --dataloader-inter-document-masking: segments and positions follow documents, not eod
};

/// Labels, masks and positions for the tokens of a sample's pieces; what is missing to a whole sequence is
/// padded.
void complete_gpt_sample(Sample& sample, const GptRows& rows);

/// Which pieces a sample is made of.
class Composition {
 public:
  virtual ~Composition() = default;
  virtual std::int64_t size() const = 0;
  /// Puts them behind those that `into` holds.
  virtual void pieces(std::int64_t i, std::vector<Piece>& into) const = 0;
};

/// By the stored index, Megatron's order.
std::unique_ptr<Composition> indexed_composition(std::shared_ptr<const Source> source, GptIndex index,
                                                 const Order& order);

class GptDataset : public Dataset {
 public:
  GptDataset(std::shared_ptr<const Source> source, std::unique_ptr<Composition> composition, GptRows rows);
  std::int64_t size() const override { return composition_->size(); }
  void fill(std::int64_t i, Sample& into) const override;
  std::vector<Origin> origins(std::int64_t i) const override;

 private:
  void check_ids(std::span<const std::int32_t> tokens, std::int64_t sequence) const;

  std::shared_ptr<const Source> source_;
  std::unique_ptr<Composition> composition_;
  GptRows rows_;
};

/// The id that is padding: the tokenizer's, unless another special token has the same id and that is not
/// allowed.
std::int32_t effective_pad(std::optional<std::int32_t> pad, std::span<const std::int32_t> other_specials,
                           bool allow_ambiguous);

}  // namespace weft::data
